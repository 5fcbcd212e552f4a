/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - what all units of a process consist of, ordinary and slow ones, by cause: what each of them loses, whether
 * there is anything to compare with or not. */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/recording.h"

/* step_account_whole - @a as if it had no slow units, for delays_find(): all in it that can be lost is what a unit
 * consists of on average. Time at one place of the program is on one line, that of its cause; where the GPU waits for
 * launches, the host code that leads to them is on theirs. It keeps the counts, and borrows what @a owns. */
void step_account_whole(
	const struct recording *rec, const struct step_account *a, struct step_account *ret);

/* gpu_use_of - by the driver's readings in the time of the units, of the GPU that the process is on; where that is not known, of the
 * busiest: that the others idle says nothing of the job. */
struct gpu_use {
	size_t readings;    /* 0: too few */
	double busy, error; /* on average, 0..1, and its standard error */
	bool is_jobs;       /* it is known to be the job's */
	bool is_shared;
};
struct gpu_use gpu_use_of(const struct recording *rec, const struct step_account *a);

/* gpu_idle_share - the share of the time in which the GPU is idle, by the driver's readings; 0: too few. */
double gpu_idle_share(const struct recording *rec, const struct step_account *a);

/* gpu_drains_of - how often a unit waits until the GPU has nothing left to do: calls that wait for it, and copies to the host where
 * there are many. */
double gpu_drains_of(const struct recording *rec, const struct step_account *a);

/* answers_of - how many answers a unit receives over sockets to what it has sent. */
double answers_of(const struct recording *rec, const struct step_account *a);

/* asks_often - whether these are many, and the process is not the one that is asked. */
bool asks_often(const struct recording *rec, const struct step_account *a);

/* gpu_gets_pieces - whether it is given some launches at a time, all for little, and waited for after each: while the code between
 * runs it is idle. */
bool gpu_gets_pieces(const struct recording *rec, const struct step_account *a);

/* allocating_own_share - the part of the time in calls that allocate and free GPU memory that they take themselves: all of it,
 * unless the GPU is busy. Then one that frees waits for the work before it, and those that follow it do not: the usual
 * call has nothing to wait for. */
double allocating_own_share(const struct recording *rec, const struct step_account *a);

/* delay_hidden - the share of @d, which is in every unit of @a, that costs nothing: it only shortens the wait for the GPU. */
double delay_hidden(const struct step_account *a, const struct delay *d);

/* gpu_is_never_idle - whether the GPU has work for the job nearly all of the time, so that @lost, a share of that, is not
 * lost: whatever the host does or waits for, it is in time. False where others use the GPU, or kernels wait for other ranks. */
bool gpu_is_never_idle(const struct recording *rec, const struct step_account *a, double lost);
