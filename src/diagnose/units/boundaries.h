/* SPDX-License-Identifier: Apache-2.0 */
/* boundaries.h - where the steps of a process begin and end.
 *
 * By the surest sign there is: the job's own step labels, PyTorch's optimizer, its backward passes,
 * the batches of its data loader, else a CUDA graph, a collective or a wait for the GPU that recurs.
 * Marks of one kind at several places of the program (two optimizers, an evaluation's loader) are
 * told apart by their stacks: the most frequent place counts, and marks whose place is not known. */
#pragma once

#include "diagnose/accounts/timeline.h"
#include "diagnose/units/step.h"
#include "model/step_account.h"

#define BOUNDARY_STEPS_MIN 8

struct step_span {
	int64_t start_ns, end_ns;
	uint64_t launches, copy_bytes, waits; /* of all threads of the process */
	uint64_t wait_ns;                     /* its thread in calls that wait for the GPU */
	bool launches_off;         /* launches were not probed all the time: they are 0 */
	uint64_t probed_ns;        /* its thread while launches were probed */
	uint32_t backwards, loads; /* marks within it, of its thread */
};

struct step_spans {
	uint32_t pid, tid;
	char comm[COMM_LEN];
	enum step_origin origin;
	double confidence;
	struct step_span *items; /* in order of time, one after the other */
	size_t count, room;
};

/* boundaries_find - the steps of @pid; @waits are those found from waits (engine/step.h). An empty
 * list: there are none. Released with boundaries_done(), also after a failure. 0 or -ENOMEM. */
int boundaries_find(const struct timeline *t, const struct step_table *waits, uint32_t pid,
	struct step_spans *ret);

/* boundaries_have - whether a thread of @pid has marks of this kind. */
bool boundaries_have(const struct timeline *t, uint32_t pid, enum wire_mark mark);

void boundaries_done(struct step_spans *s);
