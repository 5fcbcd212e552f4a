/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.c - see telemetry.h. Everything but `wanted` belongs to the loop's thread; readings
 * come to it by loop_call(). */
#include "notify/telemetry/telemetry.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "deliver/sender.h"

DEFINE_CLEANUP(struct push *, push_free)

#define TELEMETRY_INTERVAL_NS (10 * NS_PER_S)

/* Everything is reported from the beginning, as 0. */

#define RESULT                                                                                     \
	{                                                                                          \
		{                                                                                  \
			"ingero.result", "result"                                                  \
		}                                                                                  \
	}

const struct metric_desc export_metric_table[EXPORT_METRIC_COUNT] = {
	[E_BATCHES] = {"ingero.otlp.batches", "ingero_otlp_batches_total", "{batch}",
		METRIC_COUNTER, false, 0,
		"OTLP batches: sent, dropped (queue full), rejected by the receiver", RESULT},
	[E_POINTS] = {"ingero.otlp.points", "ingero_otlp_points_total", "{point}", METRIC_COUNTER,
		false, 0,
		"Data points in OTLP batches; rejected: the receiver accepted the rest of the batch",
		RESULT},
	[E_RETRIES] = {"ingero.otlp.retries", "ingero_otlp_retries_total", "{attempt}",
		METRIC_COUNTER, false, 0, "OTLP attempts that failed and are retried", {{0}}},
	[E_QUEUE] = {"ingero.otlp.queue", "ingero_otlp_queue_batches", "{batch}", METRIC_GAUGE,
		false, 0, "Queued OTLP batches", {{0}}},
	[E_QUEUE_BYTES] = {"ingero.otlp.queue.size", "ingero_otlp_queue_bytes", "By", METRIC_GAUGE,
		false, 0, "Bytes of the queued OTLP batches", {{0}}},
	[E_SCRAPES] = {"ingero.scrapes", "ingero_scrapes_total", "{scrape}", METRIC_COUNTER, false,
		0, "Scrapes answered with metrics, before this one", {{0}}},
};

static void put_result(struct metric_set *s, enum export_metric_id id, wall_time start,
	const char *result, uint64_t v)
{
	metric_put_int(
		s, &export_metric_table[id], start, (int64_t)v, METRIC_OF(METRIC_TEXT(result)));
}

void export_metric_push(struct metric_set *s, wall_time start, const struct push_stats *f)
{
	const struct backlog_stats *b = &f->backlog;

	put_result(s, E_BATCHES, start, "sent", b->sent_batches);
	put_result(s, E_BATCHES, start, "dropped", b->dropped_batches);
	put_result(s, E_BATCHES, start, "refused", b->refused_batches);
	put_result(s, E_POINTS, start, "sent",
		b->sent_points - MIN(f->rejected_points, b->sent_points));
	put_result(s, E_POINTS, start, "dropped", b->dropped_points);
	put_result(s, E_POINTS, start, "refused", b->refused_points);
	put_result(s, E_POINTS, start, "rejected", f->rejected_points);
	metric_put_int(s, &export_metric_table[E_RETRIES], start, (int64_t)b->retries, NULL);
	metric_put_int(s, &export_metric_table[E_QUEUE], start, (int64_t)f->queued_batches, NULL);
	metric_put_int(
		s, &export_metric_table[E_QUEUE_BYTES], start, (int64_t)f->queued_bytes, NULL);
}

void export_metric_scrapes(struct metric_set *s, wall_time start, uint64_t scrapes)
{
	metric_put_int(s, &export_metric_table[E_SCRAPES], start, (int64_t)scrapes, NULL);
}

/* Turns readings into requests; deliver/sender.h does the rest. */

#define BATCH_MAX (4u << 20) /* what receivers take by default (gRPC) */

struct push {
	struct endpoint endpoint;
	struct push_settings settings;
	struct sender *sender;
	uint64_t rejected_points;
};

void push_free(struct push *p)
{
	sender_freep(&p->sender);
	free(p);
}

static bool is_json(const struct push *p)
{
	return p->endpoint.protocol == OTLP_HTTP_JSON;
}

static void describe(void *arg, const struct backlog_batch *b _unused_, struct http_ask *ask)
{
	const struct push *p = arg;

	ask->path = p->endpoint.path[OTLP_METRICS];
	ask->type = is_json(p) ? "application/json" : "application/x-protobuf";
	ask->fields = p->settings.fields->field;
	ask->field_count = p->settings.fields->count;
	ask->gzip = p->settings.gzip;
}

/* A response that cannot be read is one without rejections: the batch is delivered. */
static void taken(void *arg, const struct backlog_batch *b _unused_, const void *reply, size_t len)
{
	struct push *p = arg;
	struct otlp_answer a = {0};

	(void)(is_json(p) ? otlp_answer_json(reply, len, &a)
			  : otlp_answer_protobuf(reply, len, &a));
	if (a.rejected > 0) {
		p->rejected_points += (uint64_t)a.rejected;
		sender_say(p->sender, "some points were rejected", a.message);
	}
}

int push_new(
	struct loop *l, const struct push_settings *s, struct push **ret, struct errinfo *reterr)
{
	static const struct sender_ops ops = {.describe = describe, .taken = taken};
	_cleanup_(push_freep) struct push *p = calloc(1, sizeof(*p));
	struct sender_settings sender = {.endpoint = &s->endpoint->endpoint,
		.shown = s->endpoint->shown,
		.what = "metric readings",
		.is_grpc = s->endpoint->protocol == OTLP_GRPC,
		.ca = s->ca,
		.cert = s->cert,
		.key = s->key,
		.insecure_far = s->insecure_far,
		.ops = &ops,
		.arg = p};
	int r;

	if (!p)
		return -ENOMEM;
	p->endpoint = *s->endpoint;
	p->settings = *s;
	r = sender_new(l, &sender, &p->sender, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

void push_give(struct push *p, const struct metric_set *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BATCH_MAX), packed = BUF_INIT(BATCH_MAX);
	struct buf *body = p->settings.gzip ? &packed : &b;
	struct backlog_batch batch = {0};

	batch.points = otlp_metric_write(&b, is_json(p), s, &p->settings.resource);
	if (p->settings.gzip && !b.err)
		inflate_undo(b.data, b.len, &packed);
	batch.len = body->len;
	if (b.err || body->err)
		batch.len = SIZE_MAX; /* too large for anybody: counted as dropped */
	else
		batch.data = buf_take(body);
	sender_put(p->sender, batch);
}

void push_finish(struct push *p, loop_fn *fn, void *arg)
{
	sender_finish(p->sender, fn, arg);
}

struct push_stats push_stats(const struct push *p)
{
	const struct backlog *b = sender_backlog(p->sender);

	return (struct push_stats){.backlog = b->stats,
		.rejected_points = p->rejected_points,
		.queued_batches = b->count,
		.queued_bytes = b->bytes};
}

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

static void on_end(void *arg)
{
	struct telemetry *t = arg;

	if (!--t->ends)
		loop_stop(t->loop);
}

/* ---- readings ---- */

static void take(void *arg)
{
	struct handover *h = arg;
	struct telemetry *t = h->telemetry;

	if (h->set) {
		struct push_stats f;

		if (t->push) {
			f = push_stats(t->push);
			export_metric_push(h->set, t->started, &f);
		}
		if (t->scrape)
			export_metric_scrapes(h->set, t->started, scrape_count(t->scrape));
		if (t->scrape)
			scrape_give(t->scrape, h->set);
		if (t->push && (t->push_due || h->is_last))
			push_give(t->push, h->set);
		t->push_due = false;
		metric_set_free(h->set);
	}
	if (h->is_last) {
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
		metric_set_freep(&s);
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
	scrape_freep(&t->scrape);
	push_freep(&t->push);
	loop_timer_freep(&t->tick);
	loop_timer_freep(&t->patience);
	loop_freep(&t->loop);
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
	r = r ?: loop_timer_new(t->loop, on_tick, t, &t->tick);
	return r ?: loop_timer_new(t->loop, loop_stop, t->loop, &t->patience);
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
	r = r ?: open_ends(t, s, reterr);
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
