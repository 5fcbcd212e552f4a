/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_stats.c - get_trace_stats: figures of each operation (answer/ops.h). */
#include "serve/mcp/mcp_tool.h"

#include "answer/kernels.h"
#include "answer/ops.h"
#include "wire/names.h"

#define KERNELS_SHOWN 10

static json_t *op_json(const struct op_stat *s, bool compact)
{
	const struct wire_op_row *op = wire_op_find(s->source, s->op);
	json_t *row = mcp_row(ops_fields, s, compact ? OPS_DETAILS : 0);

	if (op && !compact)
		json_object_set_new(row, "meaning", json_string(op->description));
	return row;
}

/* The most launched, by name; a recording without names has none. */
static json_t *kernels_list(const struct question *q)
{
	_cleanup_(sql_table_done) struct sql_table k = {0};
	json_t *list = json_array();

	if (answer_kernels(q, KERNELS_SHOWN, &k, NULL) < 0)
		return list;
	for (size_t i = 0; i < k.row_count; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:I}", "name",
				      table_text(&k, i, table_column(&k, "name")), "launches_about",
				      (json_int_t)table_int(&k, i, table_column(&k, "launches"))));
	return list;
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
		json_array_append_new(list, op_json(&ops.rows[i], mcp_arg_compact(arguments)));
	full = json_pack("{s:I, s:o, s:I, s:O, s:o}", "count", (json_int_t)ops.calls, "ops", list,
		"total_events", (json_int_t)ops.all_calls, "stored_events",
		json_object_get(range, "events"), "range", range);
	json_object_set_new(full, "kernels", kernels_list(q));
	if (host.known)
		json_object_set_new(full, "system",
			json_pack("{s:f, s:f, s:I, s:f}", "cpu_percent", host.cpu_pct,
				"mem_percent", host.mem_pct, "swap_mb", (json_int_t)host.swap_mb,
				"load_avg", host.load1));
	return full;
}

MCP_ANSWERS(mcp_trace_stats, stats_json)
