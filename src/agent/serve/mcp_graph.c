/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_graph.c - CUDA graphs: graph_lifecycle (what happened to them, in order) and graph_frequency
 * (how often each was launched). Counts are of every call where the recording has aggregates;
 * handles are known of stored calls. */
#include "agent/serve/mcp_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/serve/mcp_tsc.h"
#include "mcp/rpc.h"
#include "wire/names.h"

#define EVENTS_SHOWN 200
#define EXECS_MAX    4096
#define OPS          8

struct graph_counts {
	uint64_t n[OPS]; /* by enum wire_op_graph */
};

static struct graph_counts count_all(const struct nodedb_content *c)
{
	struct graph_counts all = {0}, rows = {0};

	for (size_t i = 0; i < c->aggregate_count; i++)
		if (c->aggregates[i].source == SOURCE_GRAPH && c->aggregates[i].op < OPS)
			all.n[c->aggregates[i].op] += c->aggregates[i].sketch.count;
	for (size_t i = 0; i < c->event_count; i++)
		if (c->events[i].source == SOURCE_GRAPH && c->events[i].op < OPS)
			rows.n[c->events[i].op] += MAX(c->events[i].weight, 1u);
	for (int i = 0; i < OPS; i++)
		all.n[i] = MAX(all.n[i], rows.n[i]);
	return all;
}

static json_t *handle(uint64_t v)
{
	return v ? json_sprintf("0x%" PRIx64, v) : json_null();
}

/* Which argument is what: wire/ids.h. */
static json_t *event_json(const struct event *e)
{
	json_t *row = json_pack("{s:I, s:s, s:I, s:i}", "timestamp_ns", (json_int_t)e->start.ns,
		"op", wire_op_find(e->source, e->op) ? wire_op_find(e->source, e->op)->name : "",
		"duration_ns", (json_int_t)e->dur_ns, "return_code", (int)e->ret);

	switch (e->op) {
	case GRAPH_BEGIN_CAPTURE: json_object_set_new(row, "stream", handle(e->arg0)); break;
	case GRAPH_END_CAPTURE:
		json_object_set_new(row, "stream", handle(e->arg0));
		json_object_set_new(row, "graph", handle(e->arg1));
		break;
	case GRAPH_INSTANTIATE:
	case GRAPH_EXEC_UPDATE:
		json_object_set_new(row, "graph", handle(e->arg0));
		json_object_set_new(row, "exec", handle(e->arg1));
		break;
	case GRAPH_DESTROY: json_object_set_new(row, "graph", handle(e->arg0)); break;
	default: json_object_set_new(row, "exec", handle(e->arg0)); break;
	}
	return row;
}

static int read_graphs(const struct call *c, const json_t *arguments, struct mcp_part *part,
	struct nodedb_content *ret, struct answer *a)
{
	struct errinfo e = {0};
	int r = mcp_part_read(mcp_settings_of(c)->db, arguments, part, ret, &e);

	if (r < 0)
		mcp_reply_error(a, r, &e);
	return r;
}

void mcp_graph_lifecycle(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = {.filter = {.thin = NODEDB_THIN_LARGE}};
	_cleanup_json_ json_t *rows = json_array();
	struct graph_counts n;
	size_t more = 0;
	json_t *full;

	if (read_graphs(c, arguments, &part, &content, a) < 0)
		return;
	n = count_all(&content);
	for (size_t i = 0; i < content.event_count; i++) {
		if (content.events[i].source != SOURCE_GRAPH)
			continue;
		if (json_array_size(rows) < EVENTS_SHOWN)
			json_array_append_new(rows, event_json(&content.events[i]));
		else
			more++;
	}
	full = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "events", mcp_tsc_full(rows),
		"more_events", (json_int_t)more, "captures", (json_int_t)n.n[GRAPH_BEGIN_CAPTURE],
		"instantiations", (json_int_t)n.n[GRAPH_INSTANTIATE], "launches",
		(json_int_t)n.n[GRAPH_LAUNCH], "updates", (json_int_t)n.n[GRAPH_EXEC_UPDATE],
		"destroys", (json_int_t)(n.n[GRAPH_DESTROY] + n.n[GRAPH_EXEC_DESTROY]), "range",
		mcp_range(&content, &part));
	if (n.n[GRAPH_INSTANTIATE])
		json_object_set_new(full, "replay_ratio",
			json_real((double)n.n[GRAPH_LAUNCH] / (double)n.n[GRAPH_INSTANTIATE]));
	mcp_reply(a, arguments, full, NULL);
}

struct exec { /* an executable graph */
	uint64_t handle, launches;
};

struct execs {
	struct exec row[EXECS_MAX];
	size_t count;
	uint64_t left_out;
};

static struct exec *exec_of(struct execs *x, uint64_t handle)
{
	for (size_t i = x->count; i-- > 0;)
		if (x->row[i].handle == handle)
			return &x->row[i];
	if (x->count == EXECS_MAX)
		return NULL;
	x->row[x->count] = (struct exec){.handle = handle};
	return &x->row[x->count++];
}

static int by_launches(const void *a, const void *b)
{
	const struct exec *x = a, *y = b;

	return x->launches > y->launches ? -1 : x->launches < y->launches;
}

static void find_execs(const struct nodedb_content *c, struct execs *x)
{
	for (size_t i = 0; i < c->event_count; i++) {
		const struct event *e = &c->events[i];
		bool launch = e->op == GRAPH_LAUNCH;
		struct exec *row;

		if (e->source != SOURCE_GRAPH || (!launch && e->op != GRAPH_INSTANTIATE))
			continue;
		row = exec_of(x, launch ? e->arg0 : e->arg1);
		if (!row)
			x->left_out++;
		else if (launch)
			row->launches += MAX(e->weight, 1u);
	}
	qsort(x->row, x->count, sizeof(x->row[0]), by_launches);
}

void mcp_graph_frequency(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = {.filter = {.thin = NODEDB_THIN_LARGE}};
	_cleanup_free_ struct execs *x = calloc(1, sizeof(*x));
	json_t *list = json_array(), *full;
	struct graph_counts n;
	double seconds, median;

	if (!x || read_graphs(c, arguments, &part, &content, a) < 0) {
		json_decref(list);
		return;
	}
	n = count_all(&content);
	find_execs(&content, x);
	seconds = (double)(content.last_ns - content.first_ns) / (double)NS_PER_S;
	median = x->count && seconds > 0 ? (double)x->row[x->count / 2].launches / seconds : 0;
	for (size_t i = 0; i < x->count && i < EVENTS_SHOWN; i++) {
		double rate = seconds > 0 ? (double)x->row[i].launches / seconds : 0;

		json_array_append_new(
			list, json_pack("{s:o, s:I, s:f, s:s}", "exec", handle(x->row[i].handle),
				      "launches", (json_int_t)x->row[i].launches, "rate_per_s",
				      rate, "class",
				      !x->row[i].launches            ? "never-launched"
				      : rate > median && rate >= 1.0 ? "HOT"
								     : "cold"));
	}
	full = json_pack("{s:o, s:I, s:I, s:I, s:f, s:o}", "graphs", list, "graph_count",
		(json_int_t)x->count, "launches", (json_int_t)n.n[GRAPH_LAUNCH], "recaptures",
		(json_int_t)(n.n[GRAPH_BEGIN_CAPTURE] ? n.n[GRAPH_BEGIN_CAPTURE] - 1 : 0),
		"seconds", seconds, "range", mcp_range(&content, &part));
	mcp_reply(a, arguments, full, NULL);
}
