/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - joins the HTTP server, the lanes and the API.
 *
 * Invariants:
 *  1. An exchange is touched on the loop's thread alone; a lane sees copies of what was asked.
 *  2. Each exchange gets one reply, also if its client has gone: the lane's answer is then for
 * nobody. */
#include "agent/serve/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/serve/serve_private.h"
#include "web/web.h"

#define READ_THREADS  4
#define HEAVY_THREADS 2
#define HEAVY_NICE    5 /* who traces and who asks for less comes first */
#define SQL_THREADS   4 /* as many as may run at once: sql_worker.h */
#define QUEUE_MAX     64

struct pending { /* a call and whom it answers */
	struct serve_call call;
	struct http_exchange *x;
	serve_fn *fn;
	char node[NODE_MAX]; /* found on the way */
	bool is_named;
};

static void pending_free(struct pending *p)
{
	free(p->call.path);
	free(p->call.query);
	free(p->call.body);
	buf_done(&p->call.out);
	free(p);
}

void serve_put_node(const struct serve *s, struct http_exchange *x)
{
	if (s->node[0])
		http_reply_field(x, "x-ingero-node", s->node);
}

/* ---- whose recording it is ---- */

static int take_node(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table nodes = {0};
	char *out = arg;
	int r = nodedb_snapshot_list(l, NODEDB_NODES, &(struct scope){0}, 1, &nodes, reterr);

	if (r == 0 && nodes.row_count)
		snprintf(out, NODE_MAX, "%s", table_text(&nodes, 0, 0));
	return r;
}

/* Only what the recording says: it may have been made on another machine than this one. */
static bool find_node(const char *db, char out[NODE_MAX])
{
	out[0] = 0;
	if (nodedb_snapshot_read(db, take_node, out, NULL) < 0)
		return false;
	/* It becomes a field of replies: nothing that would end one. */
	for (char *p = out; *p; p++)
		if (*p <= ' ' || *p > '~')
			*p = '?';
	return true;
}

/* ---- calls ---- */

/* On the loop. */
static void finish(void *arg)
{
	struct pending *p = arg;
	struct serve_call *c = &p->call;

	if (p->is_named && c->serve->is_nameless) {
		memcpy(c->serve->node, p->node, sizeof(p->node));
		c->serve->is_nameless = false;
	}
	serve_put_node(c->serve, p->x);
	if (c->retry_after[0])
		http_reply_field(p->x, "retry-after", c->retry_after);
	if (c->age[0])
		http_reply_field(p->x, "age", c->age);
	if (c->out.err)
		http_reply_error(p->x, 500, "the answer found no room in memory");
	else
		http_reply(p->x, c->status, c->type, buf_str(&c->out), c->out.len);
	pending_free(p);
}

/* On a lane's thread. */
static void work(void *arg)
{
	struct pending *p = arg;

	if (p->call.serve->is_nameless)
		p->is_named = find_node(p->call.serve->settings.db, p->node);
	p->fn(&p->call);
	while (loop_call(p->call.serve->loop, finish, p) < 0)
		; /* no memory for a list's entry: there will be */
}

static struct pending *pending_new(
	struct serve *s, struct http_exchange *x, const struct http_request *q, serve_fn *fn)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->x = x;
	p->fn = fn;
	p->call = (struct serve_call){.serve = s,
		.path = strdup(q->path),
		.query = strdup(q->query),
		.body = malloc(q->body_len + 1),
		.body_len = q->body_len,
		.status = 200,
		.out = BUF_INIT(SERVE_REPLY_MAX)};
	if (!p->call.path || !p->call.query || !p->call.body) {
		pending_free(p);
		return NULL;
	}
	if (q->body_len)
		memcpy(p->call.body, q->body, q->body_len);
	p->call.body[q->body_len] = 0;
	return p;
}

void serve_later(struct serve *s, enum serve_lane lane, struct http_exchange *x,
	const struct http_request *q, serve_fn *fn, const void *data)
{
	struct pending *p = pending_new(s, x, q, fn);

	if (p) {
		p->call.data = data;
		if (pool_push(s->lanes[lane], work, p) == 0)
			return;
		pending_free(p);
	}
	serve_put_node(s, x);
	http_reply_field(x, "retry-after", "1");
	http_reply_error(x, 503, "too many requests are waiting: try again in a moment");
}

/* ---- errors ---- */

static int status_of(int err)
{
	switch (err) {
	case -EINVAL:
	case -EPERM:
	case -E2BIG: return 400;
	case -ESRCH: return 404;
	case -ETIMEDOUT: return 408;
	case -EMSGSIZE: return 413;
	case -EBUSY:
	case -EAGAIN:
	case -ENOENT:
	case -ENOMEM:
	case -EBADMSG: return 503;
	default: return 500;
	}
}

void serve_error(struct serve_call *c, int err, const struct errinfo *e, const char *hint)
{
	struct json_writer w;

	c->status = status_of(err);
	if (c->status == 503)
		snprintf(c->retry_after, sizeof(c->retry_after), "1");
	buf_done(&c->out);
	c->out = BUF_INIT(SERVE_REPLY_MAX);
	w = json_writer_to_buf(&c->out);
	json_begin_object(&w);
	json_string_member(&w, "error", e->text[0] ? e->text : strerror(-err));
	if (hint && hint[0])
		json_string_member(&w, "hint", hint);
	json_end_object(&w);
	json_finish(&w);
}

/* ---- routes ---- */

static const struct api_row *find_row(const struct http_request *q)
{
	const char *method = !strcmp(q->method, "HEAD") ? "GET" : q->method;

	for (const struct api_row *r = api_rows; r->method; r++)
		if (!strcmp(r->path, q->path) && !strcmp(r->method, method))
			return r;
	return NULL;
}

/* Of every row that takes time. */
static void handle(void *arg, struct http_exchange *x, const struct http_request *q)
{
	const struct api_row *row = find_row(q);

	if (row)
		serve_later(arg, row->lane, x, q, row->answer ? api_answer : row->make, row);
	else
		http_reply_error(x, 404, "there is nothing here");
}

static size_t count_rows(const struct http_route *more)
{
	size_t n = 0;

	for (const struct api_row *r = api_rows; r->method; r++)
		n++;
	for (const struct web_file *f = web_next(NULL); f; f = web_next(f))
		n++;
	for (size_t i = 0; more && more[i].method; i++)
		n++;
	return n;
}

static struct http_route *make_routes(const struct http_route *more)
{
	struct http_route *routes = calloc(count_rows(more) + 1, sizeof(*routes));
	size_t n = 0;

	if (!routes)
		return NULL;
	for (const struct api_row *r = api_rows; r->method; r++)
		routes[n++] = (struct http_route){.method = r->method,
			.path = r->path,
			.handler = r->reply ? r->reply : handle,
			.open = r->open,
			.body_max = r->body_max};
	for (const struct web_file *f = web_next(NULL); f; f = web_next(f))
		routes[n++] = (struct http_route){"GET", f->path, api_page, .open = true};
	for (; more && more->method; more++)
		routes[n++] = *more;
	return routes;
}

/* ---- life ---- */

int serve_new(struct loop *l, const struct serve_settings *settings, struct serve **ret,
	struct errinfo *reterr)
{
	static const struct {
		unsigned threads;
		int nice;
	} lanes[LANE_COUNT] = {[LANE_READ] = {READ_THREADS, 0},
		[LANE_HEAVY] = {HEAVY_THREADS, HEAVY_NICE},
		[LANE_SQL] = {SQL_THREADS, 0}};
	_cleanup_(serve_freep) struct serve *s = calloc(1, sizeof(*s));
	_cleanup_free_ struct http_route *routes = make_routes(settings->routes);
	struct http_server_settings http = {.address = settings->address,
		.tls = settings->tls,
		.tokens = settings->tokens,
		.names = settings->names,
		.routes = routes,
		.arg = s};
	int r = s && routes ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	s->settings = *settings;
	s->loop = l;
	s->is_nameless = !find_node(settings->db, s->node);
	for (int i = 0; r == 0 && i < LANE_COUNT; i++)
		r = pool_new(lanes[i].threads, lanes[i].nice, QUEUE_MAX, &s->lanes[i]);
	if (r == 0)
		r = keep_new(&s->keep);
	if (r < 0)
		return errinfo_set(reterr, r, "no threads could be started: %s", strerror(-r));
	r = http_server_new(l, &http, &s->http, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void serve_free(struct serve *s)
{
	for (int i = 0; i < LANE_COUNT; i++)
		if (s->lanes[i])
			pool_free(s->lanes[i]);
	if (s->http)
		http_server_free(s->http);
	if (s->keep)
		keep_free(s->keep);
	free(s);
}

const char *serve_address(const struct serve *s)
{
	return http_server_address(s->http);
}

const char *serve_db(const struct serve *s)
{
	return s->settings.db;
}

void *serve_arg(const struct serve *s)
{
	return s->settings.arg;
}

bool serve_is_idle(struct serve *s)
{
	size_t n = 0;

	for (int i = 0; i < LANE_COUNT; i++)
		n += pool_load(s->lanes[i]);
	return n == 0;
}

void serve_drain(struct serve *s, loop_fn *done, void *arg)
{
	http_server_drain(s->http, done, arg);
}
