/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_machine.c - about this machine rather than a recording: get_check, get_test_report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/encode/report_json.h"
#include "answer/encode/say.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "record/check/check.h"
#include "serve/mcp/mcp_tool.h"
#include "sql/sql_worker.h"
#include "store/schema/schema.h"

#define SAY_BYTES 8192

/* Run_sql: a statement that reads, run by a process that is thrown away (sql_worker.h).
 * Values are given as they are. */

#define ROWS       1000
#define TIMEOUT_NS (5 * NS_PER_S)
#define BYTES_MAX  (512u << 10)
#define BLOB_SHOWN 128

static void put_blob(struct json_writer *w, const struct sql_table *t, const struct sql_cell *cell)
{
	const unsigned char *p = (const unsigned char *)sql_table_bytes(t, cell);
	char text[2 * BLOB_SHOWN + 16] = "x'";

	size_t shown = MIN(cell->len, (size_t)BLOB_SHOWN);

	for (size_t i = 0; i < shown; i++)
		snprintf(text + 2 + 2 * i, 3, "%02x", p[i]);
	snprintf(text + 2 + 2 * shown, 8, "%s", cell->len > shown ? "'…" : "'");
	json_put_string(w, text);
}

void mcp_put_table(struct json_writer *w, const struct sql_table *t)
{
	json_begin_array_member(w, "columns");
	for (int c = 0; c < t->column_count; c++)
		json_put_string(w, sql_table_name(t, c));
	json_end_array(w);
	json_begin_array_member(w, "rows");
	for (size_t r = 0; r < t->row_count; r++) {
		json_begin_array(w);
		for (int c = 0; c < t->column_count; c++)
			if (sql_table_cell(t, r, c)->type == SQL_BLOB)
				put_blob(w, t, sql_table_cell(t, r, c));
			else
				table_cell(w, t, r, c);
		json_end_array(w);
	}
	json_end_array(w);
	json_bool_member(w, "truncated", t->truncated);
}

static void reply_table(struct answer *a, const struct sql_table *t, uint64_t ns)
{
	_cleanup_buf_ struct buf say = BUF_INIT(256);
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	char n[TEXT_PLURAL_MAX];

	json_begin_object(&w);
	mcp_put_table(&w, t);
	json_double_member(&w, "duration_ms", (double)ns / (double)NS_PER_MS);
	json_end_object(&w);
	json_finish(&w);
	buf_printf(&say, "%s.%s", text_format_plural(n, t->row_count, "rows"),
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
			 "causes: explain judges the same rows anew";
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

	if (r == 0)
		r = mcp_load(mcp_settings_of(c)->db, &request, &l, &e);
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
	json_uint_member(&w, "total", total);
	json_string_member(&w, "origin", origin_of(&l.incidents, stored));
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
	if (r == 0)
		r = nodedb_read_packed(demo->recording, &all, &content, &e);
	if (r == 0)
		r = incidents_explain(&content, &found, &e);
	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	request.say = &say;
	buf_printf(&say, "Demonstration: %s. ", demo->title);
	json_begin_object(&w);
	json_string_member(&w, "scenario", demo->name);
	json_string_member(&w, "title", demo->title);
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
	json_string_member(w, "name", row->name);
	json_string_member(w, "state", state_word(row->state));
	json_string_member(w, "value", row->value);
	if (full || row->state != CHECK_PASS)
		json_string_member(w, "detail", row->detail);
	if (row->advice[0])
		json_string_member(w, "fix", row->advice);
	json_end_object(w);
}

static void say_check(struct buf *b, const struct check_report *r)
{
	buf_puts(b, check_exit_code(r) == EXIT_OK ? "This machine can be traced."
						  : "This machine cannot be traced as it is.");
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].state != CHECK_PASS && r->rows[i].state != CHECK_OPTIONAL)
			buf_printf(b, "\n%s: %s. %s", r->rows[i].name, r->rows[i].detail,
				r->rows[i].advice);
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
	say_check(&say, r);
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
