/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 messages: however the bytes are cut into pieces, the same messages come out. The first
 * byte says which side reads, the second how the pieces are cut. */
#include "base/buf.h"
#include "base/hash.h"
#include "fuzz.h"
#include "net/http1.h"

#define MESSAGES_MAX 64

struct transcript {
	struct buf text; /* all that was said of heads and ends */
	struct buf body;
};

static void note_head(struct transcript *t, const struct http1 *p)
{
	buf_printf(&t->text, "HEAD %s %s %d %d %d %d %lld\n", p->method ? p->method : "-",
		p->target ? p->target : "-", p->status, p->minor, p->keep_alive, p->chunked,
		(long long)p->content_length);
	MUST(p->head.count <= HTTP_FIELDS_MAX);
	for (size_t i = 0; i < p->head.count; i++) {
		const struct http_field *f = &p->head.field[i];

		MUST(!strpbrk(f->name, "\r\n :") && !strpbrk(f->value, "\r\n"));
		buf_printf(&t->text, "%s: %s\n", f->name, f->value);
	}
}

static void read_all(enum http1_kind kind, bool no_body, const uint8_t *data, size_t size,
	unsigned piece, struct transcript *t)
{
	enum http1_event e = HTTP1_MORE;
	const char *at = (const char *)data, *end = at + size;
	struct http1 p;
	int messages = 0;

	http1_init(&p, kind);
	p.no_body = no_body;
	while (at < end && e != HTTP1_ERROR && messages < MESSAGES_MAX) {
		size_t len = MIN((size_t)(end - at), (size_t)piece), used = 0;

		e = http1_feed(&p, at, len, &used);
		MUST(used <= len);
		if (e == HTTP1_MORE)
			MUST(used == len);
		if (e == HTTP1_HEAD)
			note_head(t, &p);
		if (e == HTTP1_DATA) {
			MUST(p.data >= at && p.data + p.data_len <= at + len && p.data_len);
			buf_append(&t->body, p.data, p.data_len);
		}
		at += used;
		if (e == HTTP1_END) {
			buf_printf(&t->text, "END %zu\n", t->body.len);
			messages++;
			http1_next(&p);
			MUST(http1_is_between(&p));
		}
		if (e == HTTP1_ERROR)
			buf_printf(&t->text, "ERROR %d %s\n", p.error_status, p.error);
	}
	if (e != HTTP1_ERROR && messages < MESSAGES_MAX && !http1_is_between(&p)) {
		e = http1_eof(&p);
		MUST(e == HTTP1_END || e == HTTP1_ERROR);
		buf_printf(&t->text, "EOF %d\n", e);
	}
	http1_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct transcript whole = {BUF_INIT(8 << 20), BUF_INIT(8 << 20)}, cut = whole;
	enum http1_kind kind;
	bool no_body;

	if (size < 2)
		return 0;
	kind = data[0] & 1 ? HTTP1_RESPONSE : HTTP1_REQUEST;
	no_body = data[0] & 2;
	read_all(kind, no_body, data + 2, size - 2, UINT32_MAX, &whole);
	read_all(kind, no_body, data + 2, size - 2, 1 + data[1] % 32, &cut);
	MUST(whole.text.len == cut.text.len && whole.body.len == cut.body.len);
	MUST(strcmp(buf_str(&whole.text), buf_str(&cut.text)) == 0);
	MUST(memcmp(buf_str(&whole.body), buf_str(&cut.body), cut.body.len) == 0);
	buf_done(&whole.text);
	buf_done(&whole.body);
	buf_done(&cut.text);
	buf_done(&cut.body);
	return 0;
}
