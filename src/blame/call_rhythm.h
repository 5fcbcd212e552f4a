/* SPDX-License-Identifier: Apache-2.0 */
/* call_rhythm.h - how long a step of a rank is, by the order of its calls alone: kinds of calls (communicator, operation,
 * size, peer) come again in the same order with each step, however unevenly they lie in it. Pure. */
#pragma once

#include "blame/blame.h"

/* call_rhythm_step - of @worker, whose newest calls are looked at; 0: no order comes again, or all calls are alike.
 * -ENOMEM. */
int call_rhythm_step(
	const struct blame_call *calls, size_t count, uint32_t worker, uint64_t *ret_step_ns);

/* call_rhythm_set - step_ns of @workers, which are of one job: the most of some that were heard of last, because the calls of one
 * stage of a pipeline may be alike where another's tell its steps. -ENOMEM. */
int call_rhythm_set(
	struct blame_worker *workers, size_t n, const struct blame_call *calls, size_t count);
