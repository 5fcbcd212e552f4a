/* SPDX-License-Identifier: Apache-2.0 */
/* Short texts that people and peers write: durations, sizes, moments, addresses, URLs, and foreign
 * names on their way to a terminal. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "fuzz.h"
#include "net/address.h"
#include "net/client/client.h"
#include "net/http.h"
#include "net/http.h"

static void check_numbers(const char *s)
{
	const struct when_span span = {1700000000000000000, 1700000100000000000};
	char text[TEXT_MAX];
	uint64_t v, again;
	int64_t ns;
	int r;

	if (text_parse_duration(s, &v) == 0) {
		MUST(v <= INT64_MAX);
		text_format_duration(text, v);
		/* What is printed is a duration again; rounded up it may be one too many. */
		r = text_parse_duration(text, &again);
		MUST(r == 0 || r == -ERANGE);
	}
	if (text_parse_size(s, &v) == 0)
		MUST(v <= INT64_MAX);
	if (when_parse(s, &span, false, &ns) == 0)
		MUST(ns >= 0);
}

static void check_terminal(const char *s, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	uint32_t cp;
	int n;

	text_escape_terminal_len(&b, s, len);
	for (size_t i = 0; i < b.len; i += (size_t)n) {
		n = text_utf8_next(b.data + i, b.len - i, &cp);
		MUST(n > 0 && cp >= 0x20 && (cp < 0x7f || cp >= 0xa0));
	}
}

static void check_net(const char *s)
{
	_cleanup_free_ char *copy = strdup(s);
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	char out[256], address_text[ADDRESS_TEXT_MAX];
	union address a, again;
	struct http_endpoint place;
	struct http_target target;
	struct errinfo e = {0};
	bool found;
	int n;

	if (address_parse(s, &a, &e) == 0) {
		address_format(&a, address_text);
		MUST(address_parse(address_text, &again, &e) == 0);
		MUST(address_host_equal(&a, &again));
	}
	if (http_endpoint_parse(s, true, 8080, &place, &e) == 0)
		MUST(place.port && place.host[0]);
	if (http_target_parse(copy, &target) == 0)
		MUST(target.path[0] == '/' || strcmp(target.path, "*") == 0);
	if (http_query_get(s, "a", out, sizeof(out), &found) == 0 && found)
		MUST(strlen(out) < sizeof(out));
	/* What is escaped is found again. */
	http_escape(&b, s);
	if (strlen(s) < sizeof(out)) {
		n = http_unescape(buf_str(&b), b.len, false, out, sizeof(out));
		MUST(n == (int)strlen(s) && strcmp(out, s) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *s = fuzz_text(data, MIN(size, (size_t)4096));

	check_numbers(s);
	check_terminal((const char *)data, size);
	check_net(s);
	return 0;
}
