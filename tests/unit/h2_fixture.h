/* SPDX-License-Identifier: Apache-2.0 */
/* h2_fixture.h - HTTP/2 spoken to a server frame by frame: a client library would not misbehave. */
#pragma once

#include "server_fixture.h"

#include <nghttp2/nghttp2.h>
#include <unistd.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* ---- frames ---- */

struct peer {
	int fd;
	nghttp2_hd_inflater *inflater;
	char fields[8192]; /* of the last block, a line each */
};

static inline void put_frame(
	struct buf *b, int type, int flags, int32_t stream, const void *data, size_t len)
{
	const unsigned char head[9] = {(unsigned char)(len >> 16), (unsigned char)(len >> 8),
		(unsigned char)len, (unsigned char)type, (unsigned char)flags,
		(unsigned char)(stream >> 24), (unsigned char)(stream >> 16),
		(unsigned char)(stream >> 8), (unsigned char)stream};

	buf_append(b, head, sizeof(head));
	buf_append(b, data, len);
}

static inline void send_frame(
	struct peer *p, int type, int flags, int32_t stream, const void *data, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	put_frame(&b, type, flags, stream, data, len);
	say_bytes(p->fd, b.data, b.len);
}

static inline void put_int(struct buf *b, size_t n) /* HPACK's, with a prefix of 7 bits */
{
	if (n < 127) {
		buf_putc(b, (char)n);
		return;
	}
	buf_putc(b, 127);
	for (n -= 127; n >= 128; n >>= 7)
		buf_putc(b, (char)(n | 128));
	buf_putc(b, (char)n);
}

/* A field as literal text, not remembered. */
static inline void put_field(struct buf *b, const char *name, const char *value)
{
	buf_putc(b, 0);
	put_int(b, strlen(name));
	buf_puts(b, name);
	put_int(b, strlen(value));
	buf_puts(b, value);
}

static inline void put_request(struct buf *b, const char *method, const char *path)
{
	put_field(b, ":method", method);
	put_field(b, ":scheme", "http");
	put_field(b, ":path", path);
	put_field(b, ":authority", "localhost");
}

#define END_STREAM  NGHTTP2_FLAG_END_STREAM
#define END_HEADERS NGHTTP2_FLAG_END_HEADERS

static inline void send_request(
	struct peer *p, int32_t stream, const char *method, const char *path, bool ends)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	put_request(&b, method, path);
	send_frame(
		p, NGHTTP2_HEADERS, END_HEADERS | (ends ? END_STREAM : 0), stream, b.data, b.len);
}

static inline void meet_from(struct bench *b, struct peer *p, const char *source)
{
	p->fd = dial_from(b, source);
	assert_int_equal(nghttp2_hd_inflate_new(&p->inflater), 0);
	say(p->fd, PREFACE);
	send_frame(p, NGHTTP2_SETTINGS, 0, 0, "", 0);
}

static inline void meet(struct bench *b, struct peer *p)
{
	meet_from(b, p, NULL);
}

static inline void part(struct peer *p)
{
	nghttp2_hd_inflate_del(p->inflater);
	close(p->fd);
}

struct frame {
	int type; /* -1: the connection has ended */
	int flags;
	int32_t stream;
	size_t len;
	unsigned char data[32768];
};

static inline bool hear_all(int fd, void *out, size_t len)
{
	char *p = out;

	while (len) {
		size_t n = hear_some(fd, p, len);

		if (!n)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

static inline const struct frame *hear_frame(struct peer *p)
{
	static struct frame f;
	unsigned char head[9];

	f.type = -1;
	if (!hear_all(p->fd, head, sizeof(head)))
		return &f;
	f.len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	assert_true(f.len <= sizeof(f.data));
	f.flags = head[4];
	f.stream = head[5] << 24 | head[6] << 16 | head[7] << 8 | head[8];
	if (hear_all(p->fd, f.data, f.len))
		f.type = head[3];
	return &f;
}

/* status_of - of a block of fields, which are kept as text; 0: it has none. */
static inline int status_of(struct peer *p, const struct frame *f)
{
	const unsigned char *in = f->data;
	size_t left = f->len, at = 0;
	int status = 0, flags;

	p->fields[0] = 0;
	do {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(p->inflater, &nv, &flags, in, left, 1);

		assert_true(n >= 0);
		in += n;
		left -= (size_t)n;
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
			continue;
		if (strcmp((char *)nv.name, ":status") == 0)
			status = atoi((char *)nv.value);
		at += (size_t)snprintf(p->fields + at, sizeof(p->fields) - at, "%s: %s\n",
			(char *)nv.name, (char *)nv.value);
		assert_true(at < sizeof(p->fields));
	} while (left || flags & NGHTTP2_HD_INFLATE_EMIT);
	nghttp2_hd_inflate_end_headers(p->inflater);
	return status;
}

/* h2_status - of the final reply on @stream; -1: the connection ended, -2 - code: it was reset. */
static inline int h2_status(struct peer *p, int32_t stream)
{
	for (;;) {
		const struct frame *f = hear_frame(p);

		if (f->type == -1)
			return -1;
		if (f->type == NGHTTP2_HEADERS) {
			int status = status_of(p, f);

			if (f->stream == stream && status >= 200)
				return status;
		}
		if (f->type == NGHTTP2_RST_STREAM && f->stream == stream)
			return -2 - f->data[3];
	}
}

/* goaway_code - why the server ended the connection. */
static inline int goaway_code(struct peer *p)
{
	int code = -1;

	for (;;) {
		const struct frame *f = hear_frame(p);

		if (f->type == -1)
			return code;
		if (f->type == NGHTTP2_GOAWAY)
			code = f->data[7];
	}
}
