/* SPDX-License-Identifier: Apache-2.0 */
/* cost_felt.h - how much longer a job takes because of its probes.
 *
 * Probes take CPU time of the thread that calls. A job whose GPU is the slower one does not feel that: its
 * threads run ahead and wait for the GPU, in a call that waits or in a launch for which the queue has no
 * room, and wait so much less. Only the first launch after a wait keeps the GPU from work in any case. So
 * the CPU time is the most that such a job loses, and what its waits cannot hide is the least. How much it
 * is in truth, only steps with and without probes can tell (cost_trial.h). Pure. */
#pragma once

#include "record/trace/cost_trial.h"

/* What the busiest process did, over some time. */
struct cost_load {
	double seconds;
	double launches;         /* all of them, probed or not */
	double waits, waited_ns; /* for the GPU */
};

struct cost_felt {
	double share;     /* of the process's time: the figure to name */
	double low, high; /* the truth is between */
};

void cost_load_add(struct cost_load *l, const struct cost_load *more);

/* cost_felt_guess - if @probes (a share of the time) is what probes take, and the process did @l
 * meanwhile. The share is the low end. */
struct cost_felt cost_felt_guess(double probes, const struct cost_load *l);

/* cost_felt_join - what trials found of all launches, of which @part is probed, and @others, which no
 * trial takes away. @account is what launches would take by hits x cost, all of them probed: steps that
 * differ much by themselves make a trial wide, and its middle says little then, so the account is moved
 * no further than the trial wants it, and a trial that does not contradict it reaches no further than
 * twice the account. What the clock says comes last: a job that sleeps or waits pays CPU time, and loses
 * none. */
struct cost_felt cost_felt_join(double account, const struct cost_found *found, double part,
	const struct cost_felt *others);
