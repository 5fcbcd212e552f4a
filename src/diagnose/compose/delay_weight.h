/* SPDX-License-Identifier: Apache-2.0 */
/* delay_weight.h - how bad a delay is: by the wall time it costs, unless it is more work, a pause of the
 * program's own will, or how a program waits that has nothing to do. */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/chains/gpu_change.h"
#include "model/incident.h"

/* delay_is_lasting - slow steps come in rows, not one here and one there. */
bool delay_is_lasting(const struct step_account *a);

/* delay_is_idle - whether it is how a program waits that has nothing to do: nobody's fault. */
bool delay_is_idle(const struct step_account *a, const struct delay *l);

/* delay_is_pause - now and then the thread itself asks to sleep for much longer than a step takes: it pauses
 * on purpose, as between two epochs, and its steps are what they were. */
bool delay_is_pause(
	const struct recording *rec, const struct step_account *a, const struct delay *l);

/* delay_severity - of @l, which costs @share of the time in steps. */
enum severity delay_severity(const struct recording *rec, const struct step_account *a,
	const struct gpu_change *gpu, const struct delay *l, double share);

/* delay_stands_alone - whether @kind is a cause by itself: others' doing, or a thing that is done and took its time.
 * What others may do to the thread (it waits for one, its code runs slower) may be how another cause shows, or how
 * the program works. */
bool delay_stands_alone(enum delay_kind kind);

/* delay_is_waste - whether it is waste by itself, where no step is slow: nothing of the job's own work is
 * done in it, and it has a part of the job's time that matters. */
bool delay_is_waste(const struct step_account *a, const struct delay *l);

/* delay_waste_severity - of such waste of @share of every step. */
enum severity delay_waste_severity(double share);
