/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.h - a part of a recording as a drawing: tracks of threads, streams, ranks and processes,
 * readings of GPUs, incidents, steps. As many bins as there are pixels, or every event where there
 * are few. Times are ns after the origin. */
#pragma once

#include "answer/answer.h"
#include "answer/timeline/timeline_index.h"
#include "answer/event_args.h"
#include "model/stack.h"

#define TIMELINE_WIDTH_MIN  16
#define TIMELINE_WIDTH_MAX  4096
#define TIMELINE_TRACKS     64
#define TIMELINE_TRACKS_MAX 512

extern const char *const timeline_track_names[TRACK_KINDS];

struct timeline_bin {
	int64_t bin; /* it begins bin * bin_ns after the origin */
	uint64_t busy_ns, wait_ns;
	uint32_t count;
	int name; /* of the answer's names */
};

struct timeline_slice {
	int64_t start_ns;
	uint64_t dur_ns, wait_ns;
	int name, peer; /* of the answer's names; -1: none */
	int depth;      /* in how many others it lies */
	uint16_t op;    /* as cells have it */
	bool nested;
	int64_t row;
	const struct timeline_collective *collective; /* TRACK_RANK */
};

struct timeline_list { /* bins or slices, whichever are there */
	struct timeline_bin *bins;
	size_t bin_count, bin_room;
	struct timeline_slice *slices;
	size_t slice_count, slice_room;
};

struct timeline_track {
	enum timeline_track_kind kind;
	const struct timeline_process *process;
	const struct timeline_entry *entry;
	uint32_t tid;
	uint64_t stream;
	const char *name;  /* of a thread; "" */
	uint64_t total_ns; /* of the whole recording */
	unsigned shift;    /* of its bins: no narrower than what they are made of */
	struct timeline_list calls, waiting, blocked;
};

struct timeline_incident {
	char id[128], severity[12], title[512], node[64];
	int64_t start_ns;
	uint64_t dur_ns;
	uint32_t pid;
	bool active;
};

struct timeline_bar { /* a step, or several of a process that fall into one pixel */
	int64_t start_ns;
	uint64_t dur_ns;
	uint32_t steps, slow, pid;
	uint16_t node;
};

struct timeline_reading {
	int64_t time_ns;
	double value;
};

struct timeline_series {
	const char *node;
	unsigned gpu, field;
	struct timeline_reading *points;
	size_t count, room;
	unsigned in_last; /* readings that the last point is the mean of */
};

struct timeline_counts { /* by process */
	const struct timeline_process *process;
	uint64_t calls, rows; /* counted by the kernel in this time; of them stored one by one */
};

struct timeline_answer {
	int64_t origin_ns, from_ns, to_ns; /* from and to after the origin */
	int64_t begin_ns, end_ns;
	unsigned shift;                 /* bins of 1 << shift ns */
	bool is_events;                 /* every row is there */
	int waiting_name, blocked_name; /* of the kinds of stays off the CPU */
	char (*names)[64];
	size_t name_count, name_room;
	struct timeline_track *tracks;
	size_t track_count, other_tracks; /* those before and after this page */
	struct timeline_series *series;
	size_t series_count;
	struct timeline_bar *bars;
	size_t bar_count, bar_room;
	struct timeline_incident *incidents;
	size_t incident_count;
	struct timeline_counts *counts;
	size_t count_count;
	bool truncated;
};

/* answer_timeline - @ix is the recording's and is not changed meanwhile. The request's points are
 * the width in pixels, limit and offset choose tracks, kinds (a list of timeline_track_names, "":
 * all) too. */
int answer_timeline(const struct question *q, const struct timeline_index *ix,
	struct timeline_answer *ret, struct errinfo *reterr);
void timeline_answer_done(struct timeline_answer *a);

/* One event of a time line with all that is known of it, and the search for
 * events. */

struct timeline_event {
	struct event e;
	char node[256];
	int64_t row;         /* of `events`; 0: only a collective */
	bool has_collective; /* with what it has beyond an event: */
	struct collective_row collective;
	struct event_args args;
	struct stack *stack;                 /* NULL: none is stored */
	struct timeline_incident *incidents; /* that it lies in; their times are since 1970 */
	size_t incident_count;
	char sql[256]; /* that selects it */
};

/* answer_timeline_event - the event that the request's text names: "e123" or "c…", as
 * /api/v1/timeline calls it. -EINVAL: it is no name of one; -ESRCH: there is none. */
int answer_timeline_event(
	const struct question *q, struct timeline_event *ret, struct errinfo *reterr);
void timeline_event_done(struct timeline_event *e);

#define TIMELINE_HITS     200
#define TIMELINE_TEXT_MIN 2

struct timeline_hit {
	int64_t start_ns; /* since 1970 */
	uint64_t dur_ns;
	char name[64];
	char node[64];
	uint32_t pid, tid;
	int64_t row;
	bool off_cpu;
};

struct timeline_hits {
	struct timeline_hit *items; /* the newest first */
	size_t count;
	bool truncated;
	uint64_t total; /* calls of the operations that were meant, stored or not; 0: not counted */
	const struct timeline_entry *tracks[50]; /* whose thread or process has the name */
	size_t track_count;
};

/* answer_timeline_search - the request's text in names of operations, functions of call stacks,
 * names of threads and processes. -EINVAL if it is too short. */
int answer_timeline_search(const struct question *q, const struct timeline_index *ix,
	struct timeline_hits *ret, struct errinfo *reterr);
void timeline_hits_done(struct timeline_hits *h);
