/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.c - see decoder.h.
 *
 * The thread decodes until something is to be handed over; then it asks the loop and waits for the answer, which
 * decides how the rest is counted. Invariants:
 *  1. @asked is set by the thread and cleared by the loop, both under the lock: one of the two owns a decoding.
 *  2. A decoding is freed by its last task on the loop. Tasks run in the order they were posted in, so none that
 *     was posted before comes after it. */
#include "cluster/ingest/decoder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/pool.h"

struct decoder {
	struct loop *loop;
	struct pool *pool;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	size_t count; /* decodings: they hold this struct */
	bool closed;
};

struct decoding {
	struct decoder *decoder;
	struct pool_job job;
	struct loop_task ask, end;
	struct decoder_request q;
	struct push_handler h;
	decoder_done *done;
	void *arg;
	/* what is handed over */
	int (*hand_over)(const struct decoding *g);
	const void *what;
	const struct push_who *who;
	bool asked;
	int answer;
	/* at the end */
	int result;
	struct push_taken taken;
	struct errinfo err;
};

int decoder_decode(const struct decoder_request *q, const struct push_handler *h,
	struct push_taken *ret, struct errinfo *reterr)
{
	switch (q->signal) {
	case OTLP_METRICS: return push_receive_metrics(q->data, q->len, q->json, h, ret, reterr);
	case OTLP_LOGS: return push_receive_logs(q->data, q->len, q->json, h, ret, reterr);
	default: return 0; /* traces are nobody's here */
	}
}

static void decoder_unref(struct decoder *d)
{
	if (d->count || !d->closed)
		return;
	pthread_cond_destroy(&d->answered);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* On the loop: what the thread waits for. */
static void on_ask(void *arg)
{
	struct decoding *g = arg;
	struct decoder *d = g->decoder;
	bool wanted;
	int r;

	pthread_mutex_lock(&d->lock);
	wanted = g->asked && !d->closed;
	pthread_mutex_unlock(&d->lock);
	if (!wanted)
		return;
	r = g->hand_over(g);
	pthread_mutex_lock(&d->lock);
	g->answer = r;
	g->asked = false;
	pthread_cond_broadcast(&d->answered);
	pthread_mutex_unlock(&d->lock);
}

/* On the thread. */
static int ask(struct decoding *g, int (*hand_over)(const struct decoding *), const void *what,
	const struct push_who *who)
{
	struct decoder *d = g->decoder;
	int r = -ECANCELED;

	pthread_mutex_lock(&d->lock);
	if (!d->closed) {
		g->hand_over = hand_over;
		g->what = what;
		g->who = who;
		g->asked = true;
		loop_post(d->loop, &g->ask, on_ask, g);
		while (g->asked && !d->closed)
			pthread_cond_wait(&d->answered, &d->lock);
		r = g->asked ? -ECANCELED : g->answer;
		g->asked = false;
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}

static int give_health(const struct decoding *g)
{
	return g->h.health(g->h.arg, g->what);
}

static int give_straggler(const struct decoding *g)
{
	return g->h.straggler(g->h.arg, g->who, g->what);
}

static int give_calls(const struct decoding *g)
{
	return g->h.calls(g->h.arg, g->what);
}

static int give_report(const struct decoding *g)
{
	return g->h.report(g->h.arg, g->what);
}

static int on_health(void *arg, const struct push_health *h)
{
	return ask(arg, give_health, h, NULL);
}

static int on_straggler(void *arg, const struct push_who *who, const struct push_straggler *s)
{
	return ask(arg, give_straggler, s, who);
}

static int on_calls(void *arg, const struct push_calls *c)
{
	return ask(arg, give_calls, c, NULL);
}

static int on_report(void *arg, const struct push_report *r)
{
	return ask(arg, give_report, r, NULL);
}

static void on_end(void *arg)
{
	_cleanup_free_ struct decoding *g = arg;
	struct decoder *d = g->decoder;

	g->done(g->arg, d->closed ? -ECANCELED : g->result, &g->taken, &g->err);
	d->count--;
	decoder_unref(d);
}

static bool decode(void *arg, bool brief _unused_)
{
	struct decoding *g = arg;
	const struct push_handler h = {.arg = g,
		.health = g->h.health ? on_health : NULL,
		.straggler = g->h.straggler ? on_straggler : NULL,
		.calls = g->h.calls ? on_calls : NULL,
		.report = g->h.report ? on_report : NULL};

	g->result = decoder_decode(&g->q, &h, &g->taken, &g->err);
	loop_post(g->decoder->loop, &g->end, on_end, g);
	return true;
}

int decoder_new(struct loop *l, struct decoder **ret)
{
	const struct pool_settings s = {.threads = 1, .queue_max = DECODER_QUEUE};
	_cleanup_free_ struct decoder *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	r = pool_new(&s, &d->pool);
	if (r < 0)
		return r;
	d->loop = l;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->answered, NULL);
	*ret = TAKE(d);
	return 0;
}

void decoder_free(struct decoder *d)
{
	pthread_mutex_lock(&d->lock);
	d->closed = true;
	pthread_cond_broadcast(&d->answered);
	pthread_mutex_unlock(&d->lock);
	pool_free(d->pool);
	decoder_unref(d);
}

int decoder_push(struct decoder *d, const struct decoder_request *q, const struct push_handler *h,
	decoder_done *done, void *arg)
{
	_cleanup_free_ struct decoding *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	*g = (struct decoding){.decoder = d, .q = *q, .h = *h, .done = done, .arg = arg};
	g->job = (struct pool_job){.fn = decode, .arg = g, .asker = q->asker};
	d->count++;
	r = pool_push(d->pool, &g->job);
	if (r < 0) {
		d->count--;
		return r;
	}
	TAKE(g);
	return 0;
}
