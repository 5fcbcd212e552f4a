/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.h - CUDA graphs in a time: how often they were captured, made and launched. */
#pragma once

#include "answer/answer.h"

struct graphs_answer { /* of every call where the file has aggregates, else of the rows */
	uint64_t calls[WIRE_OP_MAX]; /* by enum wire_op_graph */
	double ns[WIRE_OP_MAX];
	uint64_t total;
	double seconds; /* of the time asked about */
};

/* A capture that has not ended made no graph, so that graphs_captures() counts ends. */
static inline uint64_t graphs_captures(const struct graphs_answer *a)
{
	return a->calls[GRAPH_END_CAPTURE];
}

int answer_graphs(const struct question *q, struct graphs_answer *ret, struct errinfo *reterr);

/* answer_graph_events - the newest @limit calls as rows, newest first: NODEDB_GRAPH_EVENTS. */
int answer_graph_events(
	const struct question *q, size_t limit, struct sql_table *ret, struct errinfo *reterr);

/* Which of an operation's arguments is what: see the descriptions in wire/ids.h. 0: none. */
struct graph_handles {
	uint64_t stream, graph, exec;
	int64_t capture_mode; /* -1: none */
};
struct graph_handles graph_handles_of(const struct sql_table *events, size_t row);
