/* SPDX-License-Identifier: Apache-2.0 */
/* use.h - how much a process is probed, and how long it waits for its GPU meanwhile: what probes cost,
 * and what may hide that. Pure. */
#pragma once

#include "record/capture/totals.h"

struct use {
	uint32_t pid;
	uint64_t launches,
		others;     /* hits; a nested launch is half of one: it has no return probe */
	uint64_t waits;     /* calls that wait for the GPU */
	uint64_t waited_ns; /* in these, and in launches that wait for room in its queue */
};

/* use_launch_waited_ns - how much of @sum_ns, which @calls launches took, was waiting for room in the
 * GPU's queue, if the quickest ever took @min_ns. */
uint64_t use_launch_waited_ns(uint64_t calls, uint64_t sum_ns, uint64_t min_ns);

/* use_add - adds what @v gained since it was last added to one. */
void use_add(struct use *u, struct total *v);
