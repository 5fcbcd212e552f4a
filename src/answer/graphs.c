/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.c - see graphs.h. */
#include "answer/graphs.h"

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
