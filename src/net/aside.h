/* SPDX-License-Identifier: Apache-2.0 */
/* aside.h - long work beside the loop: a thread does it, and asks the loop's thread for what is the loop's.
 *
 * What the loop owns is only touched on the loop's thread, one question a turn, so that others are answered
 * meanwhile. */
#pragma once

#include "net/loop.h"

struct aside;
struct aside_work;

/* aside_new - one thread; no more than @queue_max wait for it. */
int aside_new(struct loop *l, size_t queue_max, struct aside **ret);
/* aside_free - on the loop's thread. What is under way is cut short: aside_ask() says -ECANCELED from now on, and
 * its end is told so if the loop goes on. */
void aside_free(struct aside *a);
DEFINE_CLEANUP(struct aside *, aside_free)

/* On the thread, once. */
typedef void aside_fn(struct aside_work *w, void *arg);
/* On the loop's thread, once, after it. */
typedef void aside_end(void *arg, bool canceled);

/* aside_push - -EBUSY: too many wait; -ENOMEM. @asker: whom it is for, see base/pool.h. */
int aside_push(struct aside *a, uint64_t asker, aside_fn *fn, aside_end *end, void *arg);

/* aside_ask - from the thread: what @fn says on the loop's thread, or -ECANCELED without having run it. */
int aside_ask(struct aside_work *w, int (*fn)(void *arg), void *arg);
