/* SPDX-License-Identifier: Apache-2.0 */
/* unit_finder.h - ways to find the units of a process (boundaries.c has the order), each a function that adds them to @s: their
 * spans, one after the other, and the thread that they are of. None: none is added. 0 or -ENOMEM. */
#pragma once

#include "diagnose/units/boundaries.h"

struct unit_search {
	const struct timeline *timeline;
	const struct step_table *waits;
	enum wire_mark mark; /* of marks_find() */
};

typedef int unit_find(const struct unit_search *in, struct step_spans *s);

/* unit_add - unless it is of no length. @tid: of the thread that it is of; 0: of that of all units. */
int unit_add(struct step_spans *s, int64_t start_ns, int64_t end_ns, uint32_t tid);

/* marks_find - from the marks that a framework leaves in the ledger of a thread.
 *
 * A mark is not a unit. ZeRO and containers of optimizers mark several steps of optimizers for one of the
 * job's: those without a backward pass between them are one. A program with several optimizers, or that JAX
 * has compiled in parts, leaves marks at several places in the same order each time round: the unit is the
 * whole round, closed by the place that has one mark in it. A gradient scaler leaves steps of the optimizer
 * out: their backward passes are there, and close the unit. Of marks that come faster than they are recorded the
 * rounds of places are units (runs.h), else those of some ms. */
unit_find marks_find;

/* requests_find - of a process that makes a thread for each piece of work that it is given, as servers do: the
 * thread's life, if it has used the GPU. Time in which there is none is nobody's loss.
 *
 * Threads overlap. A unit is from the end of one, or its own beginning where that is later, to the end of the next:
 * what the process needs for one more, accounted for by the thread that ends it. None: too few, or most of its work on the
 * GPU is in none. */
unit_find requests_find;

/* replies_find - of a process that asks a service again and again, an event loop for instance: from one reply after which the GPU
 * gets work to the next. None of one that is asked itself. */
unit_find replies_find;

/* polls_find - of a thread that never waits for the GPU by a call: it gives it work, then sleeps and looks, for longer each
 * time, until it goes on. A sleep as long as the one before may be for anything: a queue, a clock. */
unit_find polls_find;

/* windows_find - equal pieces of time, of a process in which nothing recurs that is known: a server, a
 * notebook, a program that only launches kernels. They lie between its first work on the GPU and its last:
 * imports and the loading of a model come before. Those in which it rested are left out: a server without
 * requests loses nothing. */
unit_find windows_find;

/* gpu_open_count - in which time of a unit the GPU may have work of the process, from when it is given some until a wait for it
 * ends: fills the open_ns of @s's units, which are 0; they stay so where it is not known, of a recording without a ledger,
 * or a process that waits for parts of its work. 0 or -ENOMEM. */
int gpu_open_count(const struct timeline *t, struct step_spans *s);
