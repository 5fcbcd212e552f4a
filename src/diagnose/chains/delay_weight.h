/* SPDX-License-Identifier: Apache-2.0 */
/* delay_weight.h - how bad a delay is: by the wall time it costs, unless it is more work, a pause of the
 * program's own will, or how a program waits that has nothing to do. */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/chains/gpu_change.h"
#include "model/incident.h"
#include "model/step_account.h"

/* delay_is_lasting - slow steps come in rows, not one here and one there. */
bool delay_is_lasting(const struct step_account *a);

/* delay_is_idle - whether it is how a program waits that has nothing to do: nobody's fault. */
bool delay_is_idle(
	const struct recording *rec, const struct step_account *a, const struct delay *l);

/* delay_is_pause - the thread itself asks to sleep, on purpose: now and then for much longer than a step takes, as
 * between two epochs, or in the loop that calls the work of a program that does not train. */
bool delay_is_pause(
	const struct recording *rec, const struct step_account *a, const struct delay *l);

/* delay_is_harmless - nothing is wrong: it is more work, code that is somewhat slower everywhere, a pause on purpose,
 * how a program waits that has nothing to do, or the tracer itself. */
bool delay_is_harmless(const struct recording *rec, const struct step_account *a,
	const struct gpu_change *gpu, const struct delay *l);

/* delay_is_routine - what the program does by itself every so many units, from the beginning on: an evaluation, a checkpoint, a
 * log. That is how it was written, as what it does in every unit is. @l's chain was followed. */
bool delay_is_routine(const struct step_account *a, const struct delay *l);

/* delay_may_be_idle - a program that does not train may wait for another because it has nothing to do. */
bool delay_may_be_idle(
	const struct recording *rec, const struct step_account *a, const struct delay *l);

/* delay_is_slowed - code that slow units run where ordinary ones do, and for at most twice as long: so it is on a CPU whose
 * caches, core or time others use, too. */
bool delay_is_slowed(
	const struct recording *rec, const struct step_account *a, const struct delay *l);

/* delay_stands_alone - whether @kind is a cause by itself: others' doing, or a thing that is done and took its time.
 * What others may do to the thread (it waits for one, its code runs slower) may be how another cause shows, or how
 * the program works. */
bool delay_stands_alone(enum delay_kind kind);

/* delay_is_waste - whether it is waste by itself, in every unit of @a: nothing of the job's own work is
 * done in it, and it has a part of the job's time that matters. */
bool delay_is_waste(
	const struct recording *rec, const struct step_account *a, const struct delay *l);

/* delay_is_built - likewise what is much of every unit, by one line of the program or whom it has work for it, and no more than programs
 * have that their authors are content with: told, but LOW. */
bool delay_is_built(
	const struct recording *rec, const struct step_account *a, const struct delay *l);
