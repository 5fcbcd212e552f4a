/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - how often each operation was called in a time, and how long it took. */
#pragma once

#include "answer/answer.h"
#include "answer/row.h"
#include "model/event.h"
#include "base/buf.h"
#include "answer/explain.h"

enum ops_origin {
	OPS_NOTHING,  /* there are no calls */
	OPS_SKETCHES, /* of every call, by the aggregates' distributions */
	OPS_ROWS,     /* of the rows: a published file, or the newest rows were asked for */
	OPS_MINUTES,  /* of every call, by aggregates that know no percentiles */
};

struct ops_answer {
	struct op_stat *rows; /* most time first; calls inside others are rows of their own */
	size_t count;
	enum ops_origin origin;
	uint64_t calls; /* of all rows but those inside others, which would count twice */
	uint64_t
		all_calls; /* the same, or what the minutes of a published file know beyond its rows */
	uint64_t wall_ns;                  /* of the time asked about */
	uint64_t damaged_rows, older_rows; /* left out; OPS_ROWS */
	bool truncated;                    /* there are more buckets than are added up */
};

/* answer_ops - what the question's scope has. ops_answer_done() releases it. */
int answer_ops(const struct question *q, struct ops_answer *ret, struct errinfo *reterr);
void ops_answer_done(struct ops_answer *a);

/* ops_sum_up - sorts the rows and computes what follows from them: averages, shares, calls. */
void ops_sum_up(struct ops_answer *a);

/* ops_fields - a row for whoever shows it. */
extern const struct row_field ops_fields[];
#define OPS_PERCENTILES 1 /* unknown where the origin is OPS_MINUTES */
#define OPS_DETAILS     2 /* what a short answer can do without */

/* ---- while buckets are added up ---- */

struct op_sum {
	uint8_t source;
	uint16_t op;
	bool nested;
	uint64_t stored;
	struct sketch sketch;
};

struct op_sums {
	struct op_sum *rows; /* in any order */
	size_t count;
};

/* op_sums_find - the row of the aggregate's operation, new if need be; valid until the next call.
 * -ENOBUFS, -ENOMEM. */
int op_sums_find(struct op_sums *o, const struct aggregate *a, struct op_sum **ret);

#define OP_STAT_SPIKE 3 /* times the median */

struct op_stat {
	uint8_t source;
	uint16_t op;
	bool nested; /* calls inside others */
	uint64_t rows;
	uint64_t calls;  /* that they stand for: the sum of weights */
	uint64_t sum_ns; /* of all calls; stops at the largest number */
	uint64_t min_ns, max_ns, p50_ns, p95_ns, p99_ns;
	double avg_ns, share; /* of wall time, more than 1 if threads called at once; see ops.h */
	uint64_t spikes;      /* calls slower than OP_STAT_SPIKE times p50; none if that is 0 */
};

/* op_stat_run - one for each (source, op, nested) of @events, most time first; the caller frees *ret.
 * Percentiles are by nearest rank over calls: the duration of the call at rank ceil(p * calls), a
 * row counting as many times as its weight says. -ENOMEM. */
int op_stat_run(const struct event *events, size_t count, struct op_stat **ret, size_t *ret_count);

/* op_stat_of_sketch - the same of every call that @s knows; percentiles are the sketch's. */
struct op_stat op_stat_of_sketch(
	uint8_t source, uint16_t op, bool nested, uint64_t rows, const struct sketch *s);

/* answer_kernels - rows of NODEDB_KERNELS, most launches first: name, origin, launches, processes. */
int answer_kernels(
	const struct question *q, size_t limit, struct sql_table *ret, struct errinfo *reterr);

/* kernels_text - a section of `query`; nothing if there are none. */
void kernels_text(struct buf *b, const struct sql_table *kernels);

/* kernel_names_put - adds to the explanations of @e, found in @c, the kernels of the launches among their
 * evidence. A recording without names changes nothing. */
void kernel_names_put(struct nodedb_content *c, struct explanation *e);

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
