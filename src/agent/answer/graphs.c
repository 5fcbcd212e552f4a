/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.c - CUDA graphs: how often they were captured, made and launched, and the newest
 * calls. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/answer/answer_private.h"

#define EVENTS     100
#define EVENTS_MAX 1000

struct counts {
	uint64_t calls[WIRE_OP_MAX];
	double ns[WIRE_OP_MAX];
	uint64_t total;
};

static int add(void *arg, const struct aggregate *a)
{
	struct counts *c = arg;

	if (a->source == SOURCE_GRAPH && a->op < WIRE_OP_MAX) {
		c->calls[a->op] += a->sketch.count;
		c->ns[a->op] += (double)a->sketch.sum;
		c->total += a->sketch.count;
	}
	return 0;
}

static int count_rows(const struct question *t, struct counts *c, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	int r = nodedb_snapshot_list(t->snapshot, NODEDB_GRAPH_EVENTS, &t->scope, 0, &e, reterr);

	for (size_t i = 0; r == 0 && i < e.row_count; i++) {
		int64_t op = table_int(&e, i, table_column(&e, "op"));

		if (op < 0 || op >= WIRE_OP_MAX)
			continue;
		c->calls[op]++;
		c->ns[op] += table_real(&e, i, table_column(&e, "duration"));
		c->total++;
	}
	return r;
}

static int count_calls(const struct question *t, struct counts *c, struct errinfo *reterr)
{
	struct scope scope = t->scope;
	bool truncated;

	if (!nodedb_snapshot_is_ours(t->snapshot))
		return count_rows(t, c, reterr);
	scope.source = SOURCE_GRAPH;
	scope.op = 0;
	return nodedb_snapshot_aggregates(t->snapshot, &scope, add, c, &truncated, reterr);
}

int graph_metrics_json(const struct question *t, struct json_writer *w, struct errinfo *reterr)
{
	double seconds = (double)(t->scope.to_ns - t->scope.from_ns) / (double)NS_PER_S;
	uint64_t captures, made, launches;
	struct counts c = {0};
	int r = count_calls(t, &c, reterr);

	if (r < 0)
		return r;
	captures = c.calls[GRAPH_END_CAPTURE];
	made = c.calls[GRAPH_INSTANTIATE];
	launches = c.calls[GRAPH_LAUNCH];
	json_begin_object(w);
	json_uint_member(w, "captures", captures);
	json_uint_member(w, "instantiations", made);
	json_uint_member(w, "launches", launches);
	json_uint_member(w, "total_events", c.total);
	if (captures)
		put_us(w, "avg_capture_dur_us", c.ns[GRAPH_END_CAPTURE] / (double)captures);
	if (made)
		put_us(w, "avg_instantiate_dur_us", c.ns[GRAPH_INSTANTIATE] / (double)made);
	if (launches && seconds > 0)
		json_double_member(w, "launch_rate_per_sec", (double)launches / seconds);
	put_window(t, w);
	json_end_object(w);
	return 0;
}

static void put_handle(struct json_writer *w, const char *key, int64_t handle)
{
	char text[24];

	if (!handle)
		return;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)handle);
	json_string_member(w, key, text);
}

/* Which of an operation's arguments is what: see the descriptions in wire/ids.h. */
static void put_handles(
	struct json_writer *w, int64_t op, int64_t arg0, int64_t arg1, int64_t stream)
{
	switch (op) {
	case GRAPH_BEGIN_CAPTURE:
		put_handle(w, "stream_handle", arg0);
		json_int_member(w, "capture_mode", arg1);
		break;
	case GRAPH_END_CAPTURE:
		put_handle(w, "stream_handle", arg0);
		put_handle(w, "graph_handle", arg1);
		break;
	case GRAPH_INSTANTIATE:
	case GRAPH_EXEC_UPDATE:
		put_handle(w, "graph_handle", arg0);
		put_handle(w, "exec_handle", arg1);
		break;
	case GRAPH_LAUNCH:
		put_handle(w, "exec_handle", arg0);
		put_handle(w, "stream_handle", stream);
		break;
	case GRAPH_EXEC_DESTROY: put_handle(w, "exec_handle", arg0); break;
	case GRAPH_DESTROY: put_handle(w, "graph_handle", arg0); break;
	}
}

static void put_event(struct json_writer *w, const struct sql_table *e, size_t i)
{
	int64_t op = table_int(e, i, table_column(e, "op"));
	const char *comm = table_text(e, i, table_column(e, "comm"));
	char scratch[32];

	json_begin_object(w);
	json_int_member(w, "timestamp", table_int(e, i, table_column(e, "timestamp")));
	json_int_member(w, "pid", table_int(e, i, table_column(e, "pid")));
	if (comm[0])
		json_string_member(w, "comm", comm);
	json_string_member(w, "op", wire_op_name(SOURCE_GRAPH, (unsigned)op, scratch));
	put_us(w, "duration_us", table_real(e, i, table_column(e, "duration")));
	put_handles(w, op, table_int(e, i, table_column(e, "arg0")),
		table_int(e, i, table_column(e, "arg1")),
		table_int(e, i, table_column(e, "stream")));
	json_int_member(w, "ret_code", table_int(e, i, table_column(e, "ret_code")));
	json_end_object(w);
}

int graph_events_json(const struct question *t, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	struct counts c = {0};
	int r = 0;

	/* Rows have no index by source: where the aggregates know of none, none is looked for. */
	if (nodedb_snapshot_is_ours(t->snapshot))
		r = count_calls(t, &c, reterr);
	if (r == 0 && (c.total || !nodedb_snapshot_is_ours(t->snapshot)))
		r = nodedb_snapshot_list(t->snapshot, NODEDB_GRAPH_EVENTS, &t->scope,
			answer_limit(t->request->limit, EVENTS, EVENTS_MAX), &e, reterr);
	if (r < 0)
		return r;
	json_begin_array(w);
	for (size_t i = 0; i < e.row_count; i++)
		put_event(w, &e, i);
	json_end_array(w);
	return 0;
}
