/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.c - see telemetry.h. Everything but `wanted` belongs to the loop's thread; readings
 * come to it by loop_call(). */
#include "notify/telemetry/telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "notify/telemetry/export_metric.h"
#include "base/log.h"

struct telemetry {
	pthread_t thread;
	struct loop *loop;
	struct scrape *scrape; /* NULL: nobody scrapes */
	struct push *push;     /* NULL: nothing is sent */
	struct loop_timer *tick, *patience;
	uint64_t interval_ns;
	void (*begin)(void);
	wall_time started;
	bool push_due;
	unsigned ends; /* that have not been reached yet, once it is over */
	atomic_bool wanted;
};

struct handover {
	struct telemetry *telemetry;
	struct metric_set *set;
	bool is_last;
};

static void want(void *arg)
{
	struct telemetry *t = arg;

	atomic_store(&t->wanted, true);
}

static void on_tick(void *arg)
{
	struct telemetry *t = arg;

	t->push_due = true;
	want(t);
	loop_timer_set(t->tick, t->interval_ns);
}

static void on_patience(void *arg)
{
	struct telemetry *t = arg;

	loop_stop(t->loop);
}

static void on_end(void *arg)
{
	struct telemetry *t = arg;

	if (!--t->ends)
		loop_stop(t->loop);
}

/* ---- readings ---- */

static void complete(struct telemetry *t, struct metric_set *s)
{
	struct push_stats f;

	if (t->push) {
		f = push_stats(t->push);
		export_metric_push(s, t->started, &f);
	}
	if (t->scrape)
		export_metric_scrapes(s, t->started, scrape_count(t->scrape));
}

static void finish(struct telemetry *t)
{
	loop_timer_clear(t->tick);
	loop_timer_set(t->patience, TELEMETRY_FLUSH_NS);
	t->ends = 1; /* this one, so that the others may come at once */
	if (t->scrape) {
		t->ends++;
		scrape_drain(t->scrape, on_end, t);
	}
	if (t->push) {
		t->ends++;
		push_finish(t->push, on_end, t);
	}
	on_end(t);
}

static void take(void *arg)
{
	struct handover *h = arg;
	struct telemetry *t = h->telemetry;

	if (h->set) {
		complete(t, h->set);
		if (t->scrape)
			scrape_give(t->scrape, h->set);
		if (t->push && (t->push_due || h->is_last))
			push_give(t->push, h->set);
		t->push_due = false;
		metric_set_free(h->set);
	}
	if (h->is_last)
		finish(t);
	free(h);
}

static int hand_over(struct telemetry *t, struct metric_set *s, bool is_last)
{
	struct handover *h = malloc(sizeof(*h));
	int r = h ? 0 : -ENOMEM;

	if (h) {
		*h = (struct handover){t, s, is_last};
		r = loop_call(t->loop, take, h);
	}
	if (r < 0) {
		free(h);
		if (s)
			metric_set_free(s);
	}
	return r;
}

bool telemetry_wants(struct telemetry *t)
{
	return atomic_load(&t->wanted);
}

void telemetry_give(struct telemetry *t, struct metric_set *s)
{
	atomic_store(&t->wanted, false);
	if (!s || hand_over(t, s, false) < 0)
		log_warning("not enough memory for the metrics");
}

/* ---- life ---- */

static void telemetry_free(struct telemetry *t)
{
	if (t->scrape)
		scrape_free(t->scrape);
	if (t->push)
		push_free(t->push);
	if (t->tick)
		loop_timer_free(t->tick);
	if (t->patience)
		loop_timer_free(t->patience);
	if (t->loop)
		loop_free(t->loop);
	free(t);
}
DEFINE_CLEANUP(struct telemetry *, telemetry_free)

static void *thread_main(void *arg)
{
	struct telemetry *t = arg;

	(void)pthread_setname_np(pthread_self(), "ingero-metrics");
	if (t->begin)
		t->begin();
	loop_run(t->loop);
	return NULL;
}

static int open_ends(
	struct telemetry *t, const struct telemetry_settings *s, struct errinfo *reterr)
{
	struct scrape_settings scrape = s->scrape;
	int r = 0;

	scrape.want = want;
	scrape.arg = t;
	if (scrape.address)
		r = scrape_new(t->loop, &scrape, &t->scrape, reterr);
	if (r == 0 && s->push.endpoint)
		r = push_new(t->loop, &s->push, &t->push, reterr);
	if (r == 0)
		r = loop_timer_new(t->loop, on_tick, t, &t->tick);
	if (r == 0)
		r = loop_timer_new(t->loop, on_patience, t, &t->patience);
	return r;
}

int telemetry_start(
	const struct telemetry_settings *s, struct telemetry **ret, struct errinfo *reterr)
{
	_cleanup_(telemetry_freep) struct telemetry *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->started = wall_now();
	t->begin = s->begin;
	t->interval_ns = s->interval_ns ? s->interval_ns : TELEMETRY_INTERVAL_NS;
	r = loop_new(&t->loop);
	if (r == 0)
		r = open_ends(t, s, reterr);
	if (r < 0)
		return r;
	if (t->push)
		loop_timer_set(t->tick, t->interval_ns);
	r = -pthread_create(&t->thread, NULL, thread_main, t);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot start the metrics thread: %s", strerror(-r));
	*ret = TAKE(t);
	return 0;
}

const char *telemetry_address(const struct telemetry *t)
{
	return t->scrape ? scrape_address(t->scrape) : NULL;
}

size_t telemetry_stop(struct telemetry *t, struct metric_set *last)
{
	size_t undelivered = 0;

	if (hand_over(t, last, true) < 0)
		loop_stop(t->loop);
	pthread_join(t->thread, NULL);
	if (t->push)
		undelivered = push_stats(t->push).queued_batches;
	telemetry_free(t);
	return undelivered;
}
