/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_stats.c - get_trace_stats: figures of each operation (agent/answer/ops.h). */
#include "agent/serve/mcp/mcp_tool.h"

#include "agent/answer/ops.h"
#include "wire/names.h"

static json_t *row_json(const struct ops_answer *a, const struct op_stat *s, bool compact)
{
	const struct wire_op_row *op = wire_op_find(s->source, s->op);
	char scratch[32];
	json_t *row = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:f, s:I}", "operation",
		wire_op_name(s->source, s->op, scratch), "count", (json_int_t)s->calls, "p50_us",
		mcp_us((double)s->p50_ns), "p95_us", mcp_us((double)s->p95_ns), "p99_us",
		mcp_us((double)s->p99_ns), "max_us", mcp_us((double)s->max_ns), "wall_percent",
		100 * ops_share(a, s), "anomaly_count", (json_int_t)s->spikes);

	if (s->nested) /* its time is part of another row's */
		json_object_set_new(row, "nested", json_true());
	if (compact)
		return row;
	json_object_set_new(row, "source", json_string(wire_source_name(s->source)));
	json_object_set_new(
		row, "avg_us", mcp_us(s->calls ? (double)s->sum_ns / (double)s->calls : 0));
	json_object_set_new(row, "total_us", mcp_us((double)s->sum_ns));
	if (op)
		json_object_set_new(row, "meaning", json_string(op->description));
	return row;
}

static json_t *stats_json(const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_(ops_answer_done) struct ops_answer ops = {0};
	struct host_answer host = {0};
	json_t *list, *full, *range;
	int r = answer_ops(q, &ops, reterr);

	if (r == 0)
		r = answer_host(q, &host, reterr);
	range = r < 0 ? NULL : mcp_range(q, reterr);
	if (!range)
		return NULL;
	list = json_array();
	for (size_t i = 0; i < ops.count; i++)
		json_array_append_new(
			list, row_json(&ops, &ops.rows[i], mcp_arg_compact(arguments)));
	full = json_pack("{s:I, s:o, s:I, s:O, s:o}", "count", (json_int_t)ops.calls, "ops", list,
		"total_events", (json_int_t)ops.all_calls, "stored_events",
		json_object_get(range, "events"), "range", range);
	if (host.known)
		json_object_set_new(full, "system",
			json_pack("{s:f, s:f, s:I, s:f}", "cpu_percent", host.cpu_pct,
				"mem_percent", host.mem_pct, "swap_mb", (json_int_t)host.swap_mb,
				"load_avg", host.load1));
	return full;
}

void mcp_trace_stats(const struct call *c, const json_t *arguments, struct answer *a)
{
	mcp_answer(c, arguments, stats_json, a);
}
