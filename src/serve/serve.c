/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - joins the HTTP server, the lanes and the API.
 *
 * Invariants:
 *  1. An exchange is touched on the loop's thread alone; a lane sees copies of what was asked.
 *  2. Each exchange gets one reply, also if its client has gone: the lane's answer is then for
 * nobody. */
#include "serve/serve.h"

#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>

#include "base/path_user.h"
#include "serve/serve_private.h"
#include "sql/sql_worker.h"
#include "web/web.h"

#define SERVE_REPLY_MAX (12u << 20)

struct serve_plan {
	enum serve_lane lane;
	/* On the loop, before it waits; NULL: nothing. A failure is the reply. */
	int (*begin)(struct serve_call *c, struct errinfo *reterr);
	serve_fn *fn; /* on a thread of the lane */
	const void *data;
};
DEFINE_CLEANUP(struct serve *, serve_free)

/* See docs/adr/0011-confined-tracer.md.
 *
 * A recording may be another user's (that of the one who called sudo): CAP_DAC_OVERRIDE reads it and lets
 * SQLite make the file that a live one needs beside it, which landlock allows in that folder alone; with
 * CAP_SETUID a thread takes that user's rights to files (setfsuid; setuid is no call of a server's). */

/* The folder of @path, if it is there. */
static size_t add_folder(const char *path, char room[PATH_MAX], const char **folders, size_t count)
{
	char *folder;

	if (!path || snprintf(room, PATH_MAX, "%s", path) >= PATH_MAX)
		return count;
	folder = dirname(room);
	if (access(folder, F_OK) == 0)
		folders[count++] = folder;
	return count;
}

void serve_confine(struct serve_confine *c)
{
	static const struct spawn_program programs[] = {{SQL_WORKER_NAME, NULL}};
	_cleanup_free_ char *default_path = NULL, *real = realpath(c->db, NULL);
	char rooms[3][PATH_MAX];
	const char *folders[ARRAY_SIZE(rooms)];
	struct confine_server s = {
		.capabilities = CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_DAC_OVERRIDE) |
				CONFINE_CAP(CAP_KILL) | CONFINE_CAP(CAP_SETUID) |
				CONFINE_CAP(CAP_SETGID) | CONFINE_CAP(CAP_NET_BIND_SERVICE),
		.files = {.folders = folders},
		.programs = programs,
		.program_count = ARRAY_SIZE(programs),
	};
	size_t n = 0;

	check_probe(&c->probes);
	c->probes.is_old = true;
	(void)store_default_path(&default_path, NULL);
	n = add_folder(c->db, rooms[0], folders, n);
	n = add_folder(real, rooms[1], folders, n);
	n = add_folder(default_path, rooms[2], folders, n);
	s.files.folder_count = n;
	confine_server(&s);
}

#define READ_THREADS  4
#define HEAVY_THREADS 2
#define HEAVY_NICE    5 /* who traces and who asks for less comes first */
#define SQL_THREADS   3 /* and the brief one, and those of MCP: SQL_WORKER_AT_ONCE of sql_worker.h */
#define BRIEF_THREADS 1
#define QUEUE_MAX     64

struct pending {        /* a call and whom it answers */
	struct job job; /* the first, so that a job is its call */
	struct serve_call call;
	serve_fn *fn;
	char node[NODE_MAX]; /* found on the way */
	bool is_named;
};

static void pending_free(struct pending *p)
{
	free(p->call.path);
	free(p->call.query);
	free(p->call.body);
	free(p->call.state);
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

static void reply(struct serve_call *c, struct http_exchange *x)
{
	serve_put_node(c->serve, x);
	if (c->retry_after[0])
		http_reply_field(x, "retry-after", c->retry_after);
	if (c->age[0])
		http_reply_field(x, "age", c->age);
	if (c->out.err)
		http_reply_error(x, 500, "out of memory for the answer");
	else
		http_reply(x, c->status, c->type, buf_str(&c->out), c->out.len);
}

/* On the loop. */
static void finish(struct job *j, int err)
{
	struct pending *p = (struct pending *)j;
	struct serve_call *c = &p->call;
	struct errinfo e = {0};

	if (p->is_named && c->serve->is_nameless) {
		memcpy(c->serve->node, p->node, sizeof(p->node));
		c->serve->is_nameless = false;
	}
	if (err == -EBUSY)
		errinfo_set(&e, err, "the server is busy: try again");
	else if (err < 0)
		errinfo_set(&e, err, "the connection was closed before the answer");
	if (err < 0)
		serve_error(c, err, &e, NULL);
	reply(c, j->x);
	pending_free(p);
}

/* On a lane's thread. */
static bool work(struct job *j, bool brief)
{
	struct pending *p = (struct pending *)j;

	if (p->call.serve->is_nameless)
		p->is_named = find_node(p->call.serve->settings.db, p->node);
	p->call.is_brief = brief;
	p->call.needs_longer = false;
	p->fn(&p->call);
	return !p->call.needs_longer;
}

static struct pending *pending_new(
	struct serve *s, struct http_exchange *x, const struct http_request *q, serve_fn *fn)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->job = (struct job){.x = x, .run = work, .finish = finish};
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

/* @x is answered as planned; 503 if the lane is full. */
static void serve_later(struct serve *s, const struct serve_plan *plan, struct http_exchange *x,
	const struct http_request *q)
{
	struct pending *p = pending_new(s, x, q, plan->fn);
	struct errinfo e = {0};
	int r = p ? 0 : -ENOMEM;

	if (r == 0) {
		p->call.data = plan->data;
		r = plan->begin ? plan->begin(&p->call, &e) : 0;
		if (r < 0) {
			serve_error(&p->call, r, &e, NULL);
			reply(&p->call, x);
			pending_free(p);
			return;
		}
		p->job.ends_with_asker = plan->lane == LANE_SQL;
		r = job_start(&p->job, s->loop, s->lanes[plan->lane], q, p->call.deadline_ns);
	}
	if (r == 0)
		return;
	if (p)
		pending_free(p);
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
	case -ECANCELED:
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

	return FIND_ROW(r, api_rows, summary,
		r->path && !strcmp(r->path, q->path) && !strcmp(r->method, method));
}

/* Of every row that takes time. */
static void handle(void *arg, struct http_exchange *x, const struct http_request *q)
{
	const struct api_row *row = find_row(q);

	if (row)
		serve_later(arg,
			&(struct serve_plan){.lane = row->lane,
				.begin = row->begin,
				.fn = row->answer ? api_answer : row->make,
				.data = row},
			x, q);
	else
		http_reply_error(x, 404, "no such path");
}

static size_t count_rows(const struct http_route *more)
{
	size_t n = 0;

	for (const struct api_row *r = api_rows; r->summary; r++)
		n += r->path != NULL;
	for (const struct web_file *f = web_next(&web_dashboard, NULL); f;
		f = web_next(&web_dashboard, f))
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
	for (const struct api_row *r = api_rows; r->summary; r++)
		if (r->path)
			routes[n++] = (struct http_route){.method = r->method,
				.path = r->path,
				.handler = r->reply ? r->reply : handle,
				.open = r->open,
				.body_max = r->body_max};
	for (const struct web_file *f = web_next(&web_dashboard, NULL); f;
		f = web_next(&web_dashboard, f))
		routes[n++] = (struct http_route){"GET", f->path, api_page, .open = true};
	for (; more && more->method; more++)
		routes[n++] = *more;
	return routes;
}

/* ---- life ---- */

int serve_new(struct loop *l, const struct serve_settings *settings, struct serve **ret,
	struct errinfo *reterr)
{
	static const struct pool_settings lanes[LANE_COUNT] = {
		[LANE_READ] = {.threads = READ_THREADS, .queue_max = QUEUE_MAX},
		[LANE_HEAVY] = {.threads = HEAVY_THREADS,
			.nice = HEAVY_NICE,
			.queue_max = QUEUE_MAX},
		[LANE_SQL] = {.threads = SQL_THREADS,
			.brief_threads = BRIEF_THREADS,
			.queue_max = QUEUE_MAX,
			.leaves_room = true}};
	_cleanup_(serve_freep) struct serve *s = calloc(1, sizeof(*s));
	_cleanup_free_ struct http_route *routes = make_routes(settings->routes);
	struct http_server_settings http = {.address = settings->address,
		.flag = "--addr",
		.tls = settings->tls,
		.tokens = settings->tokens,
		.owners = settings->owners,
		.owner_count = settings->owner_count,
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
		r = pool_new(&lanes[i], &s->lanes[i]);
	r = r ?: response_cache_new(&s->response_cache);
	r = r ?: timeline_keeper_new(settings->db, &s->timeline);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot start threads: %s", strerror(-r));
	r = http_server_new(l, &http, &s->http, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void serve_free(struct serve *s)
{
	if (s->http)
		http_server_free(s->http); /* who has gone withdraws his jobs from the lanes */
	for (int i = 0; i < LANE_COUNT; i++)
		if (s->lanes[i])
			pool_free(s->lanes[i]);
	if (s->response_cache)
		response_cache_free(s->response_cache);
	if (s->timeline)
		timeline_keeper_free(s->timeline);
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
