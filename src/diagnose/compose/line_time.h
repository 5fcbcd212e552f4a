/* SPDX-License-Identifier: Apache-2.0 */
/* line_time.h - what one place of the program costs a unit, whatever it is spent on there: a line that copies, computes
 * and waits is one cause, and all of it goes when the line does. */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/rows/place.h"

/* line_time_is_own - whether the line itself is the cause of a delay of @kind: of one that comes from elsewhere (another
 * program, a limit, a lock of the interpreter) it only says who was hit. */
bool line_time_is_own(enum delay_kind kind);

/* line_time_ns - the time in a unit of @a, of which none is slow, that is spent at @p or below on anything but delays of @kinds
 * (bits) and waiting for the GPU, whose work stays; *ret_unplaced is waiting of its own thread of which no place is known. */
uint64_t line_time_ns(const struct recording *rec, const struct step_account *a,
	const struct code_place *p, uint32_t kinds, uint64_t *ret_unplaced);
