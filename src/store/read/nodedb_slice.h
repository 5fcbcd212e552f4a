/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_slice.h - rows of `events` as a drawing needs them: when, how long, on which thread. A
 * third of the columns, so that ten million rows are looked at in seconds. */
#pragma once

#include "store/read/nodedb_snapshot.h"

struct nodedb_slice {
	int64_t start_ns;
	uint64_t dur_ns;
	int64_t row; /* number of the row in the table */
	uint32_t pid, tid;
	uint32_t peer_pid, weight;
	uint64_t stream, wait_ns;
	uint16_t op, flags;
	uint8_t source;
	int32_t rank;      /* -1: not told */
	const void *texts; /* for the functions below, while the callback runs */
};

/* Names, not longer than COMM_LEN; @out is NUL-terminated. "": none. */
void nodedb_slice_comm(const struct nodedb_slice *s, char out[COMM_LEN]);
void nodedb_slice_peer(const struct nodedb_slice *s, char out[COMM_LEN]);
/* nodedb_slice_node - not NUL-terminated; "" in a file that does not say. */
const char *nodedb_slice_node(const struct nodedb_slice *s, size_t *ret_len);

struct nodedb_slices {
	int64_t from_ns, to_ns; /* of the start, inclusive; 0: open */
	int64_t reach_ns; /* how long before and after to look for rows that are stamped at their end */
	int64_t after_row;   /* only rows behind this one, in the order of the table */
	const int64_t *rows; /* only these, row_count of them */
	size_t row_count;
	const struct scope *scope; /* its pids and node; NULL: any */
};

/* nodedb_snapshot_slices - calls @fn for each row that makes sense; with a time by time, else in
 * order of the table (published files: by start, the longer first). @fn returns 0 or an error that
 * ends it. *ret_skipped counts rows that make no sense. */
typedef int nodedb_slice_fn(void *arg, const struct nodedb_slice *s);
int nodedb_snapshot_slices(struct nodedb_snapshot *l, const struct nodedb_slices *what,
	nodedb_slice_fn *fn, void *arg, uint64_t *ret_skipped, struct errinfo *reterr);

struct nodedb_bucket { /* all calls of one op of a process in a bucket, without those inside others */
	int64_t start_ns;
	uint64_t busy_ns, count;
	uint32_t pid;
	uint16_t op;
	uint8_t source;
	const char *node; /* not NUL-terminated */
	size_t node_len;
};

/* nodedb_snapshot_buckets - calls @fn for each, in order of time; *ret_width_ns is theirs, 0 if the
 * file has none: 5 s for up to @fine_ns of recording, else minutes. */
typedef int nodedb_bucket_fn(void *arg, const struct nodedb_bucket *b);
int nodedb_snapshot_buckets(struct nodedb_snapshot *l, int64_t fine_ns, nodedb_bucket_fn *fn,
	void *arg, int64_t *ret_width_ns, struct errinfo *reterr);

/* nodedb_snapshot_event - row @row of `events` as a whole. 1; 0: there is none, or it makes no
 * sense. */
int nodedb_snapshot_event(struct nodedb_snapshot *l, int64_t row, struct event *ret,
	char ret_node[256], struct errinfo *reterr);

struct nodedb_search {
	struct scope scope;            /* time, pids, node */
	uint64_t ops[WIRE_SOURCE_MAX]; /* rows of these ops, a bit each; or */
	const char *frame;             /* of calls from a stack with this text; "": none */
	size_t limit;                  /* no more rows */
	size_t looked_at;              /* nor more than so many looked at */
};

/* nodedb_snapshot_search - calls @fn for the rows, the newest first. *ret_truncated: there may be
 * more. */
int nodedb_snapshot_search(struct nodedb_snapshot *l, const struct nodedb_search *what,
	nodedb_slice_fn *fn, void *arg, bool *ret_truncated, struct errinfo *reterr);
