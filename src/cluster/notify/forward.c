/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c - see forward.h. A target's sender holds what is under way. With a spool that is one
 * batch at a time, which is acknowledged there when it has left; without one, `open` collects what
 * comes meanwhile, and becomes a batch when the sender has nothing else, the kind changes, or it is
 * full. Every request that is given is counted once: delivered, lost, or waiting. */
#include "cluster/notify/forward.h"

#include "base/log.h"
#include "deliver/sender.h"
#include "otlp/otlp_metric.h"

#define BATCH_JOIN  (1u << 20)  /* bytes up to which requests are joined */
#define REQUEST_MAX (16u << 20) /* what a spool or a backlog takes */
#define SYNC_NS     NS_PER_S

struct target {
	struct forward_target settings;
	struct forward *forward;
	struct sender *sender;
	struct spool *spool; /* NULL: memory */
	struct buf open;
	uint32_t open_tag;
	size_t open_requests;
	struct forward_stats stats;
};

struct forward {
	struct target targets[FORWARD_TARGETS_MAX];
	size_t count;
	struct loop_timer *sync;
	bool sync_is_set;
	loop_fn *finished;
	void *finished_arg;
	size_t unfinished;
};

const char *forward_loss_id(enum forward_loss l)
{
	return LIST_IDS(FORWARD_LOSSES)[l];
}

/* ---- tags ---- */

static bool tag_is_json(uint32_t tag)
{
	return tag >> 8 & 1;
}

/* ---- from the queue to the sender ---- */

static void put_batch(struct target *t, struct buf *b, uint32_t tag, size_t requests)
{
	struct backlog_batch batch = {.len = b->len, .points = requests, .tag = tag};

	batch.data = buf_take(b);
	if (!batch.data && batch.len)
		batch.len = SIZE_MAX; /* no memory: counted as dropped */
	sender_put(t->sender, batch);
}

static void flush_open(struct target *t)
{
	size_t requests = t->open_requests;

	if (!requests)
		return;
	t->open_requests = 0;
	put_batch(t, &t->open, t->open_tag, requests);
	buf_done(&t->open);
	t->open = BUF_INIT(REQUEST_MAX);
}

/* The next records of the spool as one batch. */
static void take_from_spool(struct target *t)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2 * REQUEST_MAX);
	uint32_t tag = 0, first_tag = 0;
	size_t len, requests = 0;

	while (spool_look(t->spool, &tag, &len)) {
		enum spool_bound bound = spool_bound(t->spool);
		bool fits = tag == first_tag && !tag_is_json(tag) && b.len + len <= BATCH_JOIN;

		if (requests && (bound == SPOOL_APART || (bound == SPOOL_FREE && !fits)))
			break;
		first_tag = tag;
		if (spool_take(t->spool, &b) < 0)
			break;
		requests++;
	}
	if (!requests)
		return;
	spool_send(t->spool);
	put_batch(t, &b, first_tag, requests);
}

static void feed(struct target *t)
{
	if (sender_backlog(t->sender)->count)
		return;
	if (t->spool)
		take_from_spool(t);
	else
		flush_open(t);
}

/* ---- what the sender asks and tells ---- */

static void describe(void *arg, const struct backlog_batch *b, struct http_ask *ask)
{
	const struct target *t = arg;

	ask->path = t->settings.endpoint->path[(enum otlp_signal)MIN(
		b->tag & 255, (uint32_t)OTLP_SIGNAL_COUNT - 1)];
	ask->type = tag_is_json(b->tag) ? "application/json" : "application/x-protobuf";
	if (t->settings.fields) {
		ask->fields = t->settings.fields->field;
		ask->field_count = t->settings.fields->count;
	}
}

static void taken(void *arg, const struct backlog_batch *b, const void *reply, size_t len)
{
	struct target *t = arg;
	struct otlp_answer a = {0};

	(void)(tag_is_json(b->tag) ? otlp_answer_json(reply, len, &a)
				   : otlp_answer_protobuf(reply, len, &a));
	if (a.rejected > 0) {
		t->stats.rejected_points += (uint64_t)a.rejected;
		sender_say(t->sender, "some points were rejected", a.message);
	}
}

static void left(void *arg, enum backlog_outcome outcome _unused_)
{
	struct target *t = arg;

	if (t->spool)
		spool_ack(t->spool);
	feed(t);
}

/* ---- giving ---- */

static void on_sync(void *arg)
{
	struct forward *f = arg;

	f->sync_is_set = false;
	for (size_t i = 0; i < f->count; i++)
		if (f->targets[i].spool && spool_sync(f->targets[i].spool) < 0)
			log_warning("the spool in %s cannot be written to disk",
				f->targets[i].settings.spool);
}

static void give_to_spool(struct target *t, uint32_t tag, const void *data, size_t len)
{
	int r = spool_append(t->spool, tag, data, len);

	if (r < 0) {
		log_warning("a request for %s is lost: the spool in %s: %s", t->stats.shown,
			t->settings.spool, strerror(-r));
		return;
	}
	if (!t->forward->sync_is_set)
		loop_timer_set(t->forward->sync, SYNC_NS);
	t->forward->sync_is_set = true;
}

static void give_to_memory(struct target *t, uint32_t tag, const void *data, size_t len)
{
	if (len > REQUEST_MAX) {
		t->stats.lost[FORWARD_LOST_TOO_LARGE]++;
		return;
	}
	if (t->open_requests &&
		(tag != t->open_tag || tag_is_json(tag) || t->open.len + len > BATCH_JOIN))
		flush_open(t);
	t->open_tag = tag;
	t->open_requests++;
	buf_append(&t->open, data, len);
}

void forward_give(struct forward *f, enum otlp_signal signal, enum forward_encoding encoding,
	const void *data, size_t len)
{
	uint32_t tag = (uint32_t)signal | (uint32_t)encoding << 8;

	for (size_t i = 0; i < f->count; i++) {
		struct target *t = &f->targets[i];

		t->stats.requests++;
		if (encoding == FORWARD_JSON && t->settings.endpoint->protocol == OTLP_GRPC)
			t->stats.lost[FORWARD_LOST_ENCODING]++;
		else if (t->spool)
			give_to_spool(t, tag, data, len);
		else
			give_to_memory(t, tag, data, len);
		feed(t);
	}
}

/* ---- the end ---- */

static void on_target_finished(void *arg)
{
	struct forward *f = arg;

	if (--f->unfinished == 0)
		f->finished(f->finished_arg);
}

void forward_finish(struct forward *f, loop_fn *fn, void *arg)
{
	f->finished = fn;
	f->finished_arg = arg;
	f->unfinished = f->count + 1; /* this one, so that the others may come at once */
	for (size_t i = 0; i < f->count; i++) {
		flush_open(&f->targets[i]);
		feed(&f->targets[i]);
		sender_finish(f->targets[i].sender, on_target_finished, f);
	}
	on_target_finished(f);
}

bool forward_stats(const struct forward *f, size_t i, struct forward_stats *ret)
{
	const struct target *t = i < f->count ? &f->targets[i] : NULL;
	const struct backlog *b;
	struct spool_stats spool;

	if (!t)
		return false;
	b = sender_backlog(t->sender);
	*ret = t->stats;
	ret->delivered = b->stats.sent_points;
	ret->retries = b->stats.retries;
	ret->lost[FORWARD_LOST_REFUSED] = b->stats.refused_points;
	ret->lost[FORWARD_LOST_MEMORY_FULL] = b->stats.dropped_points;
	ret->waiting = t->open_requests;
	ret->waiting_bytes = b->bytes + t->open.len;
	for (size_t n = 0; n < b->count; n++)
		ret->waiting += b->ring[(b->head + n) % BACKLOG_BATCHES].points;
	if (t->spool) {
		spool = spool_stats(t->spool);
		ret->waiting = spool.records;
		ret->waiting_bytes = spool.bytes;
		ret->damaged_bytes = spool.damaged_bytes;
		ret->lost[FORWARD_LOST_SPOOL_FULL] = spool.dropped_records;
		ret->lost[FORWARD_LOST_TOO_LARGE] = spool.too_large;
		ret->lost[FORWARD_LOST_WRITE_ERROR] = spool.write_errors;
	}
	return true;
}

/* ---- life ---- */

void forward_free(struct forward *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct target *t = &f->targets[i];

		sender_freep(&t->sender);
		spool_closep(&t->spool);
		buf_done(&t->open);
	}
	loop_timer_freep(&f->sync);
	free(f);
}

static int target_open(struct loop *l, struct target *t, struct errinfo *reterr)
{
	static const struct sender_ops ops = {.describe = describe, .taken = taken, .left = left};
	const struct forward_target *s = &t->settings;
	struct sender_settings sender = {.endpoint = &s->endpoint->endpoint,
		.shown = s->endpoint->shown,
		.what = "forwarded requests",
		.is_grpc = s->endpoint->protocol == OTLP_GRPC,
		.ca = s->ca,
		.cert = s->cert,
		.key = s->key,
		.insecure_far = s->insecure_far,
		.ops = &ops,
		.arg = t};
	struct spool_settings spool = {s->spool, s->spool_bytes};
	int r = 0;

	if (s->spool)
		r = spool_open(&spool, &t->spool, reterr);
	return r < 0 ? r : sender_new(l, &sender, &t->sender, reterr);
}

int forward_new(struct loop *l, const struct forward_target *targets, size_t count,
	struct forward **ret, struct errinfo *reterr)
{
	_cleanup_(forward_freep) struct forward *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	if (count > FORWARD_TARGETS_MAX)
		return errinfo_set(
			reterr, -E2BIG, "more than %d targets to forward to", FORWARD_TARGETS_MAX);
	r = loop_timer_new(l, on_sync, f, &f->sync);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct target *t = &f->targets[f->count++];

		*t = (struct target){.settings = targets[i],
			.forward = f,
			.open = BUF_INIT(REQUEST_MAX),
			.stats = {.shown = targets[i].endpoint->shown}};
		r = target_open(l, t, reterr);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->count; i++)
		feed(&f->targets[i]);
	*ret = TAKE(f);
	return 0;
}
