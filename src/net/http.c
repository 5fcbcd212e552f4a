/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - see http.h. */
#include "net/http.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

const char *http_head_get(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->field[i].name, name) == 0)
			return h->field[i].value;
	return NULL;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int http_unescape(const char *s, size_t len, bool form, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)s[i];

		if (c == '%') {
			int high = len - i > 2 ? hex_value(s[i + 1]) : -1;
			int low = high >= 0 ? hex_value(s[i + 2]) : -1;

			if (low < 0)
				return -EINVAL;
			c = high * 16 + low;
			i += 2;
		} else if (c == '+' && form) {
			c = ' ';
		}
		if (c == 0)
			return -EINVAL;
		if (n + 1 >= size)
			return -ENOBUFS;
		out[n++] = (char)c;
	}
	if (size == 0)
		return -ENOBUFS;
	out[n] = 0;
	return (int)n;
}

/* Whether the escaped @s (@len bytes) means @name. A name that is badly encoded means nothing. */
static bool names_equal(const char *s, size_t len, const char *name)
{
	char decoded[128];
	int n = http_unescape(s, len, true, decoded, sizeof(decoded));

	return n >= 0 && strcmp(decoded, name) == 0;
}

int http_query_get(const char *query, const char *name, char *out, size_t size, bool *ret_found)
{
	while (*query) {
		size_t len = strcspn(query, "&"), eq = strcspn(query, "=&");

		if (names_equal(query, eq, name)) {
			const char *value = query + (eq < len ? eq + 1 : len);
			size_t value_len = len - (size_t)(value - query);
			int r = http_unescape(value, value_len, true, out, size);

			if (r < 0)
				return r;
			*ret_found = true;
			return 0;
		}
		query += len;
		query += *query == '&';
	}
	*ret_found = false;
	return 0;
}

void http_escape(struct buf *b, const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";

	for (; *s; s++) {
		if (strchr(plain, *s))
			buf_putc(b, *s);
		else
			buf_printf(b, "%%%02X", (unsigned char)*s);
	}
}

const char *http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {
		{100, "Continue"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{304, "Not Modified"},
		{307, "Temporary Redirect"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{411, "Length Required"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Unknown";
}

/* ---- targets ---- */

static char empty[] = "";
static char root[] = "/";

/* Segments "." and ".." mean something to files and nothing here: whoever sends them is guessing.
 */
static bool has_dots(const char *path)
{
	for (const char *p = path; (p = strchr(p, '/')); p++) {
		size_t len = strcspn(p + 1, "/");

		if (len <= 2 && len > 0 && strspn(p + 1, ".") >= len)
			return true;
	}
	return false;
}

static int decode_path(char *path)
{
	size_t len = strlen(path);
	int r = http_unescape(path, len, false, path, len + 1);

	if (r < 0)
		return -EINVAL;
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return -EINVAL;
	return has_dots(path) ? -EINVAL : 0;
}

/* take_authority - of "http://host/path": moves behind it. */
static int take_authority(char **text, char **ret_authority)
{
	size_t scheme = strncasecmp(*text, "http://", 7) == 0    ? 7
			: strncasecmp(*text, "https://", 8) == 0 ? 8
								 : 0;
	char *host = *text + scheme;
	size_t len = strcspn(host, "/?");

	if (!scheme || len == 0)
		return -EINVAL;
	/* One place to the left makes room for the NUL; the scheme is not needed any more. */
	memmove(host - 1, host, len);
	host[len - 1] = 0;
	*ret_authority = host - 1;
	*text = host + len;
	return 0;
}

int http_target_parse(char *text, struct http_target *ret)
{
	struct http_target t = {.query = empty};
	char *query;

	if (text[0] != '/' && strcmp(text, "*") != 0 && take_authority(&text, &t.authority) < 0)
		return -EINVAL;
	query = strchr(text, '?');
	if (query) {
		*query = 0;
		t.query = query + 1;
	}
	t.path = *text ? text : root;
	if (strchr(t.query, '#') || strchr(t.path, '#'))
		return -EINVAL;
	if (t.path != root && decode_path(t.path) < 0)
		return -EINVAL;
	*ret = t;
	return 0;
}

/* See http.h. zlib does the work, in steps of PIECE bytes so that a bomb is
 * noticed after that many.
 *
 * gzip allows several members in a row; they are taken as one text, as gzip itself does, and the ratio
 * is that of all of them. */

#define PIECE     16384
#define GZIP_ONLY (15 + 16) /* windowBits: a window of 32 KiB, and gzip's header */
#define LEVEL     1 /* metrics become a tenth by it, and a twelfth by 6 in three times the time */
#define MEMORY    8 /* zlib's own choice: 256 KiB */

struct inflate {
	z_stream stream;
	uint64_t in, out;
	bool ended; /* at the end of a member */
};

int inflate_new(struct inflate **ret)
{
	struct inflate *z = calloc(1, sizeof(*z));

	if (!z || inflateInit2(&z->stream, GZIP_ONLY) != Z_OK) {
		free(z);
		return -ENOMEM;
	}
	*ret = z;
	return 0;
}

void inflate_free(struct inflate *z)
{
	inflateEnd(&z->stream);
	free(z);
}

bool inflate_is_complete(const struct inflate *z)
{
	return z->ended;
}

/* step - one call of zlib. */
static int step(struct inflate *z, struct buf *out, const char **ret_fault)
{
	unsigned char piece[PIECE];
	size_t before = z->stream.avail_in, n;
	int r;

	if (z->ended) /* another member */
		inflateReset(&z->stream);
	z->ended = false;
	z->stream.next_out = piece;
	z->stream.avail_out = sizeof(piece);
	r = inflate(&z->stream, Z_NO_FLUSH);
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) {
		*ret_fault = "the body is not valid gzip";
		return -EBADMSG;
	}
	z->ended = r == Z_STREAM_END;
	n = sizeof(piece) - z->stream.avail_out;
	z->in += before - z->stream.avail_in;
	z->out += n;
	if (z->out <= INFLATE_FREE || z->out / INFLATE_RATIO <= z->in)
		buf_append(out, piece, n);
	else
		out->err = -ENOBUFS;
	if (out->err == -ENOBUFS)
		*ret_fault = "the body inflates to too many bytes";
	return out->err == -ENOBUFS ? -E2BIG : out->err;
}

int inflate_feed(
	struct inflate *z, const void *data, size_t len, struct buf *out, const char **ret_fault)
{
	*ret_fault = "out of memory for this request";
	z->stream.next_in = (unsigned char *)data;
	z->stream.avail_in = (unsigned)len;
	/* A full piece may have more behind it, though all of the input is used. */
	do {
		int r = len ? step(z, out, ret_fault) : 0;

		if (r < 0)
			return r;
	} while (z->stream.avail_in || (len && !z->ended && !z->stream.avail_out));
	return 0;
}

int inflate_undo(const void *data, size_t len, struct buf *out)
{
	z_stream z = {.next_in = (unsigned char *)data, .avail_in = (unsigned)len};
	unsigned char piece[PIECE];
	int r = Z_OK;

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP_ONLY, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	while (r == Z_OK) {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		r = deflate(&z, Z_FINISH);
		buf_append(out, piece, sizeof(piece) - z.avail_out);
	}
	deflateEnd(&z);
	return r == Z_STREAM_END ? out->err : -ENOMEM;
}
