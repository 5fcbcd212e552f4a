/* SPDX-License-Identifier: Apache-2.0 */
/* graphs_json.c - /api/v1/graph-metrics and /api/v1/graph-events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "answer/answer_private.h"
#include "answer/encode/say.h"
#include "answer/graphs.h"

#define EVENTS     100
#define EVENTS_MAX 1000
#define EVENTS_FEW 200
#define EXECS_MAX  4096

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

int graph_lifecycle_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	struct graphs_answer n;
	int r = answer_graphs(q, &n, reterr);

	if (r == 0)
		r = answer_graph_events(q, 0, &e, reterr);
	if (r < 0)
		return r;
	if (q->request->say)
		say_graphs(q->request->say, &n);
	json_begin_object(w);
	json_begin_array_member(w, "events");
	for (size_t i = e.row_count; i-- > 0 && e.row_count - i <= EVENTS_FEW;)
		put_event(w, &e, i);
	json_end_array(w);
	json_uint_member(w, "captures", graphs_captures(&n));
	json_uint_member(w, "instantiations", n.calls[GRAPH_INSTANTIATE]);
	json_uint_member(w, "launches", n.calls[GRAPH_LAUNCH]);
	json_uint_member(w, "updates", n.calls[GRAPH_EXEC_UPDATE]);
	json_uint_member(w, "destroys", n.calls[GRAPH_DESTROY] + n.calls[GRAPH_EXEC_DESTROY]);
	return answer_end(q, w, e.row_count > EVENTS_FEW);
}

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

static void put_execs(struct json_writer *w, const struct execs *x, double seconds)
{
	double median =
		x->count && seconds > 0 ? (double)x->row[x->count / 2].launches / seconds : 0;

	json_begin_array_member(w, "graphs");
	for (size_t i = 0; i < x->count && i < EVENTS_FEW; i++) {
		double rate = seconds > 0 ? (double)x->row[i].launches / seconds : 0;

		json_begin_object(w);
		put_handle(w, "exec_handle", x->row[i].handle);
		json_uint_member(w, "launches", x->row[i].launches);
		json_double_member(w, "launch_rate_per_sec", rate);
		json_string_member(w, "class",
			!x->row[i].launches            ? "never-launched"
			: rate > median && rate >= 1.0 ? "HOT"
						       : "cold");
		json_end_object(w);
	}
	json_end_array(w);
}

int graph_frequency_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_free_ struct execs *x = calloc(1, sizeof(*x));
	_cleanup_(sql_table_done) struct sql_table e = {0};
	struct graphs_answer n;
	int r = x ? answer_graphs(q, &n, reterr) : -ENOMEM;

	if (r == 0)
		r = answer_graph_events(q, 0, &e, reterr);
	if (r < 0)
		return r;
	if (q->request->say)
		say_graphs(q->request->say, &n);
	find_execs(&e, x);
	json_begin_object(w);
	put_execs(w, x, n.seconds);
	json_uint_member(w, "graph_count", x->count);
	json_uint_member(w, "launches", n.calls[GRAPH_LAUNCH]);
	json_uint_member(w, "recaptures", graphs_captures(&n) ? graphs_captures(&n) - 1 : 0);
	return answer_end(q, w, x->count > EVENTS_FEW);
}
