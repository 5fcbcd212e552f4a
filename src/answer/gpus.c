/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - see gpus.h. */
#include "answer/gpus.h"

#include "model/sample.h"

static int add(void *arg, const struct aggregate *a)
{
	struct graphs_answer *c = arg;

	if (a->source == SOURCE_GRAPH && a->op < WIRE_OP_MAX && !(a->flags & WIRE_NESTED)) {
		c->calls[a->op] += a->sketch.count;
		c->ns[a->op] += (double)a->sketch.sum;
		c->total += a->sketch.count;
	}
	return 0;
}

static int count_rows(const struct question *q, struct graphs_answer *c, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_GRAPH_EVENTS, &q->scope, 0, &e, reterr);

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

int answer_graphs(const struct question *q, struct graphs_answer *c, struct errinfo *reterr)
{
	struct scope scope = q->scope;
	bool truncated;

	*c = (struct graphs_answer){
		.seconds = (double)(scope.to_ns - scope.from_ns) / (double)NS_PER_S};
	if (!nodedb_snapshot_is_ours(q->snapshot))
		return count_rows(q, c, reterr);
	scope.source = SOURCE_GRAPH;
	scope.op = 0;
	return nodedb_snapshot_aggregates(q->snapshot, &scope, add, c, &truncated, reterr);
}

int answer_graph_events(
	const struct question *q, size_t limit, struct sql_table *ret, struct errinfo *reterr)
{
	struct graphs_answer counts = {0};
	int r = 0;

	/* Rows have no index by source: where the aggregates know of none, none is looked for. */
	if (nodedb_snapshot_is_ours(q->snapshot))
		r = answer_graphs(q, &counts, reterr);
	if (r < 0 || (nodedb_snapshot_is_ours(q->snapshot) && !counts.total))
		return r;
	return nodedb_snapshot_list(
		q->snapshot, NODEDB_GRAPH_EVENTS, &q->scope, limit, ret, reterr);
}

struct graph_handles graph_handles_of(const struct sql_table *e, size_t row)
{
	uint64_t arg0 = (uint64_t)table_int(e, row, table_column(e, "arg0"));
	uint64_t arg1 = (uint64_t)table_int(e, row, table_column(e, "arg1"));
	struct graph_handles h = {.capture_mode = -1};

	switch (table_int(e, row, table_column(e, "op"))) {
	case GRAPH_BEGIN_CAPTURE:
		h.stream = arg0;
		h.capture_mode = (int64_t)arg1;
		break;
	case GRAPH_END_CAPTURE:
		h.stream = arg0;
		h.graph = arg1;
		break;
	case GRAPH_INSTANTIATE:
	case GRAPH_EXEC_UPDATE:
		h.graph = arg0;
		h.exec = arg1;
		break;
	case GRAPH_LAUNCH:
		h.exec = arg0;
		h.stream = (uint64_t)table_int(e, row, table_column(e, "stream"));
		break;
	case GRAPH_UPLOAD:
		h.exec = arg0;
		h.stream = (uint64_t)table_int(e, row, table_column(e, "stream"));
		break;
	case GRAPH_NODE_SET_PARAMS: h.exec = arg1; break;
	case GRAPH_EXEC_DESTROY: h.exec = arg0; break;
	case GRAPH_DESTROY: h.graph = arg0; break;
	}
	return h;
}

bool gpus_same(const struct gpus_answer *a, size_t x, size_t y)
{
	const struct sql_table *t = &a->samples;

	return table_int(t, x, GPUS_GPU) == table_int(t, y, GPUS_GPU) &&
	       !strcmp(table_text(t, x, GPUS_NODE), table_text(t, y, GPUS_NODE));
}

uint64_t gpus_slowing(int64_t reasons)
{
	uint64_t bits = 0;

	for (const struct gpu_throttle *t = gpu_throttles; reasons > 0 && t->bit; t++)
		if (t->slows)
			bits |= (uint64_t)reasons & t->bit;
	return bits;
}

int answer_gpus(const struct question *q, struct gpus_answer *ret, struct errinfo *reterr)
{
	struct gpus_answer a = {.count = 0};
	int r = nodedb_snapshot_list(
		q->snapshot, NODEDB_GPU_SAMPLES, &q->scope, 0, &a.samples, reterr);

	if (r < 0)
		return r;
	a.truncated = a.samples.truncated;
	for (size_t i = 0; i < a.samples.row_count; i++) {
		size_t k = 0;

		while (k < a.count && !gpus_same(&a, a.newest[k], i))
			k++;
		if (k == GPUS_MAX)
			a.truncated = true;
		else if (k == a.count)
			a.newest[a.count++] = i;
	}
	*ret = a;
	return 0;
}

void gpus_answer_done(struct gpus_answer *a)
{
	sql_table_done(&a->samples);
}

struct gpu_gauge gpus_gauge(const struct gpus_answer *a, size_t gpu, const char *column)
{
	const struct sql_table *t = &a->samples;
	int c = table_column(t, column);
	struct gpu_gauge g = {0};
	double sum = 0;

	for (size_t i = a->newest[gpu]; c >= 0 && i < t->row_count; i++) {
		int64_t v = table_int(t, i, c);

		if (!gpus_same(a, i, a->newest[gpu]) || sql_table_cell(t, i, c)->type != SQL_INT ||
			v < 0)
			continue;
		g.min = g.samples ? MIN(g.min, v) : v;
		g.max = g.samples ? MAX(g.max, v) : v;
		sum += (double)v;
		g.samples++;
	}
	g.mean = g.samples ? sum / (double)g.samples : 0;
	return g;
}
