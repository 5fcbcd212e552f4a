/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fleet.c - query_fleet: one question to the nodes of the configuration. Which nodes those are
 * is never an argument, so that a model cannot be talked into asking elsewhere. What nodes say is a
 * stranger's word twice over: checked by fanout, cleaned here like everything else. */
#include "serve/mcp/mcp_tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fanout/fanout.h"
#include "net/http.h"

#define ROWS           1000
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
	json_string_member(w, "node", n->name);
	json_string_member(w, "address", n->address);
	json_bool_member(w, "answered", n->ok);
	if (!n->ok)
		json_string_member(w, "why", n->why);
	if (n->clock.known) {
		json_int_member(w, "clock_offset_ns", n->clock.offset_ns);
		json_uint_member(w, "clock_error_ns", n->clock.error_ns);
	}
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

static void say_fleet(struct buf *b, const struct fanout_result *r, enum fanout_kind kind)
{
	buf_printf(b, "%zu of %zu nodes answered.", r->ok_count, r->count);
	if (kind == FANOUT_INCIDENTS && !r->incidents.count)
		buf_puts(b, " No incidents.");
	else if (kind == FANOUT_INCIDENTS)
		buf_printf(b, " %zu incidents, worst first.", r->incidents.count);
	else if (kind == FANOUT_SQL)
		buf_printf(b, " %zu rows.", r->table.row_count);
	for (size_t i = 0; i < r->warning_count && i < WARNINGS_SAID; i++)
		buf_printf(b, "\n%s", r->warnings[i].text);
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
		mcp_put_table(&w, &r->table);
	json_end_object(&w);
	json_finish(&w);
	say_fleet(&say, r, kind);
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
