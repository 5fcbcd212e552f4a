/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_reply.c - the reply to a request, whatever carries it. See server_private.h. */
#include <strings.h>
#include <time.h>

#include "base/text.h"
#include "net/server/server_private.h"

#define RETRY_S                                                                                    \
	"1" /* after a 503 that names no other time: what is short now is mostly there again */

#define PACKED_MIN 1400 /* bytes: what fits one packet is not made smaller */
#define PACKED_MAX (64u << 20)

/* A field's value must not begin another field. */
static char *clean_value(const char *value)
{
	char *copy = strndup(value, FIELD_VALUE);

	for (char *c = copy; c && *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	return copy;
}

/* find_field - where @name is among the fields, or where it would be put. */
static size_t find_field(const struct http_exchange *x, const char *name)
{
	size_t i = 0;

	while (i < x->field_count && strcasecmp(x->fields[i].name, name) != 0)
		i++;
	return i;
}

/* Of the reply; one that is there already stays unless @replace. */
static void exchange_set_field(
	struct http_exchange *x, const char *name, const char *value, bool replace)
{
	size_t i = find_field(x, name);
	char *copy;

	if (i == REPLY_FIELDS || (i < x->field_count && !replace))
		return;
	copy = clean_value(value);
	if (!copy)
		return;
	if (i < x->field_count) {
		free(x->fields[i].value);
		x->fields[i].value = copy;
		return;
	}
	x->fields[i].name = strdup(name);
	if (!x->fields[i].name) {
		free(copy);
		return;
	}
	for (char *c = x->fields[i].name; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
	x->fields[i].value = copy;
	x->field_count++;
}

static const char *exchange_get_field(const struct http_exchange *x, const char *name)
{
	size_t i = find_field(x, name);

	return i < x->field_count ? x->fields[i].value : NULL;
}

void http_reply_field(struct http_exchange *x, const char *name, const char *value)
{
	if (find_field(x, name) < ADDED_FIELDS)
		exchange_set_field(x, name, value, true);
}

static void set_date(struct http_exchange *x)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[40];

	if (gmtime_r(&now, &tm) && strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		exchange_set_field(x, "date", text, false);
}

/* Whether @field, an Accept-Encoding, has gzip in it, and not with q=0. */
static bool accepts_gzip(const char *field)
{
	while (field && *field) {
		size_t len = strcspn(field, ","), skip = strspn(field, " \t");
		const char *q;

		if (strncasecmp(field + skip, "gzip", 4) == 0 &&
			strchr(" \t;,", field[skip + 4])) { /* or its end */
			q = memmem(field, len, "q=", 2);
			return !q || strtod(q + 2, NULL) > 0;
		}
		field += len + (field[len] == ',');
	}
	return false;
}

/* Metrics are a tenth as long, and are fetched all day. Other replies are not worth the loop's time. */
static bool pack(struct http_exchange *x, int status, const char *type, const void *body,
	size_t len, struct buf *out)
{
	if (status != 200 || !type || strncmp(type, "text/plain", 10) != 0 || len < PACKED_MIN)
		return false;
	exchange_set_field(x, "vary", "accept-encoding", false);
	if (!accepts_gzip(http_head_get(&x->q.head, "accept-encoding")) ||
		inflate_undo(body, len, out) < 0)
		return false;
	exchange_set_field(x, "content-encoding", "gzip", true);
	return true;
}

void http_reply(struct http_exchange *x, int status, const char *type, const void *body, size_t len)
{
	_cleanup_buf_ struct buf packed = BUF_INIT(PACKED_MAX);
	struct connection *c = x->conn;

	if (!c) {
		exchange_free(x);
		return;
	}
	if (x->q.grpc) {
		exchange_reply_grpc(x, status, http_status_text(status), body, len);
		return;
	}
	if (status != 204 && status != 304)
		exchange_set_field(x, "content-type", type ? type : "application/json", false);
	if (status == 503) /* whoever knows better has said so */
		exchange_set_field(x, "retry-after", RETRY_S, false);
	exchange_set_field(x, "x-content-type-options", "nosniff", false);
	exchange_set_field(x, "cache-control", "no-store", false);
	exchange_set_field(x, "referrer-policy", "no-referrer", false);
	set_date(x);
	if (pack(x, status, type, body, len, &packed)) {
		body = packed.data;
		len = packed.len;
	}
	connection_enter(c);
	c->protocol->reply(x, status, body, len);
	connection_leave(c);
}

static void put_error(struct buf *b, const char *text)
{
	buf_puts(b, "{\"error\": \"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_putc(b, '\\');
		buf_putc(b, *text);
	}
	buf_puts(b, "\"}\n");
}

void http_reply_error(struct http_exchange *x, int status, const char *fmt, ...)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4096), json = BUF_INIT(8192);
	char plain[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(plain, sizeof(plain), fmt, ap);
	va_end(ap);
	text_escape_terminal(&text, plain);
	if (x->q.grpc && x->conn) {
		exchange_reply_grpc(x, status, buf_str(&text), NULL, 0);
		return;
	}
	if (!x->server || !x->server->error_body ||
		!x->server->error_body(&json, x->q.path, status, buf_str(&text)))
		put_error(&json, buf_str(&text));
	http_reply(x, status, NULL, json.data, json.len);
}

/* ---- gRPC ---- */

static void set_error(struct http_exchange *x, int status, const char *text)
{
	_cleanup_buf_ struct buf message = BUF_INIT(GRPC_MESSAGE_MAX), detail = BUF_INIT(2048);
	const char *after = exchange_get_field(x, "retry-after");
	int code = grpc_status_for_http(status);
	char number[16];

	snprintf(number, sizeof(number), "%d", code);
	grpc_message_encode(&message, text);
	exchange_set_field(x, "grpc-status", number, true);
	exchange_set_field(x, "grpc-message", buf_str(&message), true);
	if (!after)
		return;
	grpc_retry_encode(&detail, code, text, strtoul(after, NULL, 10));
	if (!detail.err)
		exchange_set_field(x, "grpc-status-details-bin", buf_str(&detail), true);
}

void exchange_reply_grpc(
	struct http_exchange *x, int status, const char *text, const void *body, size_t len)
{
	_cleanup_buf_ struct buf framed = BUF_INIT(GRPC_FRAME + len);
	struct connection *c = x->conn;
	unsigned char frame[GRPC_FRAME];

	if (status == 200) {
		grpc_frame(frame, len, false);
		buf_append(&framed, frame, sizeof(frame));
		buf_append(&framed, body, len);
		if (framed.err) {
			status = 503;
			text = "out of memory for this reply";
			buf_done(&framed);
		}
	}
	if (status != 200)
		set_error(x, status, text);
	exchange_set_field(x, "content-type", "application/grpc", true);
	connection_enter(c);
	c->protocol->reply(x, 200, framed.data, framed.len);
	connection_leave(c);
}
