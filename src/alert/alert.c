/* SPDX-License-Identifier: Apache-2.0 */
/* alert.c - see alert.h. pump() is what moves notices on: it runs when one comes, when a request has
 * left, and when a new minute begins. Few requests are with the sender at a time, so that a receiver
 * that is away gets the present state when it is back, not the whole history. */
#include "alert/alert.h"

#include "base/log.h"
#include "deliver/endpoint.h"
#include "deliver/sender.h"
#include "net/digest.h"

#define WITH_SENDER  8  /* requests */
#define AT_ONCE      64 /* alerts in one request to Alertmanager */
#define MINUTE_NS    (60 * NS_PER_S)
#define ENDS_REPEATS 4 /* what was not repeated so many times is over */

struct receiver {
	struct alert_receiver settings;
	struct sender *sender;
	struct alert_queue queue;
	struct loop_timer *minute, *repeat;
	uint64_t minute_ns; /* when the present one began; 0: none */
	unsigned used;      /* of its notices */
	struct alert_stats stats;
	char authorization[1024], signature[16 + DIGEST_HEX];
	struct http_field fields[2];
};

struct alerts {
	struct receiver receivers[ALERT_RECEIVERS_MAX];
	size_t count;
	loop_fn *finished;
	void *finished_arg;
	size_t unfinished;
};

/* ---- requests ---- */

static void put_request(struct receiver *r, struct buf *b, size_t notices)
{
	struct backlog_batch batch = {.len = b->len, .points = notices};

	if (b->err) {
		r->stats.lost += notices;
		log_error(
			"an alert for %s cannot be written: %s", r->stats.shown, strerror(-b->err));
		return;
	}
	batch.data = buf_take(b);
	sender_put(r->sender, batch);
}

/* Everything that waits, in one request. */
static void put_digest(struct receiver *r)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ALERT_BODY_MAX);
	const struct alert_notice *notices[ALERT_WAITING_MAX];
	struct alert_item *items[ALERT_WAITING_MAX];
	size_t count = 0;

	while (count < ALERT_WAITING_MAX && (items[count] = alert_queue_take(&r->queue))) {
		notices[count] = &items[count]->notice;
		count++;
	}
	if (r->settings.type == ALERT_SLACK)
		alert_slack_digest(&b, &r->settings.look, notices, count);
	else
		alert_webhook_digest(&b, notices, count);
	put_request(r, &b, count);
	r->stats.digests++;
	r->stats.digested += count;
	for (size_t i = 0; i < count; i++)
		free(items[i]);
}

static uint64_t repeat_ns(const struct receiver *r)
{
	return r->settings.repeat_ns ? r->settings.repeat_ns : ALERT_REPEAT_NS;
}

static void put_alerts(struct receiver *r, const struct alert_episode *episodes, size_t count)
{
	_cleanup_buf_ struct buf b = BUF_INIT(AT_ONCE * 8192);
	wall_time until = {wall_now().ns + (int64_t)(ENDS_REPEATS * repeat_ns(r))};

	alert_alertmanager(&b, &r->settings.look, episodes, count, until);
	put_request(r, &b, count);
}

/* What lasts, once more; not while earlier requests wait, of which it would only be a copy. */
static void on_repeat(void *arg)
{
	struct receiver *r = arg;
	struct alert_episode episodes[AT_ONCE];
	const struct alert_open *open;
	size_t cursor = 0, count = 0;
	bool is_idle = !sender_backlog(r->sender)->count;

	while (is_idle && (open = alert_queue_open(&r->queue, &cursor))) {
		episodes[count++] = (struct alert_episode){&open->first, &open->now};
		if (count == AT_ONCE) {
			put_alerts(r, episodes, count);
			count = 0;
		}
	}
	if (count)
		put_alerts(r, episodes, count);
	loop_timer_set(r->repeat, repeat_ns(r));
}

/* ---- when ---- */

static unsigned per_minute(const struct receiver *r)
{
	return r->settings.per_minute ? r->settings.per_minute : ALERT_PER_MINUTE;
}

/* Whether one more may go out in this minute; if not, the next one rings. */
static bool has_budget(struct receiver *r)
{
	uint64_t now = mono_now().ns;
	uint64_t period_ns = r->settings.period_ns ? r->settings.period_ns : MINUTE_NS;

	if (!r->minute_ns || now - r->minute_ns >= period_ns) {
		r->minute_ns = now;
		r->used = 0;
	}
	if (r->used < per_minute(r))
		return true;
	loop_timer_set(r->minute, r->minute_ns + period_ns - now + NS_PER_MS);
	return false;
}

static void pump(struct receiver *r)
{
	bool has_digests = r->settings.type == ALERT_SLACK || r->settings.type == ALERT_WEBHOOK;

	while (r->queue.count && sender_backlog(r->sender)->count < WITH_SENDER && has_budget(r)) {
		r->used++;
		if (r->settings.type == ALERT_ALERTMANAGER) {
			struct alert_episode episodes[AT_ONCE];
			struct alert_item *items[AT_ONCE];
			size_t count = 0;

			/* As many of those that wait as one request takes. */
			while (count < AT_ONCE && (items[count] = alert_queue_take(&r->queue))) {
				episodes[count] = (struct alert_episode){
					&items[count]->first, &items[count]->notice.matter};
				count++;
			}
			if (count)
				put_alerts(r, episodes, count);
			for (size_t i = 0; i < count; i++)
				free(items[i]);
		} else if (has_digests && r->used == per_minute(r) && r->queue.count > 1) {
			put_digest(r);
		} else {
			struct alert_item *i = alert_queue_take(&r->queue);

			if (i) {
				_cleanup_buf_ struct buf b = BUF_INIT(ALERT_BODY_MAX);

				if (r->settings.type == ALERT_SLACK)
					alert_slack(&b, &r->settings.look, &i->notice);
				else if (r->settings.type == ALERT_PAGERDUTY)
					alert_pagerduty(&b, &r->settings.look, &i->notice);
				else
					alert_webhook(&b, &i->notice);
				put_request(r, &b, 1);
			}
			free(i);
		}
	}
}

static void on_minute(void *arg)
{
	pump(arg);
}

void alerts_give(struct alerts *a, const struct alert_notice *n)
{
	for (size_t i = 0; i < a->count; i++) {
		struct receiver *r = &a->receivers[i];

		r->stats.notices++;
		alert_queue_put(&r->queue, n);
		pump(r);
	}
}

/* ---- what the sender asks and tells ---- */

static void describe(void *arg, const struct backlog_batch *b, struct http_ask *ask)
{
	struct receiver *r = arg;
	const char *secret = r->settings.sign_secret;
	char hex[DIGEST_HEX];
	size_t count = 0;

	ask->path = r->settings.path;
	ask->type = "application/json";
	if (r->settings.bearer)
		r->fields[count++] = (struct http_field){"authorization", r->authorization};
	if (secret && digest_hmac(secret, strlen(secret), b->data, b->len, hex) == 0) {
		snprintf(r->signature, sizeof(r->signature), "sha256=%s", hex);
		r->fields[count++] = (struct http_field){ALERT_SIGNATURE_FIELD, r->signature};
	}
	ask->fields = r->fields;
	ask->field_count = count;
}

/* Receivers of alerts are asked again also after their own faults: a second request with the same
 * key does no harm. */
static enum backlog_outcome judge(int status)
{
	if (status >= 200 && status < 300)
		return BACKLOG_SENT;
	return status >= 500 || status == 429 || status == 408 ? BACKLOG_AGAIN : BACKLOG_REFUSED;
}

static void left(void *arg, enum backlog_outcome outcome _unused_)
{
	pump(arg);
}

/* ---- the end ---- */

static void on_receiver_finished(void *arg)
{
	struct alerts *a = arg;

	if (--a->unfinished == 0)
		a->finished(a->finished_arg);
}

void alerts_finish(struct alerts *a, loop_fn *fn, void *arg)
{
	a->finished = fn;
	a->finished_arg = arg;
	a->unfinished = a->count + 1; /* this one, so that the others may come at once */
	for (size_t i = 0; i < a->count; i++)
		sender_finish(a->receivers[i].sender, on_receiver_finished, a);
	on_receiver_finished(a);
}

bool alerts_stats(const struct alerts *a, size_t i, struct alert_stats *ret)
{
	const struct receiver *r = i < a->count ? &a->receivers[i] : NULL;
	const struct backlog *b;

	if (!r)
		return false;
	b = sender_backlog(r->sender);
	*ret = r->stats;
	ret->sent = b->stats.sent_batches;
	ret->retries = b->stats.retries;
	ret->refused = b->stats.refused_batches;
	ret->merged = r->queue.merged;
	ret->brief = r->queue.brief;
	ret->lost += r->queue.lost + b->stats.dropped_points;
	ret->waiting = r->queue.count + b->count;
	ret->open = r->queue.open.used;
	return true;
}

/* ---- life ---- */

void alerts_free(struct alerts *a)
{
	for (size_t i = 0; i < a->count; i++) {
		struct receiver *r = &a->receivers[i];

		sender_freep(&r->sender);
		loop_timer_freep(&r->minute);
		loop_timer_freep(&r->repeat);
		alert_queue_done(&r->queue);
		explicit_bzero(r->authorization, sizeof(r->authorization));
	}
	free(a);
}

static int receiver_open(struct loop *l, struct receiver *r, struct errinfo *reterr)
{
	static const struct sender_ops ops = {.describe = describe, .judge = judge, .left = left};
	const struct alert_receiver *s = &r->settings;
	struct sender_settings sender = {.endpoint = &s->endpoint,
		.shown = r->stats.shown,
		.what = "alerts",
		.ca = s->ca,
		.insecure_far = s->insecure_far,
		.ops = &ops,
		.arg = r};
	int n, err;

	r->stats.type = s->type;
	endpoint_show(&s->endpoint, r->stats.shown);
	n = s->bearer ? snprintf(r->authorization, sizeof(r->authorization), "Bearer %s", s->bearer)
		      : 0;
	if (n >= (int)sizeof(r->authorization))
		return errinfo_set(
			reterr, -EINVAL, "the bearer token for %s is too long", r->stats.shown);
	err = sender_new(l, &sender, &r->sender, reterr);
	err = err ?: loop_timer_new(l, on_minute, r, &r->minute);
	err = err ?: loop_timer_new(l, on_repeat, r, &r->repeat);
	if (err == 0 && s->type == ALERT_ALERTMANAGER)
		loop_timer_set(r->repeat, repeat_ns(r));
	return err;
}

int alerts_new(struct loop *l, const struct alert_receiver *receivers, size_t count,
	struct alerts **ret, struct errinfo *reterr)
{
	_cleanup_(alerts_freep) struct alerts *a = calloc(1, sizeof(*a));
	int r = 0;

	if (!a)
		return -ENOMEM;
	if (count > ALERT_RECEIVERS_MAX)
		return errinfo_set(
			reterr, -E2BIG, "more than %d alert receivers", ALERT_RECEIVERS_MAX);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct receiver *to = &a->receivers[a->count++];

		to->settings = receivers[i];
		to->queue = ALERT_QUEUE_INIT;
		r = receiver_open(l, to, reterr);
	}
	if (r < 0)
		return r;
	*ret = TAKE(a);
	return 0;
}

/* See alert.h. Invariants: at most one item waits for an episode; a BEGAN waits
 * only for episodes that are not in `open`, other kinds only for those that are. */

void alert_queue_done(struct alert_queue *q)
{
	uint64_t id;
	size_t cursor = 0;
	void *open;

	while (q->head)
		free(alert_queue_take(q));
	while ((open = idmap_next(&q->open, &cursor, &id)))
		free(open);
	idmap_done(&q->open);
}

static struct alert_item *find(const struct alert_queue *q, uint64_t id)
{
	struct alert_item *i = q->head;

	while (i && i->notice.matter.id != id)
		i = i->next;
	return i;
}

static void take_out(struct alert_queue *q, struct alert_item *item)
{
	struct alert_item **link = &q->head, *before = NULL;

	while (*link != item) {
		before = *link;
		link = &(*link)->next;
	}
	*link = item->next;
	if (q->tail == item)
		q->tail = before;
	q->count--;
}

static bool is_of(const struct alert_matter *m, const char *cluster)
{
	return !strcmp(m->cluster, cluster);
}

static bool has_few_waiting(const struct alert_queue *q, const char *cluster)
{
	size_t n = 0;

	for (const struct alert_item *i = q->head; i && n < ALERT_FEW; i = i->next)
		n += is_of(&i->notice.matter, cluster);
	return n < ALERT_FEW;
}

static bool has_few_open(const struct alert_queue *q, const char *cluster)
{
	const struct alert_open *o;
	size_t n = 0, cursor = 0;

	while (n < ALERT_FEW && (o = idmap_next(&q->open, &cursor, NULL)))
		n += is_of(&o->now, cluster);
	return n < ALERT_FEW;
}

/* Room for one more, if need be at the cost of the oldest that is not an end: an incident that is
 * never resolved is worse than one that is not told. */
static bool make_room(struct alert_queue *q, const char *cluster, enum alert_kind kind)
{
	struct alert_item *i = q->head;
	size_t common = ALERT_WAITING_MAX / 4 * 3;

	if (q->count < common || (q->count < ALERT_WAITING_MAX &&
					 (kind == ALERT_ENDED || has_few_waiting(q, cluster))))
		return true;
	q->lost++;
	while (i && i->notice.kind == ALERT_ENDED)
		i = i->next;
	if (kind != ALERT_ENDED || !i)
		return false;
	take_out(q, i);
	free(i);
	return true;
}

static void append(struct alert_queue *q, const struct alert_notice *n, enum alert_kind kind)
{
	struct alert_item *i;

	if (!make_room(q, n->matter.cluster, kind))
		return;
	i = calloc(1, sizeof(*i));
	if (!i) {
		q->lost++;
		return;
	}
	i->notice = *n;
	i->notice.kind = kind;
	*(q->tail ? &q->tail->next : &q->head) = i;
	q->tail = i;
	q->count++;
}

void alert_queue_put(struct alert_queue *q, const struct alert_notice *n)
{
	bool is_open = idmap_get(&q->open, n->matter.id);
	struct alert_item *waiting = find(q, n->matter.id);
	bool ends = n->kind == ALERT_ENDED;

	if (ends && !is_open) { /* nobody was told that it began */
		q->brief += 1 + !!waiting;
		if (waiting)
			take_out(q, waiting);
		free(waiting);
	} else if (waiting) {
		q->merged++;
		waiting->notice.matter = n->matter;
		if (ends)
			waiting->notice.kind = ALERT_ENDED;
	} else if (is_open && n->kind == ALERT_BEGAN) {
		append(q, n, ALERT_CHANGED);
	} else {
		append(q, n, is_open ? n->kind : ALERT_BEGAN);
	}
}

/* What the receiver believes once it was told. False: there is no room to remember a new one. */
static bool remember(struct alert_queue *q, struct alert_item *i)
{
	const struct alert_matter *e = &i->notice.matter;
	struct alert_open *open = idmap_get(&q->open, e->id);

	if (!open) {
		if (q->open.used >= ALERT_OPEN_MAX / 4 * 3 && !has_few_open(q, e->cluster))
			return false;
		open = malloc(sizeof(*open));
		if (!open || idmap_put(&q->open, e->id, open) < 0) {
			free(open);
			return false;
		}
		open->first = *e;
	}
	open->now = *e;
	i->first = open->first;
	if (i->notice.kind == ALERT_ENDED)
		free(idmap_remove(&q->open, e->id));
	return true;
}

struct alert_item *alert_queue_take(struct alert_queue *q)
{
	struct alert_item *i;

	while ((i = q->head)) {
		take_out(q, i);
		i->next = NULL;
		if (remember(q, i))
			return i;
		q->lost++; /* it could never be resolved */
		free(i);
	}
	return NULL;
}

const struct alert_open *alert_queue_open(const struct alert_queue *q, size_t *cursor)
{
	uint64_t id;

	return idmap_next(&q->open, cursor, &id);
}
