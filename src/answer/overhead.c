/* SPDX-License-Identifier: Apache-2.0 */
/* overhead.c - what tracing itself cost, as the agent recorded it. */
#include "answer/answer_private.h"

#define POINTS     300
#define POINTS_MAX 5000

static void put_value(
	struct json_writer *w, const struct sql_table *t, size_t row, const char *name)
{
	json_key(w, name);
	table_cell(w, t, row, table_column(t, name));
}

int overhead_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	static const char *const series[] = {"timestamp", "overhead", "overhead_low",
		"overhead_high", "launch_weight", "launch_watched", "launch_error", "agent_cpu_pct",
		"agent_rss_bytes", "db_bytes"};
	static const char *const newest[] = {"budget", "overhead", "overhead_low", "overhead_high",
		"pairs", "hit_ns", "launch_weight", "launch_watched", "launch_error",
		"agent_cpu_pct", "agent_rss_bytes", "db_bytes"};
	size_t points = answer_limit(q->request->points, POINTS, POINTS_MAX), every;
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_OVERHEAD, &q->scope, 0, &s, reterr);

	if (r < 0)
		return r;
	every = s.row_count / points + 1;
	json_begin_object(w);
	json_bool_member(w, "recorded", s.row_count > 0);
	for (size_t i = 0; s.row_count && i < ARRAY_SIZE(newest); i++)
		put_value(w, &s, 0, newest[i]);
	json_begin_array_member(w, "samples");
	for (size_t i = s.row_count; i-- > 0;) {
		if (i % every)
			continue;
		json_begin_object(w);
		for (size_t c = 0; c < ARRAY_SIZE(series); c++)
			put_value(w, &s, i, series[c]);
		json_end_object(w);
	}
	json_end_array(w);
	return answer_end(q, w, s.truncated);
}
