/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.c - see decoder.h. The thread decodes until something is to be handed over; then it asks the loop and
 * waits for the answer, which decides how the rest is counted. */
#include "cluster/ingest/decoder.h"

struct decoder {
	struct aside *aside;
};

struct decoding {
	struct aside_work *work;
	struct decoder_request q;
	struct push_handler h;
	decoder_done *done;
	void *arg;
	/* what is handed over */
	const void *what;
	const struct push_who *who;
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

/* On the loop. */
static int give_health(void *arg)
{
	const struct decoding *g = arg;

	return g->h.health(g->h.arg, g->what);
}

static int give_straggler(void *arg)
{
	const struct decoding *g = arg;

	return g->h.straggler(g->h.arg, g->who, g->what);
}

static int give_calls(void *arg)
{
	const struct decoding *g = arg;

	return g->h.calls(g->h.arg, g->what);
}

static int give_report(void *arg)
{
	const struct decoding *g = arg;

	return g->h.report(g->h.arg, g->what);
}

/* On the thread. */
static int hand_over(
	struct decoding *g, int (*give)(void *), const void *what, const struct push_who *who)
{
	g->what = what;
	g->who = who;
	return aside_ask(g->work, give, g);
}

static int on_health(void *arg, const struct push_health *h)
{
	return hand_over(arg, give_health, h, NULL);
}

static int on_straggler(void *arg, const struct push_who *who, const struct push_straggler *s)
{
	return hand_over(arg, give_straggler, s, who);
}

static int on_calls(void *arg, const struct push_calls *c)
{
	return hand_over(arg, give_calls, c, NULL);
}

static int on_report(void *arg, const struct push_report *r)
{
	return hand_over(arg, give_report, r, NULL);
}

static void decode(struct aside_work *w, void *arg)
{
	struct decoding *g = arg;
	const struct push_handler h = {.arg = g,
		.health = g->h.health ? on_health : NULL,
		.straggler = g->h.straggler ? on_straggler : NULL,
		.calls = g->h.calls ? on_calls : NULL,
		.report = g->h.report ? on_report : NULL};

	g->work = w;
	g->result = decoder_decode(&g->q, &h, &g->taken, &g->err);
}

static void on_end(void *arg, bool canceled)
{
	_cleanup_free_ struct decoding *g = arg;

	g->done(g->arg, canceled ? -ECANCELED : g->result, &g->taken, &g->err);
}

int decoder_new(struct loop *l, struct decoder **ret)
{
	_cleanup_free_ struct decoder *d = calloc(1, sizeof(*d));
	int r = d ? aside_new(l, DECODER_QUEUE, &d->aside) : -ENOMEM;

	if (r == 0)
		*ret = TAKE(d);
	return r;
}

void decoder_free(struct decoder *d)
{
	aside_free(d->aside);
	free(d);
}

int decoder_push(struct decoder *d, const struct decoder_request *q, const struct push_handler *h,
	decoder_done *done, void *arg)
{
	_cleanup_free_ struct decoding *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	*g = (struct decoding){.q = *q, .h = *h, .done = done, .arg = arg};
	r = aside_push(d->aside, q->asker, decode, on_end, g);
	if (r == 0)
		TAKE(g);
	return r;
}
