/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - one request: whether it is let in, its handler, its reply. See server_private.h.
 *
 * Invariants:
 *  1. An exchange outlives its connection until it has been replied to: whoever answers later need
 *     not know whether the peer is still there. It owns every string of its request.
 *  2. Nothing of a request reaches a handler before Host, Origin, route and token were looked at,
 *     and no body is kept for one that was refused. */
#include "net/server/server_private.h"

int exchange_new(struct connection *c, struct http_exchange **ret)
{
	_cleanup_(exchange_freep) struct http_exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->text = BUF_INIT(HTTP_LINE_MAX + HTTP_HEAD_MAX + 1024);
	x->body = BUF_INIT(0);
	x->server = c->server;
	memcpy(x->peer, c->peer, sizeof(x->peer));
	x->address = peer_key(&c->remote);
	x->q.peer = x->peer;
	x->q.path = x->q.query = "";
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
	else if (x->orphan && x->server)
		TAILQ_REMOVE(&x->server->orphans, x, link);
	for (size_t i = 0; i < x->field_count; i++) {
		free(x->fields[i].name);
		free(x->fields[i].value);
	}
	exchange_drop_body(x);
	buf_done(&x->text);
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
	exchange_drop_body(x);
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
	struct http_target t;

	x->server->stats.requests++;
	x->target = strdup(target);
	if (!x->target) {
		exchange_refuse(x, 503, "out of memory for this request");
		return;
	}
	x->q.path = "/";
	x->q.query = "";
	if (http_target_parse(x->target, &t) < 0) {
		exchange_refuse(x, 400, "invalid escape in the path");
		return;
	}
	x->q.path = t.path;
	x->q.query = t.query;
	/* The host in a whole URL goes before the field (RFC 9112, 3.2.2). */
	if (admit_host(x, t.authority ? t.authority : authority) && admit_route(x) &&
		exchange_admit_asker(x))
		exchange_admit_body(x);
}

void exchange_dispatch(struct http_exchange *x)
{
	struct http_server *s = x->server;

	x->dispatched = true;
	if (!x->refused)
		exchange_end_body(x);
	if (x->refused) {
		s->stats.rejected++;
		if (s->refused)
			s->refused(s->arg, x, &x->q, x->refused);
		http_reply_error(x, x->refused, "%s", x->why);
		return;
	}
	x->q.body = buf_str(&x->body);
	x->q.body_len = x->body.len;
	x->route->handler(x->route->arg ? x->route->arg : s->arg, x, &x->q);
}

void exchange_gone(struct http_exchange *x)
{
	loop_fn *gone = x->gone;
	bool waits = x->dispatched && !x->replied;

	TAILQ_REMOVE(&x->conn->exchanges, x, link);
	x->conn->bodies -= x->held_bytes;
	x->conn = NULL;
	if (!waits) {
		exchange_free(x);
		return;
	}
	if (x->server)
		TAILQ_INSERT_TAIL(&x->server->orphans, x, link);
	x->orphan = true;
	if (gone)
		gone(x->gone_arg);
}

void http_on_gone(struct http_exchange *x, loop_fn *fn, void *arg)
{
	x->gone = fn;
	x->gone_arg = arg;
}
