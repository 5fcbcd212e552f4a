/* SPDX-License-Identifier: Apache-2.0 */
/* boundaries.h - where the steps of a process begin and end.
 *
 * By the surest sign there is: the job's own step labels, PyTorch's optimizer, its backward passes, what
 * JAX has compiled, the batches of a data loader, a wait for the GPU (step.h), a CUDA
 * graph or a collective that recurs, polls of the GPU, requests that threads take, replies of a service; else equal
 * windows of time (unit_finder.h). Every process that gave the GPU work for a while has units. */
#pragma once

#include "diagnose/rows/timeline.h"
#include "diagnose/units/step.h"
#include "model/step_account.h"

#define BOUNDARY_STEPS_MIN 3 /* fewer say nothing of what is usual */

struct step_span {
	int64_t start_ns, end_ns;
	uint32_t tid; /* of the thread that it is of; 0: that of all of them */
	uint64_t launches, copy_bytes, waits; /* of all threads of the process */
	bool launches_off;  /* launches were not probed all the time: they are 0 */
	uint64_t probed_ns; /* its thread while launches were probed */
	uint64_t open_ns;   /* in which the GPU may have work of the process; 0: not known */
	uint32_t backwards, loads, executes; /* marks within it, of its thread */
};

struct step_spans {
	uint32_t pid, tid;
	char comm[COMM_LEN];
	enum step_origin origin;
	double confidence;
	struct step_span *items; /* in order of time, one after the other; windows have gaps */
	size_t count, room;
};

/* boundaries_find - the steps of @pid; @waits are those found from waits (step.h). An empty list: it gave the GPU
 * nothing to do, or for too short a time. Released with boundaries_done(), also after a failure. 0 or -ENOMEM. */
int boundaries_find(const struct timeline *t, const struct step_table *waits, uint32_t pid,
	struct step_spans *ret);

/* boundaries_have - whether a thread of @pid has marks of this kind. */
bool boundaries_have(const struct timeline *t, uint32_t pid, enum wire_mark mark);

void boundaries_done(struct step_spans *s);
