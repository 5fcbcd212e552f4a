/* SPDX-License-Identifier: Apache-2.0 */
/* ops_json.c - /api/v1/ops. */
#include "agent/answer/answer_private.h"
#include "agent/answer/ops.h"

static void put_row(struct json_writer *w, const struct op_stat *s, bool percentiles)
{
	char scratch[32];

	json_begin_object(w);
	json_string_member(w, "operation", wire_op_name(s->source, s->op, scratch));
	json_string_member(w, "source", wire_source_name(s->source));
	put_bool(w, "nested", s->nested);
	json_uint_member(w, "count", s->calls);
	json_uint_member(w, "stored", s->rows);
	if (percentiles) {
		put_us(w, "p50_us", (double)s->p50_ns);
		put_us(w, "p95_us", (double)s->p95_ns);
		put_us(w, "p99_us", (double)s->p99_ns);
	}
	put_us(w, "avg_us", s->calls ? (double)s->sum_ns / (double)s->calls : 0);
	put_us(w, "min_us", (double)s->min_ns);
	put_us(w, "max_us", (double)s->max_ns);
	put_us(w, "total_us", (double)s->sum_ns);
	json_end_object(w);
}

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
	json_key(w, "ops");
	json_begin_array(w);
	for (size_t i = 0; i < a.count; i++)
		put_row(w, &a.rows[i], a.origin != OPS_MINUTES);
	json_end_array(w);
	r = put_system(q, w, reterr);
	json_string_member(w, "mode", modes[a.origin]);
	json_uint_member(w, "total_calls", a.calls);
	put_bool(w, "truncated", a.truncated);
	put_window(q, w);
	json_end_object(w);
	return r;
}
