/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_explain.c - incidents: explain, get_causal_chains, run_demo. */
#include "serve/mcp/mcp_tool.h"

#include <errno.h>
#include <string.h>

#include "answer/encode/all_clear.h"
#include "answer/encode/report_json.h"
#include "serve/mcp/mcp_clean.h"
#include "serve/mcp/mcp_tsc.h"
#include "store/schema/schema.h"
#include "mcp/rpc.h"

#define REPORT_BYTES  (16u << 20)
#define TOP_N         10
#define INCIDENTS_MAX 1000
#define CAUSES_SHOWN  3
#define SHARE_SHOWN   0.05

json_t *mcp_incidents(const struct incidents_answer *a, const char *id, enum incident_show show,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES);
	struct json_writer w = json_writer_to_buf(&b);
	json_t *list;

	json_begin_array(&w);
	for (size_t i = 0; i < MIN(a->count, (size_t)INCIDENTS_MAX); i++) {
		struct report_scope s = *a->rows[i].scope;

		s.with_labels = true;
		if (!id || !strcmp(a->rows[i].incident->id, id))
			report_json_incident(&w, a->rows[i].incident, &s, show);
	}
	json_end_array(&w);
	list = mcp_tree(&w);
	if (!list)
		errinfo_set(reterr, -ENOBUFS, "too many incidents: give a shorter `since`");
	return list;
}

/* The first @n of @list; *ret_total is how many there are. */
static void keep_top(json_t *list, json_int_t n, size_t *ret_total)
{
	*ret_total = json_array_size(list);
	while (n >= 0 && json_array_size(list) > (size_t)n)
		json_array_remove(list, json_array_size(list) - 1);
}

static json_t *completeness_json(const struct incidents_answer *a)
{
	struct report_scope s = incidents_scope(a);
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	completeness_text(&b, &s.completeness);
	return mcp_clean_string(buf_str(&b), MCP_CLEAN_TEXT);
}

/* In a compact list a cause and a step say what a verdict needs; asked for by its id an incident says all. */
static void trim_incident(json_t *incident)
{
	static const char *const of_cause[] = {"layer", "excess_us", "calls"};
	json_t *causes = json_object_get(incident, "causes"), *one;
	size_t i;

	for (i = json_array_size(causes); i-- > 0;)
		if (i >= CAUSES_SHOWN || json_number_value(json_object_get(
						 json_array_get(causes, i), "share")) < SHARE_SHOWN)
			json_array_remove(causes, i);
	json_array_foreach (causes, i, one)
		for (size_t k = 0; k < ARRAY_SIZE(of_cause); k++)
			json_object_del(one, of_cause[k]);
	json_array_foreach (json_object_get(incident, "timeline"), i, one)
		json_object_del(one, "operation");
}

static void trim_incidents(json_t *list)
{
	json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		trim_incident(one);
}

/* What may be said of each node where there is no incident. */
static void put_all_clear(json_t *to, const struct incidents_answer *a)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES), verdict = BUF_INIT(REPORT_BYTES);
	struct json_writer w = json_writer_to_buf(&b);

	json_begin_array(&w);
	for (size_t i = 0; i < a->node_count; i++) {
		all_clear_json(&w, &a->nodes[i].e.scope);
		if (i)
			buf_puts(&verdict, " ");
		all_clear_verdict(&verdict, &a->nodes[i].e.scope);
	}
	json_end_array(&w);
	json_object_set_new(to, "verdict", mcp_clean_string(buf_str(&verdict), MCP_CLEAN_TEXT));
	json_object_set_new(to, "examined", mcp_tree(&w));
}

static void reply_incidents(struct answer *a, const json_t *arguments,
	const struct incidents_answer *incidents, const char *note, json_t *extra)
{
	const char *id = mcp_arg_text(arguments, "id");
	bool is_brief = mcp_arg_compact(arguments) && !id;
	struct errinfo e = {0};
	json_t *list = mcp_incidents(incidents, id, is_brief ? INCIDENT_BRIEF : INCIDENT_FULL, &e);
	json_t *full = extra ? extra : json_object();
	size_t total;
	int r = list ? 0 : -ENOMEM;

	if (r == 0 && id && !json_array_size(list))
		r = errinfo_set(&e, -ENOENT,
			"unknown incident id: call explain without id to list the incidents");
	if (r < 0) {
		json_decref(list);
		json_decref(full);
		mcp_reply_error(a, r, &e);
		return;
	}
	keep_top(list, mcp_arg_int(arguments, "top_n", TOP_N), &total);
	if (is_brief)
		trim_incidents(list);
	json_object_set_new(full, "incidents", list);
	json_object_set_new(full, "total", json_integer((json_int_t)total));
	json_object_set_new(full, "range", mcp_range_of(incidents, note));
	json_object_set_new(full, "completeness", completeness_json(incidents));
	if (!total)
		put_all_clear(full, incidents);
	mcp_reply(a, arguments, full);
}

void mcp_explain(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(mcp_loaded_done) struct mcp_loaded l = {0};
	struct errinfo e = {0};
	int r;

	call_progress(c, 0, 2, "reading and explaining the recording");
	r = mcp_load(mcp_settings_of(c)->db, arguments, &l, &e);
	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	call_progress(c, 1, 2, "writing the answer");
	reply_incidents(a, arguments, &l.incidents, l.note, NULL);
}

/* The members that compact answers have, as published. */
static json_t *compact_chain(const json_t *incident)
{
	static const char *const kept[] = {
		"severity", "summary", "root_cause", "recommendations", "timeline"};
	json_t *chain = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (json_object_get(incident, kept[i]))
			json_object_set(chain, kept[i], json_object_get(incident, kept[i]));
	return chain;
}

/* What the recording holds as verdicts of its tracer, worst first; NULL: nothing. */
static json_t *stored_chains(struct incidents_answer *a)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES);
	struct json_writer w = json_writer_to_buf(&b);
	size_t count = 0;

	json_begin_array(&w);
	for (int s = SEVERITY_COUNT - 1; s >= -1; s--) /* -1: severities that are not known */
		for (size_t i = 0; i < a->node_count; i++) {
			struct nodedb_content *c = &a->nodes[i].content;

			for (size_t k = 0; k < c->chain_count; k++)
				if (explain_severity(c->chains[k].severity) == s) {
					report_json_add_chains(&w, &c->chains[k], 1);
					count++;
				}
		}
	json_end_array(&w);
	return count ? mcp_tree(&w) : NULL;
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
	bool of_pids = json_object_get(arguments, "pid") || json_object_get(arguments, "pids");
	_cleanup_(mcp_loaded_done) struct mcp_loaded l = {0};
	_cleanup_json_ json_t *found = NULL;
	json_t *chains, *one;
	struct errinfo e = {0};
	size_t i, total;
	bool stored;
	int r = mcp_load(mcp_settings_of(c)->db, arguments, &l, &e);

	found = r < 0 || of_pids ? NULL : stored_chains(&l.incidents);
	stored = found != NULL;
	if (r == 0 && !found)
		found = mcp_incidents(&l.incidents, NULL, INCIDENT_FULL, &e);
	if (!found) {
		mcp_reply_error(a, r < 0 ? r : -ENOMEM, &e);
		return;
	}
	keep_top(found, mcp_arg_int(arguments, "top_n", TOP_N), &total);
	chains = json_array();
	json_array_foreach (found, i, one)
		json_array_append_new(
			chains, mcp_arg_compact(arguments) ? compact_chain(one) : json_incref(one));
	mcp_reply(a, arguments,
		json_pack("{s:o, s:I, s:s, s:o}", "chains", chains, "total", (json_int_t)total,
			"origin", origin_of(&l.incidents, stored), "range",
			mcp_range_of(&l.incidents, l.note)));
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
	const char *name = mcp_arg_text(arguments, "scenario");
	const struct mcp_demo *demo = find_demo(mcp_settings_of(c)->demos, name);
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(incidents_answer_done) struct incidents_answer found = {0};
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_USED, .ledger = true, .kernels = true};
	struct errinfo e = {0};
	int r;

	if (!demo) {
		answer_fail(a, "this server has no recorded demonstrations");
		return;
	}
	r = nodedb_read_packed(demo->recording, &all, &content, &e);
	if (r == 0)
		r = incidents_explain(&content, &found, &e);
	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	reply_incidents(a, arguments, &found, false,
		json_pack("{s:s, s:s}", "scenario", demo->name, "title", demo->title));
}
