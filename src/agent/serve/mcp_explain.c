/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_explain.c - incidents: explain, get_causal_chains, run_demo. */
#include "agent/serve/mcp_tool.h"

#include <errno.h>
#include <string.h>

#include "agent/answer/explain.h"
#include "agent/answer/report_json.h"
#include "agent/serve/mcp_tsc.h"
#include "mcp/rpc.h"

#define REPORT_BYTES  (16u << 20)
#define TOP_N         10
#define WHERE_STACKS  4096
#define INCIDENTS_MAX 1000
#define CAUSES_SHOWN  3
#define SHARE_SHOWN   0.05

static const struct incident *find_id(const struct explanation *e, const char *id)
{
	for (size_t i = 0; i < e->count; i++)
		if (!strcmp(e->incidents[i].id, id))
			return &e->incidents[i];
	return NULL;
}

json_t *mcp_incidents(const struct nodedb_content *content, const char *id, struct buf *prose,
	struct errinfo *reterr)
{
	_cleanup_(explanation_done) struct explanation e = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES);
	_cleanup_json_ json_t *raw = NULL;
	const struct incident *first;
	size_t count;

	if (explain_find(content, false, &e, reterr) < 0)
		return NULL;
	first = id ? find_id(&e, id) : e.incidents;
	count = id ? first != NULL : MIN(e.count, (size_t)INCIDENTS_MAX);
	e.scope.with_labels = true;
	if (prose)
		report_text(prose, first, count, &e.scope, false);
	report_json(&b, first, count, &e.scope);
	raw = b.err ? NULL : json_loads(buf_str(&b), 0, NULL);
	if (!raw)
		errinfo_set(reterr, -ENOBUFS, "too many incidents: give a shorter `since`");
	return raw ? mcp_tsc_full(raw) : NULL;
}

/* The first @n of @list; *ret_total is how many there are. */
static void keep_top(json_t *list, json_int_t n, size_t *ret_total)
{
	*ret_total = json_array_size(list);
	while (n >= 0 && json_array_size(list) > (size_t)n)
		json_array_remove(list, json_array_size(list) - 1);
}

static json_t *completeness_of(const struct nodedb_content *c)
{
	_cleanup_buf_ struct buf why = BUF_INIT(512);
	char text[CALL_GAP_SENTENCE_MAX];
	uint64_t hits = 0, lost = 0;

	if (!c->has_books)
		return json_string("losses of this recording are unknown");
	if (accounting_put_unclean(&c->books, &why))
		return json_string(buf_str(&why));
	for (int i = 0; i < WIRE_SOURCE_MAX; i++) {
		hits += c->books.source[i].hits;
		lost += account_lost(&c->books.source[i]);
	}
	if (c->books.unseen.processes)
		return json_sprintf("%llu of %llu events were lost while recording; %s",
			(unsigned long long)lost, (unsigned long long)hits,
			call_gap_sentence(&c->books.unseen, text, sizeof(text)));
	if (!lost)
		return json_string("nothing was lost while recording");
	return json_sprintf("%llu of %llu events were lost while recording: see get_losses",
		(unsigned long long)lost, (unsigned long long)hits);
}

static struct mcp_part explain_part(void)
{
	return (struct mcp_part){.filter = {.thin = NODEDB_THIN_LARGE,
					 .labels = true,
					 .stacks = NODEDB_STACKS_USED,
					 .stacks_max = WHERE_STACKS}};
}

/* In a compact list an incident says what a verdict needs; asked for by its id it says all. */
static void trim_incident(json_t *incident)
{
	static const char *const details[] = {
		"node", "source", "calls", "p50_us", "p99_us", "completeness", "period_confidence"};
	static const char *const of_cause[] = {"layer", "excess_us", "calls"};
	json_t *causes = json_object_get(incident, "causes"), *one;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(details); i++)
		json_object_del(incident, details[i]);
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

static void reply_incidents(struct answer *a, const json_t *arguments,
	const struct nodedb_content *c, const struct mcp_part *part, json_t *extra)
{
	bool compact = mcp_arg_compact(arguments);
	_cleanup_buf_ struct buf prose = BUF_INIT(REPORT_BYTES);
	const char *id = mcp_arg_text(arguments, "id");
	struct errinfo e = {0};
	json_t *list = mcp_incidents(c, id, compact ? NULL : &prose, &e), *full;
	size_t total;

	if (!list) {
		json_decref(extra);
		mcp_reply_error(a, -ENOMEM, &e);
		return;
	}
	if (id && !json_array_size(list)) {
		json_decref(list);
		json_decref(extra);
		errinfo_set(&e, -ENOENT,
			"unknown incident id: call explain without id to list the incidents");
		mcp_reply_error(a, -ENOENT, &e);
		return;
	}
	keep_top(list, mcp_arg_int(arguments, "top_n", TOP_N), &total);
	if (compact && !id)
		trim_incidents(list);
	full = extra ? extra : json_object();
	json_object_set_new(full, "incidents", list);
	json_object_set_new(full, "total", json_integer((json_int_t)total));
	json_object_set_new(full, "range", mcp_range(c, part));
	json_object_set_new(full, "completeness", completeness_of(c));
	if (!total)
		json_object_set_new(
			full, "verdict", json_string("no problems found in the recording"));
	/* The report of one incident among others would be of all of them. */
	mcp_reply(a, arguments, full, prose.len ? buf_str(&prose) : NULL);
}

void mcp_explain(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = explain_part();
	struct errinfo e = {0};
	int r;

	call_progress(c, 0, 2, "reading the recording");
	r = mcp_part_read(mcp_settings_of(c)->db, arguments, &part, &content, &e);
	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	call_progress(c, 1, 2, "explaining");
	reply_incidents(a, arguments, &content, &part, NULL);
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

/* What the recording holds as verdicts of its tracer; NULL: nothing. */
static json_t *stored_chains(const struct nodedb_content *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES);
	_cleanup_json_ json_t *raw = NULL;

	if (!c->chain_count)
		return NULL;
	report_json_chains(&b, c->chains, c->chain_count);
	raw = b.err ? NULL : json_loads(buf_str(&b), 0, NULL);
	return raw ? mcp_tsc_full(raw) : NULL;
}

static const char *origin_of(const struct nodedb_content *c, bool stored)
{
	if (!stored)
		return "explained now";
	return strcmp(c->schema, NODEDB_SCHEMA_TEXT) == 0
		       ? "stored while tracing"
		       : "stored by the published agent, which counts events but does not prove "
			 "causes: explain judges the same rows anew";
}

void mcp_causal_chains(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = explain_part();
	_cleanup_json_ json_t *found = NULL;
	json_t *chains = json_array(), *one, *full;
	struct errinfo e = {0};
	bool stored;
	size_t i, total;
	int r = mcp_part_read(mcp_settings_of(c)->db, arguments, &part, &content, &e);

	found = r < 0 || part.filter.pid_count ? NULL : stored_chains(&content);
	stored = found != NULL;
	if (r == 0 && !found)
		found = mcp_incidents(&content, NULL, NULL, &e);
	if (!found) {
		json_decref(chains);
		mcp_reply_error(a, r < 0 ? r : -ENOMEM, &e);
		return;
	}
	keep_top(found, mcp_arg_int(arguments, "top_n", TOP_N), &total);
	json_array_foreach (found, i, one)
		json_array_append_new(
			chains, mcp_arg_compact(arguments) ? compact_chain(one) : json_incref(one));
	full = json_pack("{s:o, s:I, s:s, s:o}", "chains", chains, "total", (json_int_t)total,
		"origin", origin_of(&content, stored), "range", mcp_range(&content, &part));
	mcp_reply(a, arguments, full, NULL);
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
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_USED};
	struct errinfo e = {0};
	int r;

	if (!demo) {
		answer_fail(a, "this server has no recorded demonstrations");
		return;
	}
	r = nodedb_read_sql(demo->recording, &all, &content, &e);
	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	reply_incidents(a, arguments, &content, NULL,
		json_pack("{s:s, s:s}", "scenario", demo->name, "title", demo->title));
}
