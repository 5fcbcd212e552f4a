/* SPDX-License-Identifier: Apache-2.0 */
/* push.c - see push.h. Turns readings into requests; deliver/sender.h does the rest. */
#include "notify/telemetry/push.h"

#include <errno.h>

#include "deliver/sender.h"
#include "net/inflate.h"

#define BATCH_MAX (4u << 20) /* what receivers take by default (gRPC) */

struct push {
	struct endpoint endpoint;
	struct push_settings settings;
	struct sender *sender;
	uint64_t rejected_points;
};

void push_free(struct push *p)
{
	if (p->sender)
		sender_free(p->sender);
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

	batch.points = (is_json(p) ? otlp_metric_json : otlp_metric_protobuf)(
		&b, s, &p->settings.resource);
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
