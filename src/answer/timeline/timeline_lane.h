/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_lane.h - what threads, streams and processes did, summed up in bins of time, so that a
 * view over hours does not read millions of rows. Pure: times in, sums out.
 *
 * A lane is one thing over time: the calls of a thread, its stays off the CPU, what was put on a
 * stream. Its cells are the bins in which something happened. All lanes have bins of one width, a
 * power of two in ns, aligned at the origin: any coarser view is a sum of whole bins, exact to the
 * nanosecond. When cells would need more than their ceiling, the width doubles.
 *
 * Slices that are long beside a bin are kept one by one, too: who looks at a microsecond in the
 * middle of one must find it without reading all that came before. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"

enum timeline_kind {
	TIMELINE_CALLS,   /* of a thread, without those inside others */
	TIMELINE_WAITING, /* of a thread: able to run, without a CPU */
	TIMELINE_BLOCKED, /* of a thread: off the CPU otherwise */
	TIMELINE_STREAM,  /* calls that put something on a stream, or wait for it */
	TIMELINE_HOST,    /* of a process: disk, network, memory; may overlap */
	TIMELINE_KINDS
};

struct timeline_cell {
	uint64_t busy_ns;
	uint32_t bin, count; /* count: of those that begin here */
	float lead_ns;       /* by how much `name` is ahead of all others together */
	uint16_t name;       /* what took most of it: surely, if that is more than half */
};

struct timeline_key {
	uint64_t stream; /* TIMELINE_STREAM */
	uint32_t pid, tid;
	uint16_t node;
	enum timeline_kind kind;
};

struct timeline_lane {
	struct timeline_key key;
	char name[16]; /* of its thread; "": not known */
	int32_t rank;  /* -1: not known */
	uint64_t rows, busy_ns;
	int64_t open_end_ns;         /* end of the last call that is not inside another */
	struct timeline_cell *cells; /* by bin */
	size_t count, room, sorted;  /* the first so many are in order */
};

struct timeline_long { /* a slice that is longer than long_ns of its set */
	int64_t start_ns;
	uint64_t dur_ns;
	int64_t row;
};

struct timeline_lanes {
	int64_t origin_ns;
	unsigned shift; /* a bin has 1 << shift ns */
	int64_t long_ns;
	struct timeline_lane **list;
	size_t count, room;
	struct idmap by_key;
	size_t cells, cells_max;
	uint64_t work, added; /* cells touched since bins became wider; slices */
	uint32_t *rows;       /* by bin: how many begin there */
	size_t bins;          /* that rows has */
	struct timeline_long *longs;
	size_t long_count, long_room;
	uint64_t other_rows; /* of lanes beyond TIMELINE_LANES_MAX */
};

#define TIMELINE_LANES_MAX 65536u
#define TIMELINE_BINS_MAX  (1u << 19)
#define TIMELINE_CELLS_MAX (2600u << 10) /* 64 MB */
#define TIMELINE_LONGS_MAX (256u << 10)  /* 10 MB */

/* timeline_lanes_init - for a recording of @span_ns from @origin_ns on; it may become longer. */
void timeline_lanes_init(struct timeline_lanes *s, int64_t origin_ns, int64_t span_ns);
void timeline_lanes_done(struct timeline_lanes *s);

/* timeline_lane_find - the lane of @key, made if there is none; NULL in *ret if there are too many.
 */
int timeline_lane_find(
	struct timeline_lanes *s, const struct timeline_key *key, struct timeline_lane **ret);

/* timeline_lane_get - the lane of @key, or NULL. */
struct timeline_lane *timeline_lane_get(
	const struct timeline_lanes *s, const struct timeline_key *key);

/* timeline_lane_add - a slice; what lies before the origin counts in the first bin. -ENOMEM. */
int timeline_lane_add(struct timeline_lanes *s, struct timeline_lane *lane, int64_t start_ns,
	uint64_t dur_ns, uint16_t name);

/* timeline_lanes_row - counts a row that begins at @start_ns. */
int timeline_lanes_row(struct timeline_lanes *s, int64_t start_ns);

/* timeline_lanes_long - remembers @l if it is long. */
int timeline_lanes_long(struct timeline_lanes *s, const struct timeline_long *l);

/* timeline_lanes_settle - puts all cells in order. Before reading, after adding. */
void timeline_lanes_settle(struct timeline_lanes *s);

/* timeline_lanes_rows - how many rows begin from @from_ns to @to_ns, in whole bins. */
uint64_t timeline_lanes_rows(const struct timeline_lanes *s, int64_t from_ns, int64_t to_ns);

/* timeline_lane_sum - calls @fn for each bin of 1 << @shift ns (no narrower than the set's) that has
 * a moment of from_ns … to_ns and in which something happened, in order of time. */
typedef int timeline_sum_fn(void *arg, const struct timeline_cell *c);
int timeline_lane_sum(const struct timeline_lanes *s, const struct timeline_lane *lane,
	int64_t from_ns, int64_t to_ns, unsigned shift, timeline_sum_fn *fn, void *arg);

/* timeline_cell_add - @more becomes a part of @c. */
void timeline_cell_add(struct timeline_cell *c, const struct timeline_cell *more);
