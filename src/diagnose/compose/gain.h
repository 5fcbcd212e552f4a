/* SPDX-License-Identifier: Apache-2.0 */
/* gain.h - what a unit of work would take without a delay, from its account. */
#pragma once

#include "diagnose/chains/delay.h"

struct gain {
	uint64_t unit_ns;           /* what a unit takes: a slow one, or any where none is */
	uint64_t fixed_ns;          /* about what it would take */
	uint64_t least_ns, most_ns; /* the range */
};

/* gain_of - without @l. Slow units keep what the other delays cost them: all gains together lead back to ordinary ones,
 * never further; @told is the share of what grew that all delays have which are told. Where none is slow, what @l takes goes, but a unit does not get shorter than its GPU is
 * busy, @busy_ns (0: not known). */
void gain_of(const struct step_account *a, const struct delay *l, double told, uint64_t busy_ns,
	struct gain *ret);

/* gain_busy_ns - how long the GPU is busy in an ordinary unit, by its readings: of several GPUs the busiest. 0: not
 * known. */
uint64_t gain_busy_ns(const struct recording *rec, const struct step_account *a);

/* gain_put - the fields of @inc. */
void gain_put(const struct gain *g, struct incident *inc);
