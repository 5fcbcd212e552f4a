/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_machine.c - about this machine rather than a recording: get_check, get_test_report. */

#include "answer/encode/report_json.h"
#include "answer/encode/say.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "fanout/fanout.h"
#include "net/http.h"
#include "record/check/check.h"
#include "serve/mcp/mcp_tool.h"
#include "sql/sql_worker.h"
#include "store/schema/schema.h"

#define ROWS       1000
#define BLOB_SHOWN 128 /* bytes */

/* Query_fleet: one question to the nodes of the configuration. Which nodes those are
 * is never an argument, so that a model cannot be talked into asking elsewhere. What nodes say is a
 * stranger's word twice over: checked by fanout, cleaned here like everything else. */
#define SINCE          "5m"
#define WARNINGS_BYTES 8192
#define WARNINGS_SAID  8

static const struct {
	const char *name;
	enum fanout_kind kind;
	const char *path; /* of FANOUT_GET */
	bool part;        /* takes since and pid */
} actions[] = {
	{"chains", FANOUT_INCIDENTS, NULL, true},
	{"ops", FANOUT_GET, "/api/v1/ops", true},
	{"overview", FANOUT_GET, "/api/v1/overview", false},
	{"sql", FANOUT_SQL, NULL, false},
};

/* since, pid: as the nodes' API wants them. */
static void put_query(struct buf *b, const json_t *arguments)
{
	const char *since = mcp_arg_text(arguments, "since");
	json_int_t pid = mcp_arg_int(arguments, "pid", 0);

	buf_puts(b, "since=");
	http_escape(b, since ? since : SINCE);
	if (pid)
		buf_printf(b, "&pid=%lld", (long long)pid);
}

static void put_node(struct json_writer *w, const struct fanout_answer *n)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("node", n->name), JSON_S("address", n->address),
		JSON_B("answered", n->ok));
	if (!n->ok)
		json_string_member(w, "why", n->why);
	if (n->clock.known)
		JSON_PUT(w, JSON_I("clock_offset_ns", n->clock.offset_ns),
			JSON_U("clock_error_ns", n->clock.error_ns));
	json_end_object(w);
}

static void put_incidents(struct json_writer *w, const struct fanout_incidents *l, json_int_t limit)
{
	json_begin_array_member(w, "incidents");
	for (size_t i = 0; i < l->count && (json_int_t)i < limit; i++)
		mcp_put_json(w, l->items[i]->json);
	json_end_array(w);
}

static void put_results(struct json_writer *w, const struct fanout_result *r)
{
	json_begin_array_member(w, "results");
	for (size_t i = 0; i < r->count; i++) {
		if (!r->answers[i].ok)
			continue;
		json_begin_object(w);
		json_string_member(w, "node", r->answers[i].name);
		json_key(w, "result");
		mcp_put_json(w, r->answers[i].json);
		json_end_object(w);
	}
	json_end_array(w);
}

static void reply(struct answer *a, const json_t *arguments, const struct fanout_result *r,
	enum fanout_kind kind)
{
	_cleanup_buf_ struct buf say = BUF_INIT(WARNINGS_BYTES);
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);

	json_begin_object(&w);
	json_string_member(&w, "action", mcp_arg_text(arguments, "action"));
	json_begin_array_member(&w, "nodes");
	for (size_t i = 0; i < r->count; i++)
		put_node(&w, &r->answers[i]);
	json_end_array(&w);
	json_begin_array_member(&w, "warnings");
	for (size_t i = 0; i < r->warning_count; i++)
		json_put_string(&w, r->warnings[i].text);
	json_end_array(&w);
	if (kind == FANOUT_INCIDENTS)
		put_incidents(&w, &r->incidents, mcp_arg_int(arguments, "limit", ROWS));
	else if (kind == FANOUT_GET)
		put_results(&w, r);
	else
		table_put_arrays(&w, &r->table, BLOB_SHOWN);
	json_end_object(&w);
	json_finish(&w);
	buf_printf(&say, "%zu of %zu nodes answered.", r->ok_count, r->count);
	if (kind == FANOUT_INCIDENTS && !r->incidents.count)
		buf_puts(&say, " No incidents.");
	else if (kind == FANOUT_INCIDENTS)
		buf_printf(&say, " %zu incidents, worst first.", r->incidents.count);
	else if (kind == FANOUT_SQL)
		buf_printf(&say, " %zu rows.", r->table.row_count);
	for (size_t i = 0; i < r->warning_count && i < WARNINGS_SAID; i++)
		buf_printf(&say, "\n%s", r->warnings[i].text);
	mcp_reply(a, tree.root, &say);
}

/* What each node had to say, if none answered. */
static void answer_warnings(struct answer *a, const struct fanout_result *r)
{
	_cleanup_buf_ struct buf lines = BUF_INIT(WARNINGS_BYTES),
				 text = BUF_INIT(2 * WARNINGS_BYTES);

	for (size_t i = 0; i < r->warning_count && lines.len < WARNINGS_BYTES / 2; i++)
		buf_printf(&lines, "%s\n", r->warnings[i].text);
	if (!lines.len)
		return;
	mcp_clean_block(&text, buf_str(&lines));
	answer_text(a, buf_str(&text));
}

void mcp_fleet(const struct call *c, const json_t *arguments, struct answer *a)
{
	const struct mcp_settings *s = mcp_settings_of(c);
	const char *action = mcp_arg_text(arguments, "action");
	_cleanup_buf_ struct buf query = BUF_INIT(1024), path = BUF_INIT(1024);
	_cleanup_(fanout_result_done) struct fanout_result result = {0};
	struct fanout_question q = {.limit = (size_t)mcp_arg_int(arguments, "limit", ROWS),
		.sql = mcp_arg_text(arguments, "sql")};
	struct errinfo e = {0};
	size_t i = 0;
	int r;

	while (strcmp(actions[i].name, action))
		i++;
	q.kind = actions[i].kind;
	if (q.kind == FANOUT_SQL && !q.sql) {
		answer_fail(a, "sql: action sql needs a statement");
		return;
	}
	put_query(&query, arguments);
	buf_printf(&path, "%s%s%s", actions[i].path ? actions[i].path : "",
		actions[i].part ? "?" : "", actions[i].part ? buf_str(&query) : "");
	q.query = actions[i].path ? NULL : buf_str(&query);
	q.path = buf_str(&path);
	r = s->ask_fleet ? s->ask_fleet(&q, &result, &e)
			 : errinfo_set(&e, -ENOENT, "this server has no other nodes");
	if (r == 0 && !result.ok_count) {
		fanout_why(&result, &e);
		r = -EHOSTUNREACH;
	}
	if (r == 0) {
		reply(a, arguments, &result, q.kind);
		return;
	}
	mcp_reply_error(a, r, &e);
	answer_warnings(a, &result);
}

#define SAY_BYTES 8192

/* Run_sql: a statement that reads, run by a process that is thrown away (sql_worker.h).
 * Values are given as they are. */

#define TIMEOUT_NS (5 * NS_PER_S)
#define BYTES_MAX  (512u << 10)

static void reply_table(struct answer *a, const struct sql_table *t, uint64_t ns)
{
	_cleanup_buf_ struct buf say = BUF_INIT(256);
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);

	json_begin_object(&w);
	table_put_arrays(&w, t, BLOB_SHOWN);
	json_double_member(&w, "duration_ms", (double)ns / (double)NS_PER_MS);
	json_end_object(&w);
	json_finish(&w);
	buf_printf(&say, "%s.%s", TEXT_PLURAL(t->row_count, "rows"),
		t->truncated
			? " There are more rows: raise `limit`, or let SQL count and group them."
			: "");
	mcp_reply(a, tree.root, &say);
}

void mcp_sql(const struct call *c, const json_t *arguments, struct answer *a)
{
	struct sql_guard_rules rules = {.timeout_ns = TIMEOUT_NS,
		.rows_max = (size_t)mcp_arg_int(arguments, "limit", ROWS),
		.bytes_max = BYTES_MAX};
	_cleanup_(sql_table_done) struct sql_table table = {0};
	_cleanup_buf_ struct buf hint = BUF_INIT(1 << 14), clean = BUF_INIT(1 << 12);
	mono_time begin = mono_now();
	struct errinfo e = {0};
	int r = sql_worker_ask(
		mcp_settings_of(c)->db, mcp_arg_text(arguments, "sql"), &rules, &table, &hint, &e);

	if (r == 0) {
		reply_table(a, &table, mono_now().ns - begin.ns);
		return;
	}
	mcp_reply_error(a, r, &e);
	mcp_clean_put(&clean, buf_str(&hint), hint.len, MCP_CLEAN_TEXT, true);
	if (clean.len)
		answer_text(a, buf_str(&clean));
	if (r == -ETIMEDOUT)
		answer_text(a, "Add a WHERE on timestamp, or ask for fewer groups.");
}

/* Incidents that are not those of /api/v1/incidents: get_causal_chains, run_demo. */

#define TOP_N 10
#define SAID  3

/* What the recording holds as its tracer's own incidents, worst first; so many of them are written. */
static size_t put_stored(
	struct json_writer *w, const struct incidents_answer *a, size_t limit, struct buf *say)
{
	size_t count = 0;

	for (int s = SEVERITY_COUNT - 1; s >= -1; s--) /* -1: severities that are not known */
		for (size_t i = 0; i < a->node_count; i++) {
			const struct nodedb_content *c = &a->nodes[i].content;

			for (size_t k = 0; k < c->chain_count; k++) {
				if (explain_severity(c->chains[k].severity) != s ||
					count++ >= limit)
					continue;
				report_json_add_chains(w, &c->chains[k], 1);
				if (count <= SAID)
					buf_printf(say, "%s%s: %s Cause: %s", say->len ? "\n" : "",
						c->chains[k].severity, c->chains[k].summary,
						c->chains[k].root_cause);
			}
		}
	return count;
}

static size_t count_stored(const struct incidents_answer *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->node_count; i++)
		n += a->nodes[i].content.chain_count;
	return n;
}

static const char *origin_of(const struct incidents_answer *a, bool stored)
{
	if (!stored)
		return "explained now";
	return strcmp(a->nodes[0].content.schema, NODEDB_SCHEMA_TEXT) == 0
		       ? "stored while tracing"
		       : "stored by the published agent, which counts events but does not prove "
			 "causes: explain analyses the same rows again";
}

void mcp_causal_chains(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_buf_ struct buf say = BUF_INIT(SAY_BYTES);
	_cleanup_(mcp_loaded_done) struct mcp_loaded l = {0};
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	struct answer_request request;
	struct errinfo e = {0};
	size_t total, limit;
	bool stored;
	int r = api_request_json(mcp_row(c), arguments, &request, &e);

	r = r ?: mcp_load(mcp_settings_of(c)->db, &request, &l, &e);
	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	stored = !request.pid_count && count_stored(&l.incidents);
	limit = answer_limit(request.limit, TOP_N, SIZE_MAX);
	total = stored ? count_stored(&l.incidents) : l.incidents.count;
	json_begin_object(&w);
	json_begin_array_member(&w, "chains");
	if (stored)
		put_stored(&w, &l.incidents, limit, &say);
	for (size_t i = 0; !stored && i < MIN(total, limit); i++)
		report_json_incident(&w, l.incidents.rows[i].incident, l.incidents.rows[i].scope,
			request.brief ? INCIDENT_BRIEF : INCIDENT_FULL);
	json_end_array(&w);
	JSON_PUT(&w, JSON_U("total", total), JSON_S("origin", origin_of(&l.incidents, stored)));
	json_end_object(&w);
	if (!stored)
		say_incidents(&say, &l.incidents, SAID);
	if (l.note)
		buf_printf(&say, "\n(%s.)", l.note);
	json_finish(&w);
	mcp_reply(a, tree.root, &say);
}

static const struct mcp_demo *find_demo(const struct mcp_demo *d, const char *name)
{
	for (; d && d->name; d++)
		if (!strcmp(d->name, name))
			return d;
	return NULL;
}

/* A run that was recorded is explained: nothing is started on this machine. */
void mcp_demo_run(const struct call *c, const json_t *arguments, struct answer *a)
{
	const struct mcp_demo *demo =
		find_demo(mcp_settings_of(c)->demos, mcp_arg_text(arguments, "scenario"));
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_USED, .ledger = true, .kernels = true};
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(incidents_answer_done) struct incidents_answer found = {0};
	_cleanup_buf_ struct buf say = BUF_INIT(SAY_BYTES);
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	struct answer_request request;
	struct errinfo e = {0};
	int r = api_request_json(mcp_row(c), arguments, &request, &e);

	if (!demo) {
		answer_fail(a, "scenario: this server has no recorded demonstrations");
		return;
	}
	r = r ?: nodedb_read_packed(demo->recording, &all, &content, &e);
	r = r ?: incidents_explain(&content, &found, &e);
	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	request.say = &say;
	buf_printf(&say, "Demonstration: %s. ", demo->title);
	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("scenario", demo->name), JSON_S("title", demo->title));
	incidents_put(&w, &found, &request);
	json_end_object(&w);
	json_finish(&w);
	mcp_reply(a, tree.root, &say);
}

#define REPORT_PATH  "logs/test-report.json" /* as published: under the working directory */
#define REPORT_BYTES (512u << 10)

static const char *state_word(enum check_state s)
{
	switch (s) {
	case CHECK_PASS: return "PASS";
	case CHECK_OPTIONAL: return "INFO";
	default: return "FAIL";
	}
}

/* Details of what is as it should be are left out of short answers. */
static void put_check(struct json_writer *w, const struct check_row *row, bool full)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("name", row->name), JSON_S("state", state_word(row->state)),
		JSON_S("value", row->value));
	if (full || row->state != CHECK_PASS)
		json_string_member(w, "detail", row->detail);
	if (row->advice[0])
		json_string_member(w, "fix", row->advice);
	json_end_object(w);
}

void mcp_check(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_buf_ struct buf say = BUF_INIT(SAY_BYTES);
	_cleanup_free_ struct check_report *r = calloc(1, sizeof(*r));
	const struct check_probes *known = mcp_settings_of(c)->probes;
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	struct check_probes probes;

	if (!r) {
		answer_fail(a, "not enough memory");
		return;
	}
	if (!known)
		check_probe(&probes);
	check_run("", known ? known : &probes, r);
	json_begin_object(&w);
	json_bool_member(&w, "ready", check_exit_code(r) == EXIT_OK);
	json_begin_array_member(&w, "checks");
	for (size_t i = 0; i < r->count; i++)
		put_check(&w, &r->rows[i], json_is_false(json_object_get(arguments, "tsc")));
	json_end_array(&w);
	json_end_object(&w);
	json_finish(&w);
	buf_puts(&say, check_exit_code(r) == EXIT_OK ? "This machine can be traced."
						     : "This machine cannot be traced as it is.");
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].state != CHECK_PASS && r->rows[i].state != CHECK_OPTIONAL)
			buf_printf(&say, "\n%s: %s. %s", r->rows[i].name, r->rows[i].detail,
				r->rows[i].advice);
	mcp_reply(a, tree.root, &say);
}

void mcp_test_report(
	const struct call *c _unused_, const json_t *arguments _unused_, struct answer *a)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES + 1), say = BUF_INIT(256);
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	int r = file_read(REPORT_PATH, REPORT_BYTES, &b);

	if (r < 0) {
		answer_fail(a, "no %s in the server's working directory (%s)", REPORT_PATH,
			strerror(-r));
		return;
	}
	json_begin_object(&w);
	json_key(&w, "report");
	mcp_put_json(&w, buf_str(&b));
	json_end_object(&w);
	json_finish(&w);
	buf_puts(&say, "The report of the last test run.");
	mcp_reply(a, tree.root, &say);
}
