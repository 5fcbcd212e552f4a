/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - answers in a sentence or a few, the most important first: what an assistant reads before the data.
 * Names in them are what programs call themselves; whoever shows them cleans them. */
#pragma once

#include "answer/collectives.h"
#include "answer/answer.h"
#include "answer/incidents.h"
#include "answer/losses.h"
#include "answer/ops.h"
#include "answer/stacks.h"
#include "answer/steps.h"

/* say_incidents - the first @limit of @a, with cause and fix; "No problems found …" of an empty one. */
void say_incidents(struct buf *b, const struct incidents_answer *a, size_t limit);
/* say_incident - "HIGH: what. Cause: why. Fix: what helps." */
void say_incident(struct buf *b, const struct incident *i);
void say_steps(struct buf *b, const struct steps_answer *a);
void say_ops(struct buf *b, const struct ops_answer *a);
void say_collectives(struct buf *b, const struct collectives_answer *a);
void say_gpus(struct buf *b, const struct gpus_answer *a);
void say_losses(struct buf *b, const struct losses_answer *a);
/* say_stacks - @s: the stack of row @i, the first that has one; NULL: none has any. */
void say_stacks(struct buf *b, const struct stacks_answer *a, size_t i, const struct stack *s);
void say_graphs(struct buf *b, const struct graphs_answer *a);
