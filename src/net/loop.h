/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - one thread that waits for sockets, timers and signals.
 *
 * Everything in net/ belongs to the thread that runs its loop; loop_call(), loop_post() and
 * loop_stop() alone may be used from others. Nobody outside net/ includes libevent's headers. */
#pragma once

#include "base/macros.h"

struct loop;
struct loop_timer;
typedef void loop_fn(void *arg);

int loop_new(struct loop **ret);
DECLARE_FREE(struct loop, loop_free)

/* loop_run - until loop_stop(). 0 or a negative errno. */
int loop_run(struct loop *l);
void loop_stop(void *loop); /* from any thread; a loop_fn, too, of the loop that it is given */

/* loop_call - @fn runs once on the loop's thread, soon; from any thread. 0 or -ENOMEM. */
int loop_call(struct loop *l, loop_fn *fn, void *arg);

struct loop_task { /* the loop's from loop_post() until its function runs */
	struct loop_task *next;
	loop_fn *fn;
	void *arg;
	bool is_own; /* the loop's memory */
};

/* loop_post - as loop_call(), in the caller's memory @t, which @fn may free: this cannot fail, and
 * is for what must reach the loop. */
void loop_post(struct loop *l, struct loop_task *t, loop_fn *fn, void *arg);

/* loop_signal - @fn runs whenever @signal has come. Until loop_free(). */
int loop_signal(struct loop *l, int signal, loop_fn *fn, void *arg);

/* loop_watch - @fn runs while @fd is readable (or its other end is gone); NULL @fn ends that. The
 * descriptor stays the caller's. */
int loop_watch(struct loop *l, int fd, loop_fn *fn, void *arg);

/* loop_notify - this loop is the work whose life the service manager watches (base/notify.h): its
 * thread gives a sign whenever one is due, between two callbacks. Nothing if nobody watches. */
int loop_notify(struct loop *l);

int loop_timer_new(struct loop *l, loop_fn *fn, void *arg, struct loop_timer **ret);
void loop_timer_set(
	struct loop_timer *t, uint64_t after_ns); /* once; replaces an earlier setting */
void loop_timer_clear(struct loop_timer *t);
DECLARE_FREE(struct loop_timer, loop_timer_free)

/* loop_base - for the rest of net/. */
struct event_base *loop_base(struct loop *l);

/* Long work beside the loop: a thread does it, and asks the loop's thread for what is the loop's.
 *
 * What the loop owns is only touched on the loop's thread, one question a turn, so that others are answered
 * meanwhile. */

struct aside;
struct aside_work;

/* aside_new - one thread; no more than @queue_max wait for it. */
int aside_new(struct loop *l, size_t queue_max, struct aside **ret);
/* aside_free - on the loop's thread. What is under way is cut short: aside_ask() says -ECANCELED from now on, and
 * its end is told so if the loop goes on. */
DECLARE_FREE(struct aside, aside_free)

/* On the thread, once. */
typedef void aside_fn(struct aside_work *w, void *arg);
/* On the loop's thread, once, after it. */
typedef void aside_end(void *arg, bool canceled);

/* aside_push - -EBUSY: too many wait; -ENOMEM. @asker: whom it is for, see base/pool.h. */
int aside_push(struct aside *a, uint64_t asker, aside_fn *fn, aside_end *end, void *arg);

/* aside_ask - from the thread: what @fn says on the loop's thread, or -ECANCELED without having run it. */
int aside_ask(struct aside_work *w, int (*fn)(void *arg), void *arg);
