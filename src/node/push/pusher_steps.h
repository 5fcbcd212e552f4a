/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_steps.h - how long a step of the job takes on this node, and how much of it is the node's own.
 * Pure.
 *
 * A step is what lies between two marks of one kind in a thread's ledger, of the surest kind that there
 * is: the optimizer's steps, backward passes, batches of a loader, launches of a graph, collectives,
 * waits for the GPU. Where a step has several marks of its kind it comes out shorter by that number, on
 * all nodes of the job alike: fit for comparing nodes, not for a report. Of several threads the median
 * counts. Own time is the step less the waits that followed collectives, which are waits for other
 * ranks as far as a host can tell. */
#pragma once

#include "store/read/nodedb_recent.h"

#define PUSHER_MARKS_MAX 65536 /* the newest */
#define PUSHER_WAITS_MAX 65536

struct pusher_wait { /* after a collective */
	int64_t end_ns;
	uint64_t wait_ns;
	uint32_t pid;
};

struct pusher_steps {
	struct recent_mark *marks;
	size_t mark_count, mark_room;
	struct pusher_wait *waits;
	size_t wait_count, wait_room;
	bool is_training; /* marks of a training loop were seen */
};

void pusher_steps_done(struct pusher_steps *s);

/* What does not fit replaces the oldest. 0 or -ENOMEM. */
int pusher_steps_mark(struct pusher_steps *s, const struct recent_mark *m);
int pusher_steps_wait(struct pusher_steps *s, const struct pusher_wait *w);

/* pusher_steps_forget - what ended before @before_ns. */
void pusher_steps_forget(struct pusher_steps *s, int64_t before_ns);

struct pusher_step {
	double step_s, own_s; /* -1: not known */
};
struct pusher_step pusher_steps_median(const struct pusher_steps *s);
