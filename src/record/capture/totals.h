/* SPDX-License-Identifier: Apache-2.0 */
/* totals.h - reads the kernel's aggregates and keeps, per process and op, what was gained: since
 * the start (for the live table) and in the present 5 s bucket (for the store).
 *
 * The kernel's counters only grow; a reading is compared with the one before, so nothing is counted
 * twice and nothing is missed, however late the reading comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/capture/total.h"
#include "record/probe/probe.h"
#include "base/clock.h"
#include "model/event.h"

struct totals;

int totals_new(struct probe *p, struct totals **ret);
void totals_free(struct totals *t);
DEFINE_CLEANUP(struct totals *, totals_free)

/* totals_weigh - @weight says how many launches each of a process's stands for that was counted: they are probed
 * only part of the time. */
typedef double totals_weight(const void *arg, uint32_t pid);
void totals_weigh(struct totals *t, totals_weight *weight, const void *arg);

/* totals_more - the process made more launches than were counted, by @share of what there is, of each kind. */
int totals_more(struct totals *t, uint32_t pid, double share);

/* totals_read - bring everything up to date. Returns 0 or a negative errno. */
int totals_read(struct totals *t);

/* totals_add - count an event that the kernel could not count (WIRE_UNCOUNTED). */
int totals_add(struct totals *t, const struct event *e);

/* totals_flush - hand the gains of every op to @sink as aggregates of @bucket and start anew. What
 * the sink refuses (false) is kept and comes with the next flush. Returns how many were refused. */
typedef bool totals_sink(void *arg, const struct aggregate *a);
int totals_flush(struct totals *t, wall_time bucket, totals_sink *sink, void *arg);

/* totals_process_gone - the process ended; its kernel entries go after the next reading. */
int totals_process_gone(struct totals *t, uint32_t pid);

/* totals_busiest - sets @ret to what the process with most hits did since the last call; pid 0: nobody
 * called. Hits of launches are unweighted. */
struct use;
void totals_busiest(struct totals *t, struct use *ret);

/* totals_next - walk all (process 0: the ended ones together): *cursor starts at 0; NULL at the
 * end. Valid until the next read. */
const struct total *totals_next(const struct totals *t, size_t *cursor);
