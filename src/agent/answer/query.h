/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - recorded events as figures per operation, as a list with labels, or as lines of JSON.
 */
#pragma once

#include "agent/store/nodedb.h"
#include "base/buf.h"

struct query_view {
	const struct nodedb_content *content;
	uint64_t since_ns;    /* as asked; 0: not */
	const uint32_t *pids; /* as asked */
	size_t pid_count;
	bool labels;      /* with the labels that held during each event */
	size_t limit;     /* only the newest so many were asked for; 0: all */
	const char *node; /* of a merged recording: JSON says whose; NULL: not */
	uint8_t source;   /* of the one operation asked for; 0: all */
	uint16_t op;
	bool partial; /* one operation or part of the time: the count of all calls says nothing */
};

/* query_text - the header and a table for each group of sources, of all calls where aggregates
 * know them, else of the rows. -ENOMEM. */
int query_text(struct buf *b, const struct query_view *v);

/* query_list - one line an event: time, pid, operation, labels. */
void query_list(struct buf *b, const struct query_view *v);

/* query_json - one object an event with the published keys (timestamp, pid, tid, comm, source, op,
 * duration_ns, duration, gpu_id, args, return_code, cgroup_id, stack) and ours; its timestamp is
 * the start, whatever the file's schema. Stops when @b is full: see b->err. */
void query_json(struct buf *b, const struct query_view *v);
