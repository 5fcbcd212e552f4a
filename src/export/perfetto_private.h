/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_private.h - what the parts of perfetto.c share, and what it hands to the two formats.
 *
 * A format appends to p->out and never looks back: perfetto.c writes it out when there is enough.
 */
#pragma once

#include "answer/event_args.h"
#include "base/idmap.h"
#include "export/export.h"
#include "wire/names.h"

struct perfetto;

struct perfetto_track { /* a process of the viewer */
	char node[256];
	size_t node_len;
	int32_t rank; /* -1: none */
	uint32_t number;
	uint64_t uuid;
};

/* ---- lines: where slices lie within each other (perfetto_line.c) ---- */

enum perfetto_kind {
	LINE_THREAD,  /* calls, as the thread made them */
	LINE_OFF_CPU, /* of a thread: its stays off the CPU */
	LINE_NETWORK, /* of a thread: socket calls */
	LINE_MEMORY,  /* of a thread: what the kernel did for its memory */
	LINE_BLOCK,   /* of a node and rank: block requests, many at once */
	LINE_WAIT,    /* of a communicator: waits for the other ranks */
	LINE_LABEL,   /* of a key */
	LINE_STEPS,   /* of a process: its steps */
};

struct perfetto_owner { /* whose line it is */
	const struct perfetto_track *track;
	enum perfetto_kind kind;
	uint64_t id; /* tells owners of a track and kind apart */
	uint32_t pid, tid;
	const char
		*name; /* of the thread, the process, the communicator or the key; "": not known */
};

struct perfetto_line {
	const struct perfetto_track *track;
	enum perfetto_kind kind;
	uint64_t uuid, parent;
	uint32_t tid;   /* the thread's own, or for a line beside it one that no thread has */
	bool is_thread; /* the line is the thread itself */
	bool has_room;  /* false: the slice lies within no other, and all lanes are taken */
};

/* perfetto_line_find - the line for a slice from @start_ns to *end_ns. Slices must come in order of
 * their start, for each owner. *end_ns is cut by up to a microsecond where clocks were read so far
 * apart that a call seems to outlast the one it lies in. The first time a line is found, and the
 * first time that its name is known, the format gets its description. -ENOMEM. */
int perfetto_line_find(struct perfetto *p, const struct perfetto_owner *o, int64_t start_ns,
	int64_t *end_ns, struct perfetto_line *ret);
void perfetto_lines_done(struct perfetto *p);

/* ---- what is drawn ---- */

#define PERFETTO_STEPS 0 /* the group of steps, which are of no source */

struct perfetto_slice {
	unsigned source, op;      /* its group, and its name */
	const char *name;         /* instead; NULL: as the op */
	int64_t start_ns, end_ns; /* the same: a moment */
	const struct event_args *args;
	const struct stack *stack; /* or NULL */
	/* Collectives of one number on several ranks are joined by flows: one that came from the
	 * rank that began before, one that goes to the next. 0: none. */
	uint64_t group; /* of all its ranks */
	uint64_t from, to;
};

struct perfetto_label {
	const char *key, *value;
	uint32_t pid; /* 0: of the whole trace */
	int64_t start_ns, end_ns;
};

struct perfetto_counter {
	const char *name, *unit;
	int64_t time_ns;
	double value;
};

struct perfetto_collective { /* of one rank, until its time comes */
	const struct collective_row *row;
	uint64_t group, from, to; /* see struct perfetto_slice */
};

struct perfetto_format {
	int64_t shortest_ns;              /* a slice of less may be drawn as a moment */
	int (*begin)(struct perfetto *p); /* 0 or -ENOMEM */
	void (*track)(struct perfetto *p, const struct perfetto_track *t);
	/* @lane: how many lines of the same name come before it. */
	void (*line)(
		struct perfetto *p, const struct perfetto_line *l, const char *name, unsigned lane);
	void (*slice)(
		struct perfetto *p, const struct perfetto_line *l, const struct perfetto_slice *s);
	void (*chain)(
		struct perfetto *p, const struct perfetto_track *t, const struct incident_row *c);
	void (*counter)(struct perfetto *p, const struct perfetto_track *t,
		const struct perfetto_counter *c);
	void (*label)(
		struct perfetto *p, const struct perfetto_line *l, const struct perfetto_label *b);
	void (*end)(struct perfetto *p);
	void (*done)(struct perfetto *p); /* frees p->state, also after a failure */
};

extern const struct perfetto_format perfetto_json, perfetto_proto;

struct perfetto {
	const struct perfetto_format *format;
	const struct perfetto_options *options;
	struct output *output;
	struct errinfo *reterr;
	struct buf out;
	struct idmap tracks; /* by hash of node and rank */
	struct idmap ranks;  /* by hash of node and pid: 1 + rank, as a pointer */
	struct idmap lines;  /* perfetto_line.c's, by hash of owner */
	uint32_t line_tids;  /* given out */
	struct perfetto_track **list;
	size_t track_count, track_room;
	const struct perfetto_track *last;       /* that an event had */
	struct perfetto_collective *collectives; /* by start */
	size_t collective_count, collective_next;
	uint64_t flow_ids;
	struct perfetto_stats stats;
	bool is_published; /* the file is the published agent's: drawn as it does */
	int64_t last_ns;   /* latest moment of what was loaded */
	void *state;       /* the format's own */
};

/* perfetto_track_find - of @node (@len bytes) and @rank; the format gets a new one's description. */
int perfetto_track_find(struct perfetto *p, const char *node, size_t len, int32_t rank,
	const struct perfetto_track **ret);

/* perfetto_rank - of a process; -1 if it is not known. */
int32_t perfetto_rank(const struct perfetto *p, const char *node, size_t len, uint32_t pid);

/* perfetto_slice_put - draws @s on the line of @o, as a moment with its duration if there is no
 * room. */
int perfetto_slice_put(
	struct perfetto *p, const struct perfetto_owner *o, struct perfetto_slice *s);

/* perfetto_content_put - what is known of @node as a whole. */
int perfetto_content_put(struct perfetto *p, const char *node, const struct nodedb_content *c);

/* perfetto_collectives_hold, perfetto_collectives_put - sorts and keeps @rows, which stay the caller's; draws those
 * that began before a call from @start_ns on that took @dur_ns. */
int perfetto_collectives_hold(struct perfetto *p, struct collective_row *rows, size_t count);
int perfetto_collectives_put(struct perfetto *p, int64_t start_ns, uint64_t dur_ns);

/* perfetto_flush - writes out what the format has appended, if it is more than @above bytes. */
#define PERFETTO_FLUSH_BYTES (256u << 10)
int perfetto_flush(struct perfetto *p, size_t above);

/* perfetto_steps_put - a line for the steps of each process of @node. */
int perfetto_steps_put(struct perfetto *p, const char *node);

/* perfetto_category - the published name of a source's group. */
const char *perfetto_category(unsigned source);

/* perfetto_frame - "function (file:line)" of a frame, appended. */
void perfetto_frame(struct buf *b, const struct stack_frame *f);
