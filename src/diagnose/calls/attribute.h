/* SPDX-License-Identifier: Apache-2.0 */
/* attribute.h - says what a thread was kept from running by in an interval (a slow call, a pause
 * between calls), by overlap in time.
 *
 * The index holds, for the threads asked about, what the scheduler and the block layer recorded, as
 * disjoint intervals in order of (key, time); a call's share of them is found by binary search. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "diagnose/calls/slow_calls.h"

enum interval_kind {
	INTERVAL_PREEMPTED, /* able to run, and put aside */
	INTERVAL_RUN_QUEUE, /* ready, waiting for a CPU */
	INTERVAL_DISK_WAIT, /* in D state */
	INTERVAL_ASLEEP,    /* in S state: waits for the GPU, a lock, a message */
	INTERVAL_REQUEST,   /* a block request was under way */
	INTERVAL_SOCKET,    /* in a send or receive that had to wait */
	INTERVAL_RECLAIM,   /* freed or compacted memory itself */
};

struct interval {
	int64_t start_ns, end_ns;
	size_t event; /* the row that says so */
	uint32_t key; /* thread, or process for requests by process */
	enum interval_kind kind;
};

struct interval_list {
	struct interval *items;
	size_t count, room;
};

struct attribution_index {
	struct interval_list off_cpu;    /* off-CPU, by thread */
	struct interval_list by_thread;  /* requests, by thread */
	struct interval_list by_process; /* requests, by process */
	struct interval_list sockets;    /* by thread */
	struct interval_list reclaims;   /* by thread */
	size_t *requests;                /* rows of all block requests, by device */
	size_t request_count, request_room;
};

struct span { /* an interval of a thread, of which excess_ns want an explanation */
	int64_t start_ns, end_ns;
	uint64_t excess_ns; /* <= end - start */
	uint32_t tid, pid;
};

struct part {        /* a piece of one slow call and what it was spent on */
	size_t call; /* index in detection.slow, or of the span */
	enum cause cause;
	size_t event;             /* the row that proves it; SIZE_MAX: none (host code) */
	int64_t start_ns, end_ns; /* overlap with the call */
	uint64_t ns;              /* of the call's excess; <= end - start */
	uint32_t culprit_pid;     /* 0: nobody */
	char culprit[COMM_LEN];
	uint64_t culprit_home; /* set by culprit_sum() */
	double culprit_share;  /* of ns that is the culprit's doing; 1 for the CPU */
};

struct part_list {
	struct part *items;
	size_t count, room;
	uint64_t asleep_ns; /* time in S state inside the calls; blamed on nobody */
	bool has_switches;  /* the recording has switches of these threads at all */
};

int attribute_index(
	const struct recording *rec, const struct detection *d, struct attribution_index *ret);

/* attribute_index_spans - likewise for the threads and processes of @spans. */
int attribute_index_spans(const struct recording *rec, const struct span *spans, size_t n,
	struct attribution_index *ret);
void attribute_index_done(struct attribution_index *x);

/* attribute_episode - fills @ret (emptied first) with the parts of all calls of @s, in order of
 * call and time. The parts of a call together never exceed its excess, nor all of them that of the
 * episode: where threads lose time at once, each part is cut accordingly. 0 or -ENOMEM. */
int attribute_episode(const struct recording *rec, const struct detection *d,
	const struct attribution_index *x, const struct slow_episode *s, struct part_list *ret);

/* attribute_tail_ns - when the last stays of @tid before @end_ns began, which is the return of a wait
 * for the GPU that began at @start_ns: those with hardly any running after each. Only they can have
 * delayed the return. @end_ns: there are none. */
int64_t attribute_tail_ns(
	const struct attribution_index *x, uint32_t tid, int64_t start_ns, int64_t end_ns);

/* attribute_pause - appends the parts of @span, a pause between calls, to @l as those of call
 * @call. Nothing is left over as in a call: asleep in a socket call (NETWORK) or not (ASLEEP), and
 * what the thread was on a CPU for (RECLAIM, else HOST_CODE) are parts too. A thread without any
 * recorded switch has no HOST_CODE: what it did is not known. 0 or -ENOMEM. */
int attribute_pause(const struct recording *rec, const struct attribution_index *x,
	const struct span *span, size_t call, struct part_list *l);
void part_list_done(struct part_list *l);
