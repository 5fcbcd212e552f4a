/* SPDX-License-Identifier: Apache-2.0 */
/* ends.h - when the collectives of a process ended, by what the process waited for.
 *
 * A call only enqueues, mostly on a stream of NCCL's own and by a thread of the framework's; the process waits later, on
 * another stream, which waits for that one. So the last call before a synchronisation that blocked has its end there: all
 * ranks leave it within microseconds. What a recording says of the wait of other calls is how long something blocked, and
 * no moment that ranks have in common. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "push/push.h"

struct ends { /* of one process; zero at first */
	struct push_call *last;
	bool *is_end; /* its */
};

/* ends_call, ends_sync - in order of time: calls by when they began, synchronisations of streams and devices likewise,
 * those within others left out. @c stays where it is until the next one; *is_end is set when the end is known: @c leaves
 * then, having waited. */
void ends_call(struct ends *e, struct push_call *c, bool *is_end);
void ends_sync(struct ends *e, int64_t start_ns, int64_t end_ns);

/* ends_share - of a call whose wait is known by its length alone: that is taken to begin with the call's end, unless
 * @next, which the same worker made meanwhile, waited as long: then both share the synchronisation after it. To be asked
 * of the later calls first. */
void ends_share(struct push_call *c, const struct push_call *next);
