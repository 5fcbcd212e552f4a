/* SPDX-License-Identifier: Apache-2.0 */
/* ops_json.c - /api/v1/ops. */
#include "answer/answer_private.h"
#include "answer/encode/say.h"
#include "answer/ops.h"

#define OP_ROW(...) ROW(struct op_stat, __VA_ARGS__)
const struct row_field ops_fields[] = {
	ROW_OP_NAMED(struct op_stat, "operation", 0, "OPERATION", -27),
	ROW_NAMED(struct op_stat, "source", source, wire_source_name, OPS_DETAILS),
	OP_ROW("nested", nested, 0, 0),
	OP_ROW("count", calls, ROW_COUNT, 0, "COUNT", 11),
	OP_ROW("stored", rows, 0, OPS_DETAILS),
	OP_ROW("p50_us", p50_ns, ROW_US, OPS_PERCENTILES, "P50", 9),
	OP_ROW("p95_us", p95_ns, ROW_US, OPS_PERCENTILES, "P95", 9),
	OP_ROW("p99_us", p99_ns, ROW_US, OPS_PERCENTILES, "P99", 9),
	OP_ROW("avg_us", avg_ns, ROW_US, OPS_DETAILS),
	OP_ROW("min_us", min_ns, ROW_US, OPS_DETAILS),
	OP_ROW("max_us", max_ns, ROW_US, 0, "MAX", 9),
	OP_ROW("total_us", sum_ns, ROW_US, OPS_DETAILS),
	OP_ROW("wall_percent", share, ROW_PERCENT, 0, "WALL%", 7),
	OP_ROW("anomaly_count", spikes, ROW_COUNT, 0, "SPIKES", 7),
	ROW_END,
};

int ops_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	static const char *const modes[] = {[OPS_NOTHING] = "empty",
		[OPS_SKETCHES] = "percentile",
		[OPS_ROWS] = "percentile",
		[OPS_MINUTES] = "aggregate"};
	_cleanup_(ops_answer_done) struct ops_answer a = {0};
	int r = answer_ops(q, &a, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	row_json_list(w, "ops", ops_fields, a.rows, sizeof(*a.rows), a.count,
		(a.origin == OPS_MINUTES ? OPS_PERCENTILES : 0u) |
			(q->request->brief ? OPS_DETAILS : 0u));
	if (q->request->say)
		say_ops(q->request->say, &a);
	r = put_system(q, w, reterr);
	json_string_member(w, "mode", modes[a.origin]);
	json_uint_member(w, "total_calls", a.calls);
	json_uint_member(w, "total_events", a.all_calls);
	answer_end(q, w, a.truncated);
	return r;
}
