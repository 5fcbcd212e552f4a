/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - what all units of a process consist of, ordinary and slow ones, by cause: what each of them loses, whether
 * there is anything to compare with or not. */
#pragma once

#include "diagnose/recording.h"

/* step_account_whole - @a as if it had no slow units, for delays_find(): all in it that can be lost is what a unit
 * consists of on average. Time at one place of the program is on one line, that of its cause; where the GPU waits for
 * launches, the host code that leads to them is on theirs. It keeps the counts, and borrows what @a owns. */
void step_account_whole(
	const struct recording *rec, const struct step_account *a, struct step_account *ret);

/* gpu_idle_share - the share of the time in which the GPU is idle, by the driver's readings; negative: too few.
 * gpu_idle_share_alone - likewise, negative also where it may be busy with something else than the process's work:
 * another process's, or waiting for other ranks. */
double gpu_idle_share(const struct recording *rec, const struct step_account *a);
double gpu_idle_share_alone(const struct recording *rec, const struct step_account *a);
