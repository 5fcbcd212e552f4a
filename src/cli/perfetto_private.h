/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_private.h - what perfetto.c hands to the two formats.
 *
 * A format appends to p->out and never looks back: perfetto.c writes it out when there is enough.
 */
#pragma once

#include "base/idmap.h"
#include "cli/perfetto.h"
#include "wire/names.h"

struct perfetto_track { /* a process of the viewer */
	char node[256];
	size_t node_len;
	int32_t rank; /* -1: none */
	uint32_t number;
	uint64_t uuid;
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

/* A collective of one rank; those of its (communicator, number) on other ranks are joined by flows:
 * one that came from the rank that began before it, one that goes to the next. 0: none. */
struct perfetto_collective {
	const struct collective_row *row;
	uint64_t group;    /* of all its ranks */
	uint64_t from, to; /* ids of flows */
};

struct perfetto;

struct perfetto_format {
	int (*begin)(struct perfetto *p); /* 0 or -ENOMEM */
	void (*track)(struct perfetto *p, const struct perfetto_track *t);
	void (*thread)(
		struct perfetto *p, const struct perfetto_track *t, uint32_t tid, const char *name);
	void (*call)(struct perfetto *p, const struct perfetto_track *t, const struct event *e,
		const struct stack *s);
	void (*collective)(struct perfetto *p, const struct perfetto_track *t,
		const struct perfetto_collective *c);
	void (*chain)(
		struct perfetto *p, const struct perfetto_track *t, const struct incident_row *c);
	void (*counter)(struct perfetto *p, const struct perfetto_track *t,
		const struct perfetto_counter *c);
	void (*label)(
		struct perfetto *p, const struct perfetto_track *t, const struct perfetto_label *l);
	void (*end)(struct perfetto *p);
	void (*done)(struct perfetto *p); /* frees p->state, also after a failure */
};

extern const struct perfetto_format perfetto_json, perfetto_proto;

struct perfetto {
	const struct perfetto_format *format;
	const struct perfetto_wish *wish;
	struct output *output;
	struct errinfo *reterr;
	struct buf out;
	struct idmap tracks;  /* by hash of node and rank */
	struct idmap threads; /* by hash of track and tid: those that have their name */
	struct perfetto_track **list;
	size_t track_count, track_room;
	const struct perfetto_track *last; /* that an event had */
	uint64_t flow_ids;
	struct perfetto_figures figures;
	bool has_collectives; /* the table has them: events of the same calls are left out */
	int64_t last_ns;      /* latest moment of what was loaded */
	void *state;          /* the format's own */
};

/* perfetto_category - the published name of a source's group. */
const char *perfetto_category(unsigned source);

/* perfetto_frame - "function (file:line)" of a frame, appended. */
void perfetto_frame(struct buf *b, const struct stack_frame *f);
