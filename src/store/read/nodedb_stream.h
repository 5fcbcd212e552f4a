/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_stream.h - a recording handed over piece by piece, so that its events need not fit into
 * memory: for formats that are written as one reads. Read-only, schemas 0.8 to 0.11. */
#pragma once

#include "store/nodedb.h"

struct nodedb_stream;

/* A callback that returns negative ends it. They come in this order. */
struct nodedb_sink {
	void *arg;
	/* Whether the published agent, or one of its schema, has made the file. */
	void (*origin)(void *arg, bool is_published);
	/* Every node and rank that the recording names, by node, then rank; rank -1: none. */
	int (*track)(void *arg, const char *node, int32_t rank);
	/* The rank of a process, for events that do not say it: its environment's, else that in its
	 * largest communicator. Not called for a process that is several ranks. */
	int (*rank)(void *arg, const char *node, uint32_t pid, int32_t rank);
	/* Samples, GPU samples, stored verdicts, labels, and if the filter asks for them ledger and
	 * control groups of one node; gone afterwards. */
	int (*content)(void *arg, const char *node, const struct nodedb_content *c);
	/* Of all nodes, in order of time; may be put into another order. They stay until the end. */
	int (*collectives)(void *arg, struct collective_row *rows, size_t count);
	/* Events, in order of their start, of equal ones the longer first. @node is not
	 * NUL-terminated. */
	int (*event)(void *arg, const char *node, size_t node_len, const struct event *e,
		struct nodedb_stream *s);
	/* After the last event, while the collectives are still there. */
	int (*end)(void *arg);
};

struct nodedb_stream_stats {
	uint64_t events;
	uint64_t skipped_rows; /* damaged */
	uint64_t unplaced;     /* readings of a file of several nodes that do not say whose */
	uint64_t older_collectives;
	bool is_limited; /* there are older events than f->last allows */
};

/* nodedb_stream - gives what @f selects (range, pids, op, node, last) to @sink. -EBUSY if the file
 * changed meanwhile; what a callback returned; else as nodedb_read(). */
int nodedb_stream(const char *path, const struct nodedb_filter *f, const struct nodedb_sink *sink,
	struct nodedb_stream_stats *ret, struct errinfo *reterr);

/* nodedb_stream_name - what @e is called beyond its operation, from within sink->event; *ret is NULL or
 * valid until the stream ends. */
int nodedb_stream_name(struct nodedb_stream *s, const struct event *e, const char *node,
	size_t node_len, const char **ret, struct errinfo *reterr);

/* nodedb_stream_stack - the stack of @hash, from within sink->event: 1 and *ret is the caller's
 * (free()), 0 if there is none that can be read, or an error. */
int nodedb_stream_stack(
	struct nodedb_stream *s, uint64_t hash, struct stack **ret, struct errinfo *reterr);
