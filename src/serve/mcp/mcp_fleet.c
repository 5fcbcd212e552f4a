/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fleet.c - query_fleet: one question to the nodes of the configuration. Which nodes those are
 * is never an argument, so that a model cannot be talked into asking elsewhere. What nodes say is a
 * stranger's word twice over: checked by fanout, cleaned here like everything else. */
#include "serve/mcp/mcp_tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fanout/fanout.h"
#include "serve/mcp/mcp_clean.h"
#include "serve/mcp/mcp_tsc.h"
#include "mcp/rpc.h"
#include "net/http.h"

#define ROWS           1000
#define SINCE          "5m"
#define WARNINGS_BYTES 8192

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

static json_t *node_json(const struct fanout_answer *n)
{
	json_t *row = json_pack("{s:o, s:o, s:b}", "node",
		mcp_clean_string(n->name, MCP_CLEAN_NAME), "address",
		mcp_clean_string(n->address, MCP_CLEAN_NAME), "answered", (int)n->ok);

	if (!n->ok)
		json_object_set_new(row, "why", mcp_clean_string(n->why, MCP_CLEAN_TEXT));
	if (n->clock.known) {
		json_object_set_new(row, "clock_offset_us",
			json_integer(n->clock.offset_ns / (json_int_t)NS_PER_US));
		json_object_set_new(row, "clock_error_us",
			json_integer((json_int_t)(n->clock.error_ns / NS_PER_US)));
	}
	return row;
}

/* What the node said, in our words and cleaned. */
static json_t *parsed(const char *text)
{
	_cleanup_json_ json_t *raw = text ? json_loads(text, 0, NULL) : NULL;

	return raw ? mcp_tsc_full(raw) : json_null();
}

static json_t *incidents_list(const struct fanout_incidents *l, json_int_t limit)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->count && (json_int_t)i < limit; i++)
		json_array_append_new(list, parsed(l->items[i]->json));
	return list;
}

static json_t *results_json(const struct fanout_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->count; i++)
		if (r->answers[i].ok)
			json_array_append_new(
				list, json_pack("{s:o, s:o}", "node",
					      mcp_clean_string(r->answers[i].name, MCP_CLEAN_NAME),
					      "result", parsed(r->answers[i].json)));
	return list;
}

static json_t *fleet_json(const struct fanout_result *r, const char *action)
{
	json_t *nodes = json_array(), *warnings = json_array();

	for (size_t i = 0; i < r->count; i++)
		json_array_append_new(nodes, node_json(&r->answers[i]));
	for (size_t i = 0; i < r->warning_count; i++)
		json_array_append_new(
			warnings, mcp_clean_string(r->warnings[i].text, MCP_CLEAN_TEXT));
	return json_pack("{s:s, s:o, s:o}", "action", action, "nodes", nodes, "warnings", warnings);
}

static void reply(struct answer *a, const json_t *arguments, const struct fanout_result *r,
	enum fanout_kind kind)
{
	bool compact = mcp_arg_compact(arguments);
	json_t *full = fleet_json(r, mcp_arg_text(arguments, "action")), *value;

	if (kind == FANOUT_INCIDENTS)
		json_object_set_new(full, "chains",
			incidents_list(&r->incidents, mcp_arg_int(arguments, "limit", ROWS)));
	else if (kind == FANOUT_GET)
		json_object_set_new(full, "results", results_json(r));
	if (kind != FANOUT_SQL) {
		mcp_reply(a, arguments, full);
		return;
	}
	value = compact ? mcp_tsc_pack(full) : json_incref(full);
	mcp_sql_put(value, &r->table, compact);
	json_decref(full);
	mcp_reply_value(a, value);
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
	const char *action = mcp_arg_text(arguments, "action"),
		   *sql = mcp_arg_text(arguments, "query");
	_cleanup_buf_ struct buf query = BUF_INIT(1024), path = BUF_INIT(1024);
	_cleanup_(fanout_result_done) struct fanout_result result = {0};
	struct fanout_question q = {.limit = (size_t)mcp_arg_int(arguments, "limit", ROWS),
		.sql = sql ? sql : mcp_arg_text(arguments, "sql")};
	struct errinfo e = {0};
	size_t i = 0;
	int r;

	while (strcmp(actions[i].name, action))
		i++;
	q.kind = actions[i].kind;
	if (q.kind == FANOUT_SQL && !q.sql) {
		answer_fail(a, "action sql needs \"query\"");
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
