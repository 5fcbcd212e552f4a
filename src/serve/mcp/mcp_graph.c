/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_graph.c - CUDA graphs: graph_lifecycle (what happened to them, in order) and graph_frequency
 * (how often each was launched). Counts are answer/graphs.h's; handles are known of stored
 * calls. */
#include "serve/mcp/mcp_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "answer/graphs.h"
#include "serve/mcp/mcp_tsc.h"
#include "wire/names.h"

#define EVENTS_SHOWN 200
#define EXECS_MAX    4096

static json_t *handle(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

static json_t *event_json(const struct sql_table *e, size_t i)
{
	unsigned op = (unsigned)table_int(e, i, table_column(e, "op"));
	struct graph_handles h = graph_handles_of(e, i);
	char scratch[32];
	json_t *row = json_pack("{s:I, s:s, s:I, s:I}", "timestamp_ns",
		(json_int_t)table_int(e, i, table_column(e, "timestamp")), "op",
		wire_op_name(SOURCE_GRAPH, op, scratch), "duration_ns",
		(json_int_t)table_int(e, i, table_column(e, "duration")), "return_code",
		(json_int_t)table_int(e, i, table_column(e, "ret_code")));

	if (h.stream && op != GRAPH_LAUNCH)
		json_object_set_new(row, "stream", handle(h.stream));
	if (h.graph)
		json_object_set_new(row, "graph", handle(h.graph));
	if (h.exec)
		json_object_set_new(row, "exec", handle(h.exec));
	return row;
}

static json_t *lifecycle(const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	_cleanup_json_ json_t *rows = NULL;
	struct graphs_answer n;
	int r = answer_graphs(q, &n, reterr);
	json_t *full, *range;

	if (r == 0)
		r = answer_graph_events(q, 0, &e, reterr);
	range = r < 0 ? NULL : mcp_range(q, reterr);
	if (!range)
		return NULL;
	rows = json_array();
	for (size_t i = e.row_count; i-- > 0 && json_array_size(rows) < EVENTS_SHOWN;)
		json_array_append_new(rows, event_json(&e, i));
	full = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "events", mcp_tsc_full(rows),
		"more_events", (json_int_t)(e.row_count - json_array_size(rows)), "captures",
		(json_int_t)graphs_captures(&n), "instantiations",
		(json_int_t)n.calls[GRAPH_INSTANTIATE], "launches",
		(json_int_t)n.calls[GRAPH_LAUNCH], "updates",
		(json_int_t)n.calls[GRAPH_EXEC_UPDATE], "destroys",
		(json_int_t)(n.calls[GRAPH_DESTROY] + n.calls[GRAPH_EXEC_DESTROY]), "range", range);
	if (n.calls[GRAPH_INSTANTIATE])
		json_object_set_new(full, "replay_ratio",
			json_real((double)n.calls[GRAPH_LAUNCH] /
				  (double)n.calls[GRAPH_INSTANTIATE]));
	return full;
}

MCP_ANSWERS(mcp_graph_lifecycle, lifecycle)

struct exec { /* an executable graph */
	uint64_t handle, launches;
};

struct execs {
	struct exec row[EXECS_MAX];
	size_t count;
};

static struct exec *exec_of(struct execs *x, uint64_t v)
{
	for (size_t i = x->count; i-- > 0;)
		if (x->row[i].handle == v)
			return &x->row[i];
	if (x->count == EXECS_MAX)
		return NULL;
	x->row[x->count] = (struct exec){.handle = v};
	return &x->row[x->count++];
}

static int by_launches(const void *a, const void *b)
{
	const struct exec *x = a, *y = b;

	return x->launches > y->launches ? -1 : x->launches < y->launches;
}

static void find_execs(const struct sql_table *e, struct execs *x)
{
	int op = table_column(e, "op"), weight = table_column(e, "weight");

	for (size_t i = e->row_count; i-- > 0;) {
		bool launch = table_int(e, i, op) == GRAPH_LAUNCH;
		struct exec *row = launch || table_int(e, i, op) == GRAPH_INSTANTIATE
					   ? exec_of(x, graph_handles_of(e, i).exec)
					   : NULL;

		if (row && launch)
			row->launches += (uint64_t)MAX(table_int(e, i, weight), INT64_C(1));
	}
	qsort(x->row, x->count, sizeof(x->row[0]), by_launches);
}

static json_t *frequency(const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_free_ struct execs *x = calloc(1, sizeof(*x));
	_cleanup_(sql_table_done) struct sql_table e = {0};
	struct graphs_answer n;
	int r = x ? answer_graphs(q, &n, reterr) : -ENOMEM;
	json_t *list, *range;
	double median;

	if (r == 0)
		r = answer_graph_events(q, 0, &e, reterr);
	range = r < 0 ? NULL : mcp_range(q, reterr);
	if (!range)
		return NULL;
	find_execs(&e, x);
	median = x->count && n.seconds > 0 ? (double)x->row[x->count / 2].launches / n.seconds : 0;
	list = json_array();
	for (size_t i = 0; i < x->count && i < EVENTS_SHOWN; i++) {
		double rate = n.seconds > 0 ? (double)x->row[i].launches / n.seconds : 0;

		json_array_append_new(
			list, json_pack("{s:o, s:I, s:f, s:s}", "exec", handle(x->row[i].handle),
				      "launches", (json_int_t)x->row[i].launches, "rate_per_s",
				      rate, "class",
				      !x->row[i].launches            ? "never-launched"
				      : rate > median && rate >= 1.0 ? "HOT"
								     : "cold"));
	}
	return json_pack("{s:o, s:I, s:I, s:I, s:f, s:o}", "graphs", list, "graph_count",
		(json_int_t)x->count, "launches", (json_int_t)n.calls[GRAPH_LAUNCH], "recaptures",
		(json_int_t)(graphs_captures(&n) ? graphs_captures(&n) - 1 : 0), "seconds",
		n.seconds, "range", range);
}

MCP_ANSWERS(mcp_graph_frequency, frequency)
