/* SPDX-License-Identifier: Apache-2.0 */
/* gain.h - what a unit of work would take without a delay, from its account. */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/rows/place.h"

struct gain {
	uint64_t unit_ns;           /* what a unit takes: a slow one, or any where none is */
	uint64_t fixed_ns;          /* about what it would take */
	uint64_t least_ns, most_ns; /* the range */
};

struct gain_facts { /* of units of which none is slow */
	uint64_t
		busy_ns; /* how long the GPU is busy in one, by its readings: of several the busiest; 0: not known */
	uint64_t busy_error_ns; /* the standard error of that */
	double here;        /* the share of the delay that is spent where it is said to be, 0..1 */
	uint64_t beside_ns; /* spent there on other things: it goes along */
	uint64_t unplaced_ns; /* that may be spent there, too */
};

/* gain_find - what gain_of() wants to know of @l, in every unit of @a; delays of @kinds (bits) are told by themselves. */
void gain_find(const struct recording *rec, const struct step_account *a, const struct delay *l,
	uint32_t kinds, struct gain_facts *ret);

/* gain_of - without @l. Slow units keep what the other delays cost them: all gains together lead back to ordinary ones,
 * never further; @told is the share of what grew that all delays have which are told. Where none is slow, what @l takes
 * where it is said to be goes, and what else is spent there, but a unit does not get shorter than its GPU is busy. Where the GPU is not
 * waited for and has no readings, it may be busy for as long as a short unit takes: the middle is what is told. */
void gain_of(const struct step_account *a, const struct delay *l, double told,
	const struct gain_facts *facts, struct gain *ret);

/* gain_put - the fields of @inc. */
void gain_put(const struct gain *g, struct incident *inc);

/* What one place of the program costs a unit, whatever it is spent on there: a line that copies, computes
 * and waits is one cause, and all of it goes when the line does. */

/* line_time_is_own - whether the line itself is the cause of a delay of @kind: of one that comes from elsewhere (another
 * program, a limit, a lock of the interpreter) it only says who was hit. */
bool line_time_is_own(enum delay_kind kind);

/* line_is_of_loop - whether @p's function is the loop itself, from which other things are done as well: most launches come from it,
 * or others of the program's functions are called on other lines. */
bool line_is_of_loop(
	const struct recording *rec, const struct step_account *a, const struct code_place *p);

/* line_time_ns - the time in a unit of @a, of which none is slow, that is spent at @p or below on anything but delays of @kinds
 * (bits) and waiting for the GPU, whose work stays; *ret_unplaced is waiting of its own thread of which no place is known. */
uint64_t line_time_ns(const struct recording *rec, const struct step_account *a,
	const struct code_place *p, uint32_t kinds, uint64_t *ret_unplaced);
