/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_event.h - one event of a time line with all that is known of it, and the search for
 * events. */
#pragma once

#include "answer/event_args.h"
#include "answer/timeline/timeline.h"
#include "model/stack.h"

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
