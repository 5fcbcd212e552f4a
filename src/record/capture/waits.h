/* SPDX-License-Identifier: Apache-2.0 */
/* waits.h - joins a collective with the synchronisation that waited for it.
 *
 * An NCCL call only enqueues: the time that ranks wait for each other passes in the next
 * synchronisation of its stream. Collectives are held back until that comes (or until they are
 * old, where nobody ever waits for the stream's soon), then handed on with wait_ns set. Pure but for memory. */
#pragma once

#include "base/macros.h"
#include "model/collective.h"

struct waits;
typedef void waits_sink(void *arg, const struct event *e, const struct collective *c);

int waits_new(waits_sink *sink, void *arg, struct waits **ret);
DECLARE_FREE(struct waits, waits_free)

/* waits_collective - hold it back. If there is no room the oldest is handed on as it is. */
void waits_collective(struct waits *w, const struct event *e, const struct collective *c);

/* waits_sync - @e was a synchronisation (others are ignored): hands on what it waited for. */
void waits_sync(struct waits *w, const struct event *e);

/* waits_expire - hand on everything older than @before as it is, and what nobody waits for soon. */
void waits_expire(struct waits *w, wall_time before, wall_time now);
