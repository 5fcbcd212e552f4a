/* SPDX-License-Identifier: Apache-2.0 */
/* tell.h - what a recording says about a time, as JSON: the data behind the HTTP API and MCP's
 * tools.
 *
 * Each tell_X() writes one object whose keys docs/api.md describes, by short questions to the store
 * (agent/store/nodedb_look.h); lists have ceilings and say when they cut. Names from traced
 * processes are written as they are: JSON's escapes are the writer's, other sinks' the reader's. */
#pragma once

#include "agent/store/nodedb_look.h"
#include "json/writer.h"
#include "wire/names.h"

#define TELL_PIDS_MAX 64
#define TELL_TEXT_MAX 128
#define TELL_BYTES    (8u << 20) /* of an answer */

struct tell_wish { /* as asked; 0 and "" are not */
	uint64_t since_ns;
	bool all;
	char from[TELL_TEXT_MAX], to[TELL_TEXT_MAX]; /* as --from and --to */
	uint32_t pids[TELL_PIDS_MAX];
	size_t pid_count;
	char node[256];
	uint8_t source; /* only this source, */
	uint16_t op;    /* and of it this op */
	size_t limit;   /* of what the answer lists */
	size_t points;  /* of a series; nodes of a flame graph */
	bool stacks;
	const char *version; /* of this program, for the overview; NULL: not said */
};

struct tell { /* an open recording and the time that is asked about */
	struct nodedb_look *look;
	const struct tell_wish *wish;
	struct nodedb_scope scope; /* its time, pids, node, source and op; no limit */
	struct nodedb_range range; /* of the whole recording */
	bool live;                 /* somebody is writing it */
	bool by_default;           /* no time was asked for */
	const char *node;          /* of the recording; the first if it has several */
};

/* A question: what to write, and which time it is about if none is asked for (0: all of a saved
 * file, the last five minutes of a live one). 0 or a negative errno with a sentence. */
typedef int tell_fn(const struct tell *t, struct json_writer *w, struct errinfo *reterr);
#define TELL_DEFAULT_NS (300 * NS_PER_S)

/* tell_run - opens @path, finds the time and appends what @fn tells to @out, as one line.
 * -EINVAL a time that is none; -ESRCH no such node; else as nodedb_read(); -EMSGSIZE more than @out
 * may hold. */
int tell_run(const char *path, const struct tell_wish *wish, tell_fn *fn, uint64_t default_ns,
	struct buf *out, struct errinfo *reterr);

/* tell_limit - the wished number, or @otherwise; no more than @max. */
size_t tell_limit(size_t wish, size_t otherwise, size_t max);

/* tell_window - the member "window" that every answer about a time has. */
void tell_window(const struct tell *t, struct json_writer *w);

/* tell_rows - member @key: an array of the rows of @t as objects, each column a member. */
void tell_rows(struct json_writer *w, const char *key, const struct sql_table *t);
void tell_cell(struct json_writer *w, const struct sql_table *t, size_t row, int column);

/* Values of a list by their column's name; what is not there or no number reads as 0, "". */
int tell_column(const struct sql_table *t, const char *name); /* -1: none */
int64_t tell_int(const struct sql_table *t, size_t row, int column);
double tell_real(const struct sql_table *t, size_t row, int column);
const char *tell_text(const struct sql_table *t, size_t row, int column);

void tell_bool(struct json_writer *w, const char *key, bool v);
void tell_us(struct json_writer *w, const char *key, double ns); /* ns as microseconds */

tell_fn tell_overview, tell_nodes, tell_sessions, tell_processes, tell_capabilities;
tell_fn tell_ops, tell_series, tell_graph_metrics, tell_graph_events;
tell_fn tell_chains, tell_incidents, tell_collectives, tell_stacks, tell_flame;
tell_fn tell_snapshots, tell_gpus, tell_losses, tell_overhead;
