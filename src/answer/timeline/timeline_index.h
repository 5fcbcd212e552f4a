/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_index.h - what of a recording is held in memory for its time line: lanes with their sums
 * (timeline_index.h), collectives, readings of GPUs, processes. No more than about 120 MB whatever
 * the recording's size. Made by one look at all rows, then extended by the new ones. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "store/read/nodedb_slice.h"

/* What threads, streams and processes did, summed up in bins of time, so that a
 * view over hours does not read millions of rows. Pure: times in, sums out.
 *
 * A lane is one thing over time: the calls of a thread, its stays off the CPU, what was put on a
 * stream. Its cells are the bins in which something happened. All lanes have bins of one width, a
 * power of two in ns, aligned at the origin: any coarser view is a sum of whole bins, exact to the
 * nanosecond. When cells would need more than their ceiling, the width doubles.
 *
 * Slices that are long beside a bin are kept one by one, too: who looks at a microsecond in the
 * middle of one must find it without reading all that came before. */

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

#define TIMELINE_NODES_MAX       4096u
#define TIMELINE_PEERS_MAX       60000u
#define TIMELINE_COLLECTIVES_MAX (200u << 10) /* 17 MB, the newest */
#define TIMELINE_PROCESSES_MAX   65536u

/* Names of cells and slices: of calls source and op, of waits for a CPU who had it. */
#define TIMELINE_NAME(source, op) ((uint16_t)((source)*WIRE_OP_MAX + (op)))

struct timeline_peer { /* who had a CPU */
	uint32_t pid;
	char comm[COMM_LEN];
};

struct timeline_process {
	uint16_t node;
	uint32_t pid;
	int32_t rank; /* -1: none that is known */
	char comm[COMM_LEN];
	char command[96]; /* its command line, cut; "": not known */
	uint64_t busy_ns; /* of its threads' calls */
};

struct timeline_collective {
	int64_t start_ns;
	uint64_t dur_ns, comm, seq, bytes, gap_ns;
	int64_t wait_ns; /* -1: not known */
	uint32_t pid, tid;
	int32_t rank, late_rank; /* who came last, gap_ns after the others; -1: not known */
	uint16_t op, node;
};

/* timeline_collective_wait - as far as it is known. */
static inline uint64_t timeline_collective_wait(const struct timeline_collective *c)
{
	return c->wait_ns > 0 ? (uint64_t)c->wait_ns : 0;
}

/* timeline_collective_ns - from the call to the end of its wait, which is known from the
 * synchronisation that followed. */
static inline uint64_t timeline_collective_ns(const struct timeline_collective *c)
{
	return MAX(c->dur_ns, timeline_collective_wait(c));
}

struct timeline_gpu {
	int64_t time_ns;
	uint16_t node, gpu;
	float value[5]; /* in the order of timeline_gpu_fields; NaN: not known */
};

struct timeline_gpu_field {
	const char *name, *unit, *column;
	double scale;
};
extern const struct timeline_gpu_field timeline_gpu_fields[5];

enum timeline_track_kind {
	TRACK_PROCESS, /* all its calls, stored or not, by buckets */
	TRACK_RANK,    /* collectives */
	TRACK_THREAD,  /* calls, and when it had no CPU */
	TRACK_STREAM,
	TRACK_HOST,
	TRACK_KINDS
};

struct timeline_bucket { /* all calls of a process in a bucket */
	int64_t start_ns;
	uint64_t busy_ns, count; /* of all its threads together */
	float lead_ns;           /* as in cells */
	uint16_t name, node;
	uint32_t pid;
};
#define TIMELINE_BUCKETS_MAX (512u << 10) /* 20 MB */
#define TIMELINE_FINE_NS     (4 * 3600 * (int64_t)NS_PER_S)

struct timeline_step {
	int64_t start_ns;
	uint64_t dur_ns;
	uint32_t pid;
	uint16_t node;
	bool is_slow;
};

struct timeline_entry { /* a track that can be drawn */
	enum timeline_track_kind kind;
	uint32_t process;                              /* of processes */
	const struct timeline_lane *lane;              /* TRACK_RANK: NULL; of a thread its calls */
	const struct timeline_lane *waiting, *blocked; /* TRACK_THREAD; NULL: none */
	uint64_t total_ns;
};

struct timeline_index {
	struct timeline_lanes lanes;
	char (*nodes)[256]; /* the first is that of rows that do not say: "" if there are several */
	size_t node_count, node_room;
	struct timeline_peer *peers; /* peers[0] is nobody */
	size_t peer_count, peer_room;
	struct idmap peer_ids;
	struct timeline_process *processes; /* the busiest first */
	size_t process_count;
	struct timeline_entry *entries; /* by process, then kind, the busiest first */
	size_t entry_count;
	struct timeline_collective *collectives; /* by time */
	size_t collective_count;
	uint64_t longest_collective_ns;
	bool older_collectives;          /* there are more */
	struct timeline_bucket *buckets; /* by time */
	size_t bucket_count;
	int64_t bucket_ns;
	bool older_buckets;
	struct timeline_gpu *gpus; /* by time */
	size_t gpu_count;
	bool older_gpus;
	struct timeline_step *steps; /* by time; steps_known: they were looked for */
	size_t step_count;
	bool steps_known;
	struct nodedb_range range;
	bool is_published;
	uint64_t streams[WIRE_SOURCE_MAX]; /* a bit for each op that has a stream */
	bool has_rows;                     /* lanes are there */
	int64_t last_row;
	uint64_t rows, skipped_rows;
};

/* timeline_index_load - what is new in the recording; at first all of it. Without @rows all but the
 * rows of events, which is quick: then there are no lanes. @progress, if not NULL, goes from 0 to 1000
 * meanwhile. After a failure the index is to be thrown away. */
int timeline_index_load(struct timeline_index *ix, struct nodedb_snapshot *l, bool rows,
	atomic_uint *progress, struct errinfo *reterr);
void timeline_index_done(struct timeline_index *ix);

/* timeline_index_steps - takes over the steps of @path, which takes as long as explaining it: make
 * the list without holding up readers, then put it into the index. */
struct timeline_steps {
	struct timeline_step *items;
	size_t count, room;
};
int timeline_steps_load(const struct timeline_index *ix, const char *path,
	struct timeline_steps *ret, struct errinfo *reterr);
void timeline_index_steps(struct timeline_index *ix, struct timeline_steps *steps);

/* timeline_index_step - the step of the process in which @ns lies; NULL: none is known. */
const struct timeline_step *timeline_index_step(
	const struct timeline_index *ix, const char *node, uint32_t pid, int64_t ns);

/* What of a row is drawn on which lane: up to three pieces. */
struct timeline_piece {
	struct timeline_key key;
	int64_t start_ns;
	uint64_t dur_ns;
	uint16_t name;
	bool nested; /* inside another call: drawn, but not summed up */
};
#define TIMELINE_PIECES 3
int timeline_pieces(struct timeline_index *ix, const struct nodedb_slice *s, uint16_t node,
	struct timeline_piece ret[TIMELINE_PIECES]);

/* timeline_index_has_nodes - whether process ids alone do not tell processes apart. */
static inline bool timeline_index_has_nodes(const struct timeline_index *ix)
{
	return ix->node_count > 2 || (ix->node_count == 2 && ix->nodes[0][0]);
}

/* timeline_index_node - the number of the slice's node; made if it is new. */
uint16_t timeline_index_node(struct timeline_index *ix, const struct nodedb_slice *s);
