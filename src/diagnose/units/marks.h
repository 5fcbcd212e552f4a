/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - units of work from the marks that a framework leaves in the ledger of a thread.
 *
 * A mark is not a unit. ZeRO and containers of optimizers mark several steps of optimizers for one of the
 * job's: those without a backward pass between them are one. A program with several optimizers, or that JAX
 * has compiled in parts, leaves marks at several places in the same order each time round: the unit is the
 * whole round, closed by the place that has one mark in it. A gradient scaler leaves steps of the optimizer
 * out: their backward passes are there, and close the unit. Of marks that come faster than they are recorded the
 * rounds of places are units (runs.h), else those of some ms. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "diagnose/rows/timeline.h"
#include "wire/ledger.h"

struct mark_times {
	uint32_t tid;   /* the thread that left them */
	int64_t *items; /* moments at which one unit ends and the next begins, ascending */
	size_t count;
};

/* marks_find - the boundaries that the marks @mark of process @pid make; none: count 0. Released with
 * mark_times_done(), also after a failure. 0 or -ENOMEM. */
int marks_find(const struct timeline *t, uint32_t pid, enum wire_mark mark, struct mark_times *ret);
void mark_times_done(struct mark_times *m);
