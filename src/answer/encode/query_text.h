/* SPDX-License-Identifier: Apache-2.0 */
/* query_text.h - recorded events as figures per operation, as a list with labels, or as lines of JSON.
 */
#pragma once

#include "answer/ops.h"
#include "base/buf.h"
#include "store/nodedb.h"

struct query_head {           /* what was asked for, and how much of it there is */
	uint64_t since_ns;    /* 0: not */
	const uint32_t *pids; /* as asked */
	size_t pid_count;
	size_t limit;              /* only the newest so many were asked for; 0: all */
	uint64_t events;           /* in the file */
	uint64_t calls;            /* that they are a selection of; 0: not known */
	int64_t first_ns, last_ns; /* of the time */
	uint64_t skipped_rows, older_events;
};

/* query_table - the header and a table for each group of sources. */
void query_table(struct buf *b, const struct query_head *h, const struct ops_answer *a,
	const struct host_answer *host);

struct query_view { /* a list */
	const struct nodedb_content *content;
	uint64_t since_ns;
	const uint32_t *pids;
	size_t pid_count;
	bool labels;      /* with the labels that held during each event */
	size_t limit;     /* only the newest so many were asked for; 0: all */
	const char *node; /* of a merged recording: JSON says whose; NULL: not */
};

/* query_list - one line an event: time, pid, operation, labels. */
void query_list(struct buf *b, const struct query_view *v);

/* query_json - one object an event with the published keys (timestamp, pid, tid, comm, source, op,
 * duration_ns, duration, gpu_id, args, return_code, cgroup_id, stack) and ours; its timestamp is
 * the start, whatever the file's schema. Stops when @b is full: see b->err. */
void query_json(struct buf *b, const struct query_view *v);
