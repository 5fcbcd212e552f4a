/* SPDX-License-Identifier: Apache-2.0 */
/* api_answer.c - routes that say what the recording says. What is costly is kept for a while: a page
 * that many look at asks the same again and again. */
#include <jansson.h>

#include "base/text.h"
#include "serve/serve_private.h"
#include "sql/sql_worker.h"
#include "store/nodedb.h"
#include "web/web.h"

/* The routes as an OpenAPI 3.1 document, made from the table that the server uses. */

#define ID_MAX 64

static void put_content(struct json_writer *w, const char *ref)
{
	json_begin_object_member(w, "content");
	json_begin_object_member(w, "application/json");
	json_begin_object_member(w, "schema");
	if (ref)
		json_string_member(w, "$ref", ref);
	json_end_object(w);
	json_end_object(w);
	json_end_object(w);
}

static void put_response(
	struct json_writer *w, const char *status, const char *about, const char *ref)
{
	json_begin_object_member(w, status);
	json_string_member(w, "description", about);
	put_content(w, ref);
	json_end_object(w);
}

/* "/api/v1/flame/diff" is the operation "flame-diff". */
static const char *id_of(const char *path, char out[ID_MAX])
{
	static const char root[] = "/api/v1/";

	snprintf(out, ID_MAX, "%s", path + (strncmp(path, root, strlen(root)) ? 1 : strlen(root)));
	for (char *p = out; *p; p++)
		if (*p == '/')
			*p = '-';
	return out;
}

static void put_route(struct json_writer *w, const struct api_row *r)
{
	bool post = !strcmp(r->method, "POST");
	char id[ID_MAX];

	json_begin_object_member(w, r->path);
	json_begin_object_member(w, post ? "post" : "get");
	JSON_PUT(w, JSON_S("operationId", id_of(r->path, id)), JSON_S("summary", r->summary));
	json_begin_array_member(w, "parameters");
	for (const struct param *p = api_params; p->name; p++)
		if (r->params & p->bit) {
			json_begin_object(w);
			JSON_PUT(w, JSON_S("name", p->name), JSON_S("in", "query"),
				JSON_S("description", p->about));
			JSON_PUT_INTO(w, "schema", JSON_S("type", param_type_name(p, true)));
			json_end_object(w);
		}
	json_end_array(w);
	if (post) {
		json_begin_object_member(w, "requestBody");
		json_bool_member(w, "required", true);
		put_content(w, "#/components/schemas/Query");
		json_end_object(w);
	}
	if (r->open) {
		json_begin_array_member(w, "security");
		json_end_array(w);
	}
	json_begin_object_member(w, "responses");
	put_response(w, "200", r->summary, NULL);
	put_response(w, "default", "one sentence: what is wrong and what to do",
		"#/components/schemas/Error");
	json_end_object(w);
	json_end_object(w);
	json_end_object(w);
}

static void put_schema(struct json_writer *w, const char *name, const char *const *properties,
	const char *required)
{
	json_begin_object_member(w, name);
	json_string_member(w, "type", "object");
	json_begin_array_member(w, "required");
	json_put_string(w, required);
	json_end_array(w);
	json_begin_object_member(w, "properties");
	for (; *properties; properties += 2)
		JSON_PUT_INTO(w, properties[0], JSON_S("type", properties[1]));
	json_end_object(w);
	json_end_object(w);
}

static void put_components(struct json_writer *w)
{
	static const char *const query[] = {
		"sql", "string", "limit", "integer", "timeout_ms", "integer", NULL};
	static const char *const error[] = {"error", "string", "hint", "string", NULL};

	json_begin_object_member(w, "components");
	json_begin_object_member(w, "schemas");
	put_schema(w, "Query", query, "sql");
	put_schema(w, "Error", error, "error");
	json_end_object(w);
	json_begin_object_member(w, "securitySchemes");
	JSON_PUT_INTO(w, "bearer", JSON_S("type", "http"), JSON_S("scheme", "bearer"));
	json_end_object(w);
	json_end_object(w);
}

static void put_document(struct json_writer *w, const char *version)
{
	json_begin_object(w);
	json_string_member(w, "openapi", "3.1.0");
	JSON_PUT_INTO(w, "info", JSON_S("title", "ingero"), JSON_S("version", version));
	json_begin_array_member(w, "security");
	json_begin_object(w);
	json_begin_array_member(w, "bearer");
	json_end_array(w);
	json_end_object(w);
	json_end_array(w);
	json_begin_object_member(w, "paths");
	for (const struct api_row *r = api_rows; r->summary; r++)
		if (r->path && (!strncmp(r->path, "/api/", 5) || !strcmp(r->path, "/healthz")))
			put_route(w, r);
	json_end_object(w);
	put_components(w);
	json_end_object(w);
}

void api_describe(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct json_writer w = json_writer_to_buf(&b);
	struct serve *s = arg;

	(void)q;
	put_document(&w, s->settings.version ? s->settings.version : "");
	serve_put_node(s, x);
	if (json_finish(&w) < 0)
		http_reply_error(x, 500, "cannot write the description");
	else
		http_reply(x, 200, NULL, buf_str(&b), b.len);
}

/* What is answered at once on the loop: the page's files, the clock, how things stand. */

void api_page(void *arg, struct http_exchange *x, const struct http_request *q)
{
	serve_put_node(arg, x);
	web_reply(&web_dashboard, x, q);
}

static void reply_json(
	struct serve *s, struct http_exchange *x, int status, struct json_writer *w, struct buf *b)
{
	serve_put_node(s, x);
	if (json_finish(w) < 0)
		http_reply_error(x, 500, "cannot write the answer");
	else
		http_reply(x, status, NULL, buf_str(b), b->len);
}

void api_time(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(256);
	struct json_writer w = json_writer_to_buf(&b);

	(void)q;
	JSON_PUT_OBJECT(&w, JSON_I("timestamp_ns", wall_now().ns));
	reply_json(arg, x, 200, &w, &b);
}

static void put_worker(struct json_writer *w)
{
	struct sql_worker_stats f = sql_worker_stats();
	const char *weakness = sql_worker_weakness();

	json_begin_object_member(w, "sql_worker");
	if (f.known)
		JSON_PUT(w, JSON_B("landlock", f.landlock > 0), JSON_B("seccomp", f.seccomp));
	JSON_PUT(w, JSON_U("running", f.running), JSON_U("started", f.started),
		JSON_U("killed", f.killed));
	if (weakness)
		json_string_member(w, "warning", weakness);
	json_end_object(w);
}

/* Whether the file is there and readable; what is in it is not for those without a token. */
void api_health(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);
	struct serve *s = arg;
	struct http_server_stats f = http_server_stats(s->http);
	bool readable = access(serve_db(s), R_OK) == 0;
	size_t load = 0;

	(void)q;
	for (int i = 0; i < LANE_COUNT; i++)
		load += pool_load(s->lanes[i]);
	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("status", readable ? "ok" : "no recording"),
		JSON_S("version", s->settings.version ? s->settings.version : ""));
	if (!readable)
		json_string_member(&w, "reason",
			"the recording is missing or unreadable: create one with `sudo ingero trace`");
	put_worker(&w);
	JSON_PUT(&w, JSON_U("requests", f.requests), JSON_U("rejected", f.rejected),
		JSON_U("connections", f.open_connections), JSON_U("queue", load));
	json_end_object(&w);
	reply_json(s, x, readable ? 200 : 503, &w, &b);
}

/* POST /api/v1/query: one statement, run by a worker process (sql/sql_worker.h).
 *
 * Its time counts from the request on, waiting for a turn included. */

#define ROWS       1000
#define TIMEOUT_MS 5000
#define TIME_MAX   30000

struct statement {
	json_int_t limit, timeout_ms;
	char sql[];
};

static int get_int(const json_t *root, const char *key, json_int_t otherwise, json_int_t max,
	json_int_t *ret, struct errinfo *reterr)
{
	const json_t *v = json_object_get(root, key);

	*ret = otherwise;
	if (!v || json_is_null(v))
		return 0;
	*ret = json_integer_value(v);
	if (json_is_integer(v) && *ret >= 1 && *ret <= max)
		return 0;
	return errinfo_set(reterr, -EINVAL,
		"%s: give a whole number from 1 to %" JSON_INTEGER_FORMAT, key, max);
}

static int read_question(const json_t *root, struct statement **ret, struct errinfo *reterr)
{
	const json_t *sql = json_object_get(root, "sql") ?: json_object_get(root, "query");
	_cleanup_free_ struct statement *q = NULL;
	int r;

	if (!json_is_string(sql) || strlen(json_string_value(sql)) != json_string_length(sql))
		return errinfo_set(reterr, -EINVAL,
			"sql: the body is JSON with the statement: {\"sql\": \"SELECT …\"}");
	q = malloc(sizeof(*q) + json_string_length(sql) + 1);
	if (!q)
		return -ENOMEM;
	memcpy(q->sql, json_string_value(sql), json_string_length(sql) + 1);
	r = get_int(root, "limit", ROWS, SQL_WORKER_ROWS_MAX, &q->limit, reterr);
	r = r ?: get_int(root, "timeout_ms", TIMEOUT_MS, TIME_MAX, &q->timeout_ms, reterr);
	if (r == 0)
		*ret = TAKE(q);
	return r;
}

int api_query_begin(struct serve_call *c, struct errinfo *reterr)
{
	_cleanup_(json_decrefp) json_t *root =
		json_loadb(c->body, c->body_len, JSON_REJECT_DUPLICATES, NULL);
	struct statement *q = NULL;
	int r = read_question(root, &q, reterr);

	if (r < 0)
		return r;
	c->state = q;
	c->deadline_ns = mono_now().ns + (uint64_t)q->timeout_ms * NS_PER_MS;
	return 0;
}

/* ---- the answer ---- */

static int put_answer(struct buf *out, const struct sql_table *t, uint64_t ns)
{
	struct json_writer w = json_writer_to_buf(out);

	json_begin_object(&w);
	table_put_arrays(&w, t, 0);
	json_double_member(&w, "duration_ms", (double)ns / (double)NS_PER_MS);
	json_end_object(&w);
	return json_finish(&w);
}

static int ask(struct serve_call *c, const struct statement *q, struct buf *hint, struct errinfo *e)
{
	uint64_t began = mono_now().ns;
	uint64_t left_ns = c->deadline_ns > began ? c->deadline_ns - began : 1;
	bool is_cut = c->is_brief && left_ns > SERVE_BRIEF_NS;
	struct sql_guard_rules rules = {
		.timeout_ns = is_cut ? SERVE_BRIEF_NS : left_ns, .rows_max = (size_t)q->limit};
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = nodedb_ask(serve_db(c->serve), q->sql, &rules, &t, hint, e);

	if (r == -ETIMEDOUT && is_cut) {
		c->needs_longer = true;
		return 0;
	}
	if (r == -ETIMEDOUT)
		return errinfo_set(e, r,
			"the SQL timed out after %s: select less, or raise timeout_ms (up to %d)",
			TEXT_DURATION((uint64_t)q->timeout_ms * NS_PER_MS), TIME_MAX);
	if (r == -ENOMEM)
		r = -EMSGSIZE; /* of the statement, not of this process */
	if (r < 0)
		return r;
	r = put_answer(&c->out, &t, mono_now().ns - began);
	return r == -ENOBUFS ? errinfo_set(e, -EMSGSIZE, "the answer is too large: select less")
			     : r;
}

void api_query(struct serve_call *c)
{
	_cleanup_buf_ struct buf hint = BUF_INIT(16 << 10);
	struct errinfo e = {0};
	int r = ask(c, c->state, &hint, &e);

	if (r < 0)
		serve_error(c, r, &e, buf_str(&hint));
}

static void reply(
	struct serve_call *c, const struct api_row *row, const struct answer_request *request)
{
	struct errinfo e = {0};
	int r = answer_run(serve_db(c->serve), request, row->answer, row->default_ns, &c->out, &e);

	if (r < 0)
		serve_error(c, r, &e, NULL);
}

static void reply_kept(
	struct serve_call *c, const struct api_row *row, const struct answer_request *request)
{
	_cleanup_buf_ struct buf key = BUF_INIT(4096);
	struct response_cache_slot *slot;
	uint64_t age = 0;

	buf_printf(&key, "%s?%s", c->path, c->query);
	if (!key.err && response_cache_begin(c->serve->response_cache, serve_db(c->serve),
				buf_str(&key), &c->out, &age, &slot)) {
		snprintf(c->age, sizeof(c->age), "%llu", (unsigned long long)(age / NS_PER_S));
		return;
	}
	reply(c, row, request);
	if (!key.err)
		response_cache_end(c->serve->response_cache, slot,
			c->status == 200 && !c->out.err ? &c->out : NULL);
}

static void reply_timeline(
	struct serve_call *c, const struct api_row *row, struct answer_request *request)
{
	request->timeline = timeline_keeper_begin(c->serve->timeline, &request->timeline_progress);
	reply(c, row, request);
	timeline_keeper_end(c->serve->timeline);
}

void api_answer(struct serve_call *c)
{
	const struct api_row *row = c->data;
	struct answer_request request;
	struct errinfo e = {0};
	int r = api_request(row, c->query, &request, &e);

	if (r < 0)
		serve_error(c, r, &e, NULL);
	request.version = c->serve->settings.version;
	if (r < 0)
		return;
	if (row->needs_timeline)
		reply_timeline(c, row, &request);
	else if (row->lane == LANE_HEAVY)
		reply_kept(c, row, &request);
	else
		reply(c, row, &request);
}

int serve_ask(const char *db, const char *target, struct buf *out, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf known = BUF_INIT(1024);
	size_t len = strcspn(target, "?");
	struct answer_request request;
	int r;

	for (const struct api_row *row = api_rows; row->summary; row++) {
		if (!row->path || !row->answer || row->needs_timeline) /* its index is a server's */
			continue;
		buf_printf(&known, "%s%s", known.len ? ", " : "", row->path + strlen("/api/v1/"));
		if (strlen(row->path) != len || strncmp(row->path, target, len) != 0)
			continue;
		r = api_request(row, target + len + (target[len] == '?'), &request, reterr);
		return r < 0 ? r
			     : answer_run(db, &request, row->answer, row->default_ns, out, reterr);
	}
	return errinfo_set(
		reterr, -EINVAL, "no such path; give /api/v1/ and one of %s", buf_str(&known));
}
