/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h - which rows of a recording are kept when it is reduced. */
#pragma once

#include "corpus.h"

#define REDUCE_EVENTS_MAX 900

/* reduce_events - sets keep[i] for the events that stages after the account may look at: of each process and
 * op all if they are few, else failed ones, the longest, and some of the others, spread over the time. Of
 * allocations all that are never freed. 0 or -ENOMEM. */
int reduce_events(const struct event *events, size_t n, bool *keep);

/* reduce_ledger - appends to @c rows of up to a second each (less where several processes use the GPU), of the
 * threads that call CUDA: sums of those of @rec, without what ended them. 0 or -ENOMEM. */
int reduce_ledger(const struct recording *rec, struct corpus *c);

/* reduce_account - appends one account: keys with little time become those of their line, owner and process,
 * and times multiples of a small part of the usual unit. Each unit still adds up. 0 or -ENOMEM. */
int reduce_account(const struct process_account *a, struct corpus *c);
