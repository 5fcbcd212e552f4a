/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - samples of the GPUs in a time. */
#pragma once

#include "answer/answer.h"

#define GPUS_MAX 256

/* Columns of the table gpu_samples, in its order; then GPU_FIELDS. */
enum { GPUS_NODE, GPUS_TIME, GPUS_GPU, GPUS_UUID, GPUS_NAME, GPUS_PCI };

struct gpus_answer {
	struct sql_table samples; /* newest first */
	size_t newest[GPUS_MAX];  /* of each GPU: its first row */
	size_t count;
	bool truncated;
};

int answer_gpus(const struct question *q, struct gpus_answer *ret, struct errinfo *reterr);
void gpus_answer_done(struct gpus_answer *a);

/* gpus_same - whether two rows are of one GPU. */
bool gpus_same(const struct gpus_answer *a, size_t x, size_t y);

/* gpus_slowing - the reasons in @bits for which a GPU runs slower than it could. */
uint64_t gpus_slowing(int64_t bits);

struct gpu_gauge {        /* one column over the samples of a GPU */
	uint64_t samples; /* 0: it never said */
	int64_t min, max;
	double mean;
};
struct gpu_gauge gpus_gauge(const struct gpus_answer *a, size_t gpu, const char *column);

/* CUDA graphs in a time: how often they were captured, made and launched. */

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
