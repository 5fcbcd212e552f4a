/* SPDX-License-Identifier: Apache-2.0 */
/* graphs_json.c - /api/v1/graph-metrics and /api/v1/graph-events. */
#include <stdio.h>

#include "answer/answer_private.h"
#include "answer/graphs.h"

#define EVENTS     100
#define EVENTS_MAX 1000

int graph_metrics_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct graphs_answer a;
	uint64_t captures, made, launches;
	int r = answer_graphs(q, &a, reterr);

	if (r < 0)
		return r;
	captures = graphs_captures(&a);
	made = a.calls[GRAPH_INSTANTIATE];
	launches = a.calls[GRAPH_LAUNCH];
	json_begin_object(w);
	json_uint_member(w, "captures", captures);
	json_uint_member(w, "instantiations", made);
	json_uint_member(w, "launches", launches);
	json_uint_member(w, "total_events", a.total);
	if (captures)
		put_us(w, "avg_capture_dur_us", a.ns[GRAPH_END_CAPTURE] / (double)captures);
	if (made)
		put_us(w, "avg_instantiate_dur_us", a.ns[GRAPH_INSTANTIATE] / (double)made);
	if (launches && a.seconds > 0)
		json_double_member(w, "launch_rate_per_sec", (double)launches / a.seconds);
	put_window(q, w);
	json_end_object(w);
	return 0;
}

static void put_handle(struct json_writer *w, const char *key, uint64_t handle)
{
	char text[24];

	if (!handle)
		return;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)handle);
	json_string_member(w, key, text);
}

static void put_event(struct json_writer *w, const struct sql_table *e, size_t i)
{
	unsigned op = (unsigned)table_int(e, i, table_column(e, "op"));
	const char *comm = table_text(e, i, table_column(e, "comm"));
	struct graph_handles h = graph_handles_of(e, i);
	char scratch[32];

	json_begin_object(w);
	json_int_member(w, "timestamp", table_int(e, i, table_column(e, "timestamp")));
	json_int_member(w, "pid", table_int(e, i, table_column(e, "pid")));
	if (comm[0])
		json_string_member(w, "comm", comm);
	json_string_member(w, "op", wire_op_name(SOURCE_GRAPH, op, scratch));
	put_us(w, "duration_us", table_real(e, i, table_column(e, "duration")));
	put_handle(w, "stream_handle", h.stream);
	put_handle(w, "graph_handle", h.graph);
	put_handle(w, "exec_handle", h.exec);
	if (h.capture_mode >= 0)
		json_int_member(w, "capture_mode", h.capture_mode);
	json_int_member(w, "ret_code", table_int(e, i, table_column(e, "ret_code")));
	json_end_object(w);
}

int graph_events_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	size_t limit = answer_limit(q->request->limit, EVENTS, EVENTS_MAX);
	int r = answer_graph_events(q, limit, &e, reterr);

	if (r < 0)
		return r;
	json_begin_array(w);
	for (size_t i = 0; i < e.row_count; i++)
		put_event(w, &e, i);
	json_end_array(w);
	return 0;
}
