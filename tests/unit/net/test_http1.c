/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/http1.h"

/* Everything that came out, as one text to compare: "GET /a 1.1 host=x;|body|." or "!400". */
struct heard {
	struct buf text;
	int messages, error_status;
};

static void hear_head(struct heard *h, const struct http1 *p)
{
	if (p->kind == HTTP1_REQUEST)
		buf_printf(&h->text, "%s %s 1.%d ", p->method, p->target, p->minor);
	else
		buf_printf(&h->text, "%d 1.%d ", p->status, p->minor);
	for (size_t i = 0; i < p->head.count; i++)
		buf_printf(&h->text, "%s=%s;", p->head.field[i].name, p->head.field[i].value);
	buf_printf(&h->text, "%s|", p->keep_alive ? "" : "close");
}

/* feed - all of @data; false after an error. Input is given in a block of its own, so that a
 * sanitizer sees a byte read past it. */
static bool feed(struct http1 *p, struct heard *h, const char *data, size_t len)
{
	_cleanup_free_ char *block = malloc(len ? len : 1);
	size_t at = 0;

	assert_non_null(block);
	memcpy(block, data, len);
	for (int turns = 0;; turns++) {
		size_t used;
		enum http1_event e = http1_feed(p, block + at, len - at, &used);

		assert_true(used <= len - at);
		assert_true(turns <= 4 * (int)len + 4);
		at += used;
		if (e == HTTP1_HEAD) {
			hear_head(h, p);
		} else if (e == HTTP1_DATA) {
			assert_ptr_equal(p->data + p->data_len, block + at);
			buf_append(&h->text, p->data, p->data_len);
		} else if (e == HTTP1_END) {
			buf_puts(&h->text, "|.\n");
			h->messages++;
			http1_next(p);
		} else if (e == HTTP1_ERROR) {
			assert_in_range(p->error_status, 400, 505);
			assert_non_null(p->error);
			buf_printf(&h->text, "!%d", p->error_status);
			h->error_status = p->error_status;
			return false;
		} else {
			assert_int_equal(at, len);
			return true;
		}
	}
}

static void hear(enum http1_kind kind, const char *data, size_t len, size_t split, struct heard *h)
{
	struct http1 p;

	*h = (struct heard){.text = BUF_INIT(1 << 20)};
	http1_init(&p, kind);
	if (feed(&p, h, data, split))
		feed(&p, h, data + split, len - split);
	http1_done(&p);
}

struct sample {
	const char *bytes, *heard;
};

#define HOST "Host: x\r\n"

static const struct sample requests[] = {
	{"GET / HTTP/1.1\r\n" HOST "\r\n", "GET / 1.1 host=x;||.\n"},
	{"\r\nGET /a?b=c HTTP/1.1\r\n" HOST "\r\n", "GET /a?b=c 1.1 host=x;||.\n"},
	{"GET / HTTP/1.0\r\n\r\n", "GET / 1.0 close||.\n"},
	{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
		"GET / 1.0 connection=Keep-Alive;||.\n"},
	{"GET / HTTP/1.1\r\nHOST: x\r\nConnection: foo , CLOSE\r\n\r\n",
		"GET / 1.1 host=x;connection=foo , CLOSE;close||.\n"},
	{"POST /p HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
		"POST /p 1.1 host=x;content-length=5;|hello|.\n"},
	{"POST /p HTTP/1.1\r\n" HOST "Content-Length: 0005\r\n\r\nhello",
		"POST /p 1.1 host=x;content-length=0005;|hello|.\n"},
	{"POST /p HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
		"POST /p 1.1 host=x;content-length=0;||.\n"},
	{"POST /p HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
	 "5\r\nhello\r\n6;a=\"b\"\r\n world\r\n0\r\n\r\n",
		"POST /p 1.1 host=x;transfer-encoding=Chunked;|hello world|.\n"},
	{"POST /p HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "00a\r\n0123456789\r\n0\r\nTrailer: v\r\nOther: w\r\n\r\n",
		"POST /p 1.1 host=x;transfer-encoding=chunked;|0123456789|.\n"},
	{"GET /1 HTTP/1.1\r\n" HOST "\r\nPOST /2 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok"
	 "GET /3 HTTP/1.1\r\n" HOST "\r\n",
		"GET /1 1.1 host=x;||.\nPOST /2 1.1 host=x;content-length=2;|ok|.\n"
		"GET /3 1.1 host=x;||.\n"},
	{"GET / HTTP/1.1\r\n" HOST
	 "Empty:\r\nBlank:  \t \r\nInner:  a \t b  \r\n\xc3\xa4: x\r\n\r\n",
		"!400"},
	{"GET / HTTP/1.1\r\n" HOST
	 "Empty:\r\nBlank:  \t \r\nInner:  a \t b  \r\nU: \xc3\xa4\r\n\r\n",
		"GET / 1.1 host=x;empty=;blank=;inner=a \t b;u=\xc3\xa4;||.\n"},
	/* refused */
	{"GET / HTTP/1.1\r\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\n" HOST HOST "\r\n", "!400"},
	{"GET / HTTP/1.1\n" HOST "\r\n", "!400"},
	{"GET / HTTP/1.1\r\nHost: x\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\nHost: x\rY: z\r\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\n A: b\r\n" HOST "\r\n", "!400"},
	{"GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\n" HOST "nothing\r\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\n" HOST ": v\r\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n", "!400"},
	{"GET / HTTP/1.1\r\n" HOST "A: \x7f\r\n\r\n", "!400"},
	{"GET  / HTTP/1.1\r\n" HOST "\r\n", "!400"},
	{"GET / HTTP/1.1 \r\n" HOST "\r\n", "!400"},
	{"GET /\r\n" HOST "\r\n", "!400"},
	{"GET /\x80 HTTP/1.1\r\n" HOST "\r\n", "!400"},
	{"G\"T / HTTP/1.1\r\n" HOST "\r\n", "!400"},
	{" GET / HTTP/1.1\r\n" HOST "\r\n", "!400"},
	{"\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "!400"},
	{"\x16\x03\x01\x02", "!400"},
	{"GET / HTTP/2.0\r\n" HOST "\r\n", "!505"},
	{"GET / http/1.1\r\n" HOST "\r\n", "!400"},
	{"GET / HTTP/1.10\r\n" HOST "\r\n", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nhello", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\nhello", "!400"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999999\r\n\r\n", "!413"},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"!400"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "!501"},
	{"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", "!501"},
	{"POST / HTTP/1.1\r\n" HOST
	 "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"!400"},
	{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "!400"},
};

/* Bad pieces of a chunked body, each behind a head that is good. */
#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
static const char *const bad_chunks[] = {
	"x\r\n",
	"\r\n",
	" 5\r\nhello\r\n",
	"5 \r\nhello\r\n",
	"0x5\r\nhello\r\n",
	"-5\r\nhello\r\n",
	"5\nhello\r\n",
	"5\r\nhello!\r\n",
	"5\r\nhello\n",
	"5\r\nhello\r\r\n",
	"5;\x01\r\nhello\r\n",
	"1000000000000000\r\n",
	"0\r\nno field\r\n\r\n",
	"0\r\nA: \x02\r\n\r\n",
};

static const struct sample responses[] = {
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 1.1 content-length=2;|ok|.\n"},
	{"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "200 1.1 content-length=2;|ok|.\n"},
	{"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", "404 1.1 content-length=0;||.\n"},
	{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", "100 1.1 ||.\n204 1.1 ||.\n"},
	{"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
		"304 1.1 content-length=7;||.\n"},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"200 1.1 transfer-encoding=chunked;|ok|.\n"},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", "!400"},
	{"HTTP/1.1 20 OK\r\n\r\n", "!400"},
	{"HTTP/1.1 2000 OK\r\n\r\n", "!400"},
	{"HTTP/1.1 099 OK\r\n\r\n", "!400"},
	{"HTTP/1.1 200 \x01\r\n\r\n", "!400"},
	{"HTTP/3.1 200 OK\r\n\r\n", "!505"},
	{"ICY 200 OK\r\n\r\n", "!400"},
	{"\r\nHTTP/1.1 200 OK\r\n\r\n", "!400"},
};

static void check_sample(enum http1_kind kind, const char *bytes, const char *expected)
{
	size_t len = strlen(bytes);

	for (size_t split = 0; split <= len; split++) {
		struct heard h;

		hear(kind, bytes, len, split, &h);
		if (strcmp(buf_str(&h.text), expected) != 0)
			print_error("split at %zu of:\n%s\n", split, bytes);
		assert_string_equal(buf_str(&h.text), expected);
		buf_done(&h.text);
	}
}

static void test_requests_at_every_split(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		check_sample(HTTP1_REQUEST, requests[i].bytes, requests[i].heard);
}

static void test_responses_at_every_split(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(responses); i++)
		check_sample(HTTP1_RESPONSE, responses[i].bytes, responses[i].heard);
}

static void test_bad_chunks_at_every_split(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_chunks); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);

		buf_puts(&b, CHUNKED);
		buf_puts(&b, bad_chunks[i]);
		for (size_t split = 0; split <= b.len; split++) {
			struct heard h;

			hear(HTTP1_REQUEST, b.data, b.len, split, &h);
			if (!h.error_status)
				print_error("accepted: %s\n", bad_chunks[i]);
			assert_int_not_equal(h.error_status, 0);
			assert_int_equal(h.messages, 0);
			buf_done(&h.text);
		}
	}
}

static void test_byte_by_byte(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct heard h = {.text = BUF_INIT(1 << 16)};
		const char *s = requests[i].bytes;
		struct http1 p;

		http1_init(&p, HTTP1_REQUEST);
		while (*s && feed(&p, &h, s, 1))
			s++;
		assert_string_equal(buf_str(&h.text), requests[i].heard);
		buf_done(&h.text);
		http1_done(&p);
	}
}

static void test_nul_bytes_are_refused(void **state)
{
	static const char in_line[] = "GET /\0 HTTP/1.1\r\n" HOST "\r\n";
	static const char in_field[] = "GET / HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n";
	static const char in_name[] = "GET / HTTP/1.1\r\n" HOST "A\0: b\r\n\r\n";
	static const char in_body[] = "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\na\0b";
	struct heard h;

	hear(HTTP1_REQUEST, in_line, sizeof(in_line) - 1, 0, &h);
	assert_int_equal(h.error_status, 400);
	buf_done(&h.text);
	hear(HTTP1_REQUEST, in_field, sizeof(in_field) - 1, 0, &h);
	assert_int_equal(h.error_status, 400);
	buf_done(&h.text);
	hear(HTTP1_REQUEST, in_name, sizeof(in_name) - 1, 0, &h);
	assert_int_equal(h.error_status, 400);
	buf_done(&h.text);
	hear(HTTP1_REQUEST, in_body, sizeof(in_body) - 1, 0, &h); /* but a body is any bytes */
	assert_int_equal(h.messages, 1);
	buf_done(&h.text);
}

/* A request of given sizes: target of @line bytes in all, @fields fields that sum up to @bytes. */
static void make_sized(struct buf *b, size_t line, size_t fields, size_t bytes)
{
	size_t start;

	buf_puts(b, "GET /");
	while (b->len < line - 9)
		buf_putc(b, 'a');
	buf_puts(b, " HTTP/1.1\r\n");
	start = b->len;
	buf_puts(b, HOST);
	for (size_t i = 2; i < fields; i++)
		buf_puts(b, "a:b\r\n");
	if (fields > 1) {
		buf_puts(b, "long:");
		while (b->len - start < bytes - 4)
			buf_putc(b, 'x');
		buf_puts(b, "\r\n");
	}
	buf_puts(b, "\r\n");
}

static int sized_status(size_t line, size_t fields, size_t bytes)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct heard h;

	make_sized(&b, line, fields, bytes);
	hear(HTTP1_REQUEST, b.data, b.len, b.len / 2, &h);
	buf_done(&h.text);
	return h.error_status;
}

static void test_ceilings_of_the_head(void **state)
{
	assert_int_equal(sized_status(HTTP_LINE_MAX, 1, 0), 0);
	assert_int_equal(sized_status(HTTP_LINE_MAX + 1, 1, 0), 414);
	assert_int_equal(sized_status(100, HTTP_FIELDS_MAX, 1000), 0);
	assert_int_equal(sized_status(100, HTTP_FIELDS_MAX + 1, 1000), 431);
	assert_int_equal(sized_status(100, 3, HTTP_HEAD_MAX), 0);
	assert_int_equal(sized_status(100, 3, HTTP_HEAD_MAX + 1), 431);
	assert_int_equal(sized_status(HTTP_LINE_MAX, HTTP_FIELDS_MAX, HTTP_HEAD_MAX), 0);
}

/* What never ends a line is refused at the ceiling, not when memory is full. */
static void test_endless_lines(void **state)
{
	static const struct {
		const char *start;
		int status;
		size_t most;
	} cases[] = {
		{"GET /", 414, HTTP_LINE_MAX + 2},
		{"GET / HTTP/1.1\r\nA: ", 431, HTTP_HEAD_MAX},
		{CHUNKED, 400, 256},
		{CHUNKED "0\r\nA: ", 431, HTTP_HEAD_MAX},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct heard h = {.text = BUF_INIT(1 << 16)};
		struct http1 p;
		size_t n = 0;

		http1_init(&p, HTTP1_REQUEST);
		assert_true(feed(&p, &h, cases[i].start, strlen(cases[i].start)));
		while (feed(&p, &h, "1", 1))
			assert_true(++n <= cases[i].most);
		assert_int_equal(h.error_status, cases[i].status);
		assert_true(p.text.cap <= HTTP_LINE_MAX + HTTP_HEAD_MAX + 32);
		buf_done(&h.text);
		http1_done(&p);
	}
}

/* The status for a body of 10 bytes, of 6 and 4 if chunked, where @max are allowed. */
static int body_status(enum http1_kind kind, bool chunked, uint64_t max)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	struct http1 p;
	size_t used;
	enum http1_event e = HTTP1_MORE;

	buf_puts(&b, kind == HTTP1_REQUEST ? "POST / HTTP/1.1\r\n" HOST : "HTTP/1.1 200 OK\r\n");
	if (chunked)
		buf_puts(&b,
			"Transfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n4\r\n6789\r\n0\r\n\r\n");
	else
		buf_puts(&b, "Content-Length: 10\r\n\r\n0123456789");
	http1_init(&p, kind);
	for (size_t at = 0; e != HTTP1_ERROR && e != HTTP1_END; at += used) {
		e = http1_feed(&p, b.data + at, b.len - at, &used);
		if (e == HTTP1_HEAD)
			p.body_max = max;
	}
	http1_done(&p);
	return e == HTTP1_ERROR ? p.error_status : 0;
}

static void test_ceiling_of_the_body(void **state)
{
	for (int chunked = 0; chunked < 2; chunked++) {
		for (int kind = 0; kind < 2; kind++) {
			assert_int_equal(body_status((enum http1_kind)kind, chunked, 10), 0);
			assert_int_equal(body_status((enum http1_kind)kind, chunked, 9), 413);
			assert_int_equal(body_status((enum http1_kind)kind, chunked, 0), 413);
		}
	}
}

static void test_response_until_the_end(void **state)
{
	struct heard h = {.text = BUF_INIT(1 << 16)};
	struct http1 p;

	http1_init(&p, HTTP1_RESPONSE);
	p.body_max = 8;
	assert_true(http1_is_between(&p));
	assert_true(feed(&p, &h, "HTTP/1.1 200 OK\r\n\r\nhalf", 23));
	assert_false(http1_is_between(&p));
	assert_false(p.keep_alive);
	assert_true(feed(&p, &h, "half", 4));
	assert_int_equal(http1_eof(&p), HTTP1_END);
	assert_string_equal(buf_str(&h.text), "200 1.1 |halfhalf");
	http1_next(&p);
	assert_true(http1_is_between(&p));
	p.body_max = 3;
	assert_false(feed(&p, &h, "HTTP/1.1 200 OK\r\n\r\nhalf", 23));
	assert_int_equal(h.error_status, 413);
	http1_done(&p);
	/* cut off */
	http1_init(&p, HTTP1_RESPONSE);
	assert_true(feed(&p, &h, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhalf", 42));
	assert_int_equal(http1_eof(&p), HTTP1_ERROR);
	http1_done(&p);
	/* HEAD's */
	http1_init(&p, HTTP1_RESPONSE);
	buf_clear(&h.text);
	p.no_body = true;
	assert_true(feed(&p, &h, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 38));
	assert_string_equal(buf_str(&h.text), "200 1.1 content-length=5;||.\n");
	http1_done(&p);
	buf_done(&h.text);
}

static void test_tokens_of_lists(void **state)
{
	assert_true(http1_has_token("close", "close"));
	assert_true(http1_has_token(" a ,\tCLOSE\t, b", "close"));
	assert_true(http1_has_token(",,close", "close"));
	assert_false(http1_has_token("closed", "close"));
	assert_false(http1_has_token("not close", "close"));
	assert_false(http1_has_token("", "close"));
	assert_false(http1_has_token(" , ", "close"));
}

static uint32_t draw(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* mutate - 1 to 4 bytes changed, removed, doubled, or replaced by one that means something. */
static void mutate(char *s, size_t *len, size_t size, uint32_t *seed)
{
	static const char special[] = "\r\n\0 :;,0123456789aAfF\t\x7f\xff/%-+";

	for (uint32_t n = draw(seed) % 4 + 1; n && *len > 1; n--) {
		size_t at = draw(seed) % *len;

		switch (draw(seed) % 4) {
		case 0: s[at] = (char)draw(seed); break;
		case 1: s[at] = special[draw(seed) % (sizeof(special) - 1)]; break;
		case 2: memmove(s + at, s + at + 1, --*len - at); break;
		default:
			if (*len < size) {
				memmove(s + at + 1, s + at, *len - at);
				++*len;
			}
		}
	}
}

/* However a damaged message is cut, the same comes out; and nothing reads past the bytes. */
static void test_mutations_do_not_depend_on_splits(void **state)
{
	uint32_t seed = 20260731, accepted = 0, refused = 0;

	for (int i = 0; i < 20000; i++) {
		bool response = i % 3 == 0;
		const struct sample *s = response ? &responses[draw(&seed) % ARRAY_SIZE(responses)]
						  : &requests[draw(&seed) % ARRAY_SIZE(requests)];
		enum http1_kind kind = response ? HTTP1_RESPONSE : HTTP1_REQUEST;
		struct heard whole, cut;
		char bytes[512];
		size_t len = strlen(s->bytes);

		assert_true(len < sizeof(bytes));
		memcpy(bytes, s->bytes, len);
		mutate(bytes, &len, sizeof(bytes), &seed);
		hear(kind, bytes, len, len, &whole);
		hear(kind, bytes, len, draw(&seed) % (len + 1), &cut);
		assert_int_equal(whole.error_status, cut.error_status);
		assert_int_equal(whole.messages, cut.messages);
		assert_int_equal(whole.text.len, cut.text.len);
		assert_memory_equal(buf_str(&whole.text), buf_str(&cut.text), cut.text.len);
		*(whole.error_status ? &refused : &accepted) += 1;
		buf_done(&whole.text);
		buf_done(&cut.text);
	}
	/* Both must have been met, or the mutations are too weak or too strong. */
	assert_true(accepted > 1000);
	assert_true(refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_at_every_split),
		cmocka_unit_test(test_responses_at_every_split),
		cmocka_unit_test(test_bad_chunks_at_every_split),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_nul_bytes_are_refused),
		cmocka_unit_test(test_ceilings_of_the_head),
		cmocka_unit_test(test_endless_lines),
		cmocka_unit_test(test_ceiling_of_the_body),
		cmocka_unit_test(test_response_until_the_end),
		cmocka_unit_test(test_tokens_of_lists),
		cmocka_unit_test(test_mutations_do_not_depend_on_splits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
