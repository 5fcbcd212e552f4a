/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - one request: whether it is let in, its handler, its reply. See server_private.h.
 *
 * Invariants:
 *  1. An exchange outlives its connection until it has been replied to: whoever answers later need
 *     not know whether the peer is still there. It owns every string of its request.
 *  2. Nothing of a request reaches a handler before Host, Origin, route and token were looked at,
 *     and no body is kept for one that was refused. */
#include "net/server_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/text.h"
#include "net/target.h"

int exchange_new(struct connection *c, struct http_exchange **ret)
{
	_cleanup_(exchange_freep) struct http_exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->text = BUF_INIT(HTTP_LINE_MAX + HTTP_HEAD_MAX + 1024);
	x->body = BUF_INIT(0);
	x->server = c->server;
	memcpy(x->peer, c->peer, sizeof(x->peer));
	x->q.peer = x->peer;
	if (c->subject) {
		x->subject = strdup(c->subject);
		if (!x->subject)
			return -ENOMEM;
		x->q.subject = x->subject;
	}
	x->conn = c;
	TAILQ_INSERT_TAIL(&c->exchanges, x, link);
	*ret = TAKE(x);
	return 0;
}

void exchange_free(struct http_exchange *x)
{
	if (x->conn)
		TAILQ_REMOVE(&x->conn->exchanges, x, link);
	for (size_t i = 0; i < x->field_count; i++) {
		free(x->fields[i].name);
		free(x->fields[i].value);
	}
	buf_done(&x->text);
	buf_done(&x->body);
	free(x->target);
	free(x->subject);
	free(x->reply);
	free(x);
}

bool exchange_is_head(const struct http_exchange *x)
{
	return x->q.method && strcmp(x->q.method, "HEAD") == 0;
}

void exchange_refuse(struct http_exchange *x, int status, const char *fmt, ...)
{
	va_list ap;

	x->refused = status;
	x->route = NULL;
	buf_done(&x->body);
	va_start(ap, fmt);
	vsnprintf(x->why, sizeof(x->why), fmt, ap);
	va_end(ap);
}

/* Fields that decide who may ask must not be there twice: which one counts? */
static bool has_twice(const struct http_head *h, const char *name)
{
	unsigned n = 0;

	for (size_t i = 0; i < h->count; i++)
		n += strcmp(h->field[i].name, name) == 0;
	return n > 1;
}

static bool admit_host(struct http_exchange *x, const char *authority)
{
	const char *host = authority ? authority : http_head_get(&x->q.head, "host");
	const char *origin = http_head_get(&x->q.head, "origin");
	const struct allow *allow = x->server->allow;

	if (has_twice(&x->q.head, "host") || has_twice(&x->q.head, "origin") ||
		has_twice(&x->q.head, "authorization")) {
		exchange_refuse(x, 400, "duplicate Host, Origin or Authorization");
		return false;
	}
	if (!host) {
		exchange_refuse(x, 400, "missing Host");
		return false;
	}
	if (!allow_host(allow, host, &x->conn->local)) {
		exchange_refuse(x, 403,
			"unknown name in Host: use an address or a name in the certificate, or start the server with --allow-host NAME");
		return false;
	}
	if (origin && !allow_origin(allow, origin, &x->conn->local)) {
		exchange_refuse(x, 403, "requests from that Origin are not allowed");
		return false;
	}
	return true;
}

static bool path_matches(const struct http_route *r, const char *path, size_t *ret_len)
{
	size_t len = strlen(r->path);

	*ret_len = len;
	if (strcmp(r->path, path) == 0) {
		*ret_len = len + 1; /* exact goes before a prefix */
		return true;
	}
	return len > 1 && r->path[len - 1] == '/' && strncmp(r->path, path, len) == 0;
}

static bool method_matches(const struct http_route *r, const char *method)
{
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	return strcmp(r->method, method) == 0;
}

/* list_methods - the routes for @path may be asked with these; the longest match counts. */
static bool list_methods(struct http_exchange *x, char *out, size_t size)
{
	const struct http_server *s = x->server;
	size_t best = 0, at = 0, len;

	for (size_t i = 0; i < s->route_count; i++)
		if (path_matches(&s->routes[i], x->q.path, &len))
			best = MAX(best, len);
	out[0] = 0;
	for (size_t i = 0; i < s->route_count && best && at < size; i++) {
		const struct http_route *r = &s->routes[i];

		if (!path_matches(r, x->q.path, &len) || len != best)
			continue;
		if (method_matches(r, x->q.method))
			x->route = r;
		at += (size_t)snprintf(out + at, size - at, "%s%s%s", at ? ", " : "", r->method,
			strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
	}
	return best > 0;
}

static bool admit_route(struct http_exchange *x)
{
	char methods[128];

	if (!list_methods(x, methods, sizeof(methods))) {
		exchange_refuse(x, 404, "no such path");
		return false;
	}
	if (!x->route) {
		exchange_refuse(x, 405, "method not allowed: use %s", methods);
		http_reply_field(x, "allow", methods);
		return false;
	}
	return true;
}

void exchange_admit(struct http_exchange *x, const char *target, const char *authority)
{
	struct target t;

	x->server->stats.requests++;
	x->target = strdup(target);
	if (!x->target) {
		exchange_refuse(x, 503, "out of memory for this request");
		return;
	}
	x->q.path = "/";
	x->q.query = "";
	if (target_parse(x->target, &t) < 0) {
		exchange_refuse(x, 400, "invalid escape in the path");
		return;
	}
	x->q.path = t.path;
	x->q.query = t.query;
	/* The host in a whole URL goes before the field (RFC 9112, 3.2.2). */
	if (!admit_host(x, t.authority ? t.authority : authority) || !admit_route(x) ||
		!exchange_admit_asker(x))
		return;
	x->body = BUF_INIT(exchange_body_max(x));
}

size_t exchange_body_max(const struct http_exchange *x)
{
	return x->route && x->route->body_max ? x->route->body_max : HTTP_BODY_MAX;
}

int exchange_add_body(struct http_exchange *x, const void *data, size_t len)
{
	if (x->refused)
		return 0;
	buf_append(&x->body, data, len);
	return x->body.err;
}

void exchange_dispatch(struct http_exchange *x)
{
	x->dispatched = true;
	if (x->refused) {
		x->server->stats.rejected++;
		http_reply_error(x, x->refused, "%s", x->why);
		return;
	}
	x->q.body = buf_str(&x->body);
	x->q.body_len = x->body.len;
	x->route->handler(x->server->arg, x, &x->q);
}

void exchange_gone(struct http_exchange *x)
{
	loop_fn *gone = x->gone;
	bool waits = x->dispatched && !x->replied;

	TAILQ_REMOVE(&x->conn->exchanges, x, link);
	x->conn = NULL;
	if (!waits)
		exchange_free(x);
	else if (gone)
		gone(x->gone_arg);
}

void http_on_gone(struct http_exchange *x, loop_fn *fn, void *arg)
{
	x->gone = fn;
	x->gone_arg = arg;
}

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

static void set_field(struct http_exchange *x, const char *name, const char *value, bool replace)
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

void http_reply_field(struct http_exchange *x, const char *name, const char *value)
{
	if (find_field(x, name) < ADDED_FIELDS)
		set_field(x, name, value, true);
}

static void set_date(struct http_exchange *x)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[40];

	if (gmtime_r(&now, &tm) && strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		set_field(x, "date", text, false);
}

void http_reply(struct http_exchange *x, int status, const char *type, const void *body, size_t len)
{
	struct connection *c = x->conn;

	if (!c) {
		exchange_free(x);
		return;
	}
	if (status != 204 && status != 304)
		set_field(x, "content-type", type ? type : "application/json", false);
	set_field(x, "x-content-type-options", "nosniff", false);
	set_field(x, "cache-control", "no-store", false);
	set_field(x, "referrer-policy", "no-referrer", false);
	set_date(x);
	connection_enter(c);
	c->protocol->reply(x, status, body, len);
	connection_leave(c);
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
	buf_puts(&json, "{\"error\": \"");
	for (const char *c = buf_str(&text); *c; c++) {
		if (*c == '"' || *c == '\\')
			buf_putc(&json, '\\');
		buf_putc(&json, *c);
	}
	buf_puts(&json, "\"}\n");
	http_reply(x, status, NULL, json.data, json.len);
}
