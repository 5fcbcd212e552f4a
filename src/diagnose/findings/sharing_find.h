/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_find.h - whether a process's waits are longer while others use its GPU. */
#pragma once

#include "diagnose/units/bursts.h"
#include "diagnose/calls/window.h"

#define SHARING_OPS 8

struct comparison { /* one op of the process */
	uint8_t source;
	uint16_t op;
	const struct event **with, **without; /* beside others, and not; in order of the events */
	size_t with_count, with_room, without_count, without_room;
};

struct held_up {                    /* calls that another process's use of the GPU makes longer */
	const struct event **calls; /* in order of the events */
	size_t count, room;
};

/* held_up_find - 0 or -ENOMEM; free calls, also after a failure. */
int held_up_find(const struct recording *rec, struct held_up *ret);

struct sharing_case { /* a process and the others on its device */
	uint32_t pid;
	int32_t device;
	const struct burst *bursts; /* of the device; the caller's */
	size_t burst_count;
	const struct held_up *held; /* of all processes; the caller's */
	struct window *others; /* union of the others' bursts, ascending; tid: a process of them */
	size_t other_count;
	struct comparison ops[SHARING_OPS];
	const struct comparison *c; /* the op that lost most; NULL: none is slower */
	uint64_t med_with, med_without;
	uint64_t net_ns;        /* lost by it, without CPU and disk */
	uint64_t all_excess_ns; /* by it beyond med_without, beside others or not */
	uint32_t culprit;       /* 0: not traced */
};

/* sharing_find - completes @f, of which pid, device, bursts and calls are set; released with
 * sharing_done(), also after a failure. 0 or -ENOMEM. */
int sharing_find(const struct recording *rec, struct sharing_case *f);
void sharing_done(struct sharing_case *f);
