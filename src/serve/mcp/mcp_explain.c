/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_explain.c - incidents that are not those of /api/v1/incidents: get_causal_chains, run_demo. */
#include <string.h>

#include "answer/encode/report_json.h"
#include "answer/encode/say.h"
#include "base/text.h"
#include "serve/mcp/mcp_tool.h"
#include "store/schema/schema.h"

#define TOP_N     10
#define SAY_BYTES 8192
#define SAID      3

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
