/* SPDX-License-Identifier: Apache-2.0 */
/* push_receive.c - metrics of a request as one struct for each node.
 *
 * A request comes from an agent or from a collector that put those of many together; points of a node
 * may stand anywhere in it. They are gathered first and handed over when the request was read to its
 * end, so that one that is broken has no effect. Two agents with one name stay two, for the cluster to
 * refuse. Invariant: order[] holds the indexes of nodes[] by cluster, name and boot, without a hash
 * that a sender could aim at. */
#include <math.h>

#include "base/array.h"
#include "base/search.h"
#include "push/push_private.h"

#define NODES_MAX 10000 /* of a request: as many as the largest cluster has */

struct node {
	struct push_health health;
	struct push_straggler straggler;
	bool has_score, has_straggler;
	size_t points;
};

struct receiving {
	struct push_taken taken;
	struct node *nodes;
	uint32_t *order;
	size_t count, node_room, order_room;
	int err;          /* -ENOMEM: the request is given up */
	size_t resource;  /* number of the resource that the two below are of */
	const char *why;  /* its points are refused */
	uint32_t current; /* its node */
};

static int compare(const struct push_who *a, const struct push_who *b)
{
	int r = strcmp(a->cluster, b->cluster);

	r = r ?: strcmp(a->node, b->node);
	return r ? r : (a->boot > b->boot) - (a->boot < b->boot);
}

static int node_add(struct receiving *x, const struct push_who *who, size_t at)
{
	struct node *n;
	int r = ARRAY_RESERVE(x->nodes, x->node_room, x->count + 1, NODES_MAX);

	r = r ?: ARRAY_RESERVE(x->order, x->order_room, x->count + 1, NODES_MAX);
	if (r < 0)
		return r;
	memmove(x->order + at + 1, x->order + at, (x->count - at) * sizeof(*x->order));
	x->order[at] = (uint32_t)x->count;
	n = &x->nodes[x->count++];
	*n = (struct node){
		.health = {.who = *who, .throughput = 1, .compute = 1, .memory = 1, .cpu = 1}};
	for (size_t i = 0; i < PUSH_SIGNAL_COUNT; i++)
		n->health.signals[i] = -1;
	return 0;
}

/* A resource begins: whose it is. */
static void resource_begin(struct receiving *x, const struct otlp_point *p)
{
	struct push_who who;
	size_t at;
	int r = 0;

	x->resource = p->resource_number;
	x->why = push_who_get(p->resource, &who);
	if (x->why)
		return;
	at = LOWER_BOUND(i, x->count, compare(&x->nodes[x->order[i]].health.who, &who) < 0);
	if (at == x->count || compare(&x->nodes[x->order[at]].health.who, &who) != 0)
		r = node_add(x, &who, at);
	if (r == -ENOBUFS)
		x->why = "the request has too many nodes";
	else if (r < 0)
		x->err = r;
	else
		x->current = x->order[at];
}

static bool number_of(const struct otlp_point *p, double *ret)
{
	if (p->value.kind == OTLP_INT)
		*ret = (double)p->value.i;
	else if (p->value.kind == OTLP_DOUBLE)
		*ret = p->value.d;
	else
		return false;
	return true;
}

/* A metric that is ours. NULL: taken; else what is wrong with the point. */
struct metric_row {
	const char *name;
	const char *(*take)(
		struct node *n, const struct metric_row *row, const struct otlp_point *p, double v);
	size_t offset; /* of take_number() */
};

static const char *take_number(
	struct node *n, const struct metric_row *row, const struct otlp_point *p, double v)
{
	memcpy((char *)&n->health + row->offset, &v, sizeof(v));
	return NULL;
}

static const char *take_score(
	struct node *n, const struct metric_row *row, const struct otlp_point *p, double v)
{
	struct push_health *h = &n->health;
	char state[PUSH_WORD_MAX];

	if (!push_word_get(p->attributes, PUSH_KEY_STATE, state, sizeof(state)) ||
		!push_state_parse(state, &h->state) || h->state == PUSH_STALE)
		return PUSH_KEY_STATE " is not a state that is pushed";
	if (!push_word_get(p->attributes, PUSH_KEY_COHORT, h->cohort, sizeof(h->cohort)))
		return PUSH_KEY_COHORT " is too long or not plain text";
	if (!push_word_get(p->attributes, PUSH_KEY_WORKLOAD, h->workload, sizeof(h->workload)))
		return PUSH_KEY_WORKLOAD " is too long or not plain text";
	h->score = v;
	n->has_score = true;
	return NULL;
}

static const char *take_degraded(
	struct node *n, const struct metric_row *row, const struct otlp_point *p, double v)
{
	n->health.degraded = v > 0;
	return NULL;
}

static const char *take_info(
	struct node *n, const struct metric_row *row, const struct otlp_point *p, double v)
{
	struct push_health *h = &n->health;
	int64_t count = push_int_get(p->attributes, PUSH_KEY_GPUS, 0);

	if (!push_word_get(p->attributes, PUSH_KEY_MODEL, h->gpu_model, sizeof(h->gpu_model)))
		return PUSH_KEY_MODEL " is too long or not plain text";
	if (count < 0 || count > INT32_MAX)
		return PUSH_KEY_GPUS " is out of range";
	h->gpu_count = (uint32_t)count;
	return NULL;
}

static const char *take_world(
	struct node *n, const struct metric_row *row, const struct otlp_point *p, double v)
{
	if (!(v >= 0 && v <= INT32_MAX))
		return PUSH_METRIC_WORLD " is out of range";
	n->health.who.world_size = n->health.who.world_size ?: (uint32_t)v;
	return NULL;
}

static const char *take_straggler(
	struct node *n, const struct metric_row *row, const struct otlp_point *p, double v)
{
	struct push_straggler *s = &n->straggler;

	if (!push_word_get(p->attributes, PUSH_KEY_EVENT, s->event, sizeof(s->event)) ||
		!push_word_get(p->attributes, PUSH_KEY_MODE, s->mode, sizeof(s->mode)) ||
		!push_word_get(p->attributes, PUSH_KEY_DOMINANT, s->dominant, sizeof(s->dominant)))
		return "a word of " PUSH_METRIC_STRAGGLER " is too long or not plain text";
	s->threshold = push_double_get(p->attributes, PUSH_KEY_THRESHOLD, NAN);
	s->score = push_double_get(p->attributes, PUSH_KEY_SCORE, NAN);
	s->resolved = v == 0;
	n->has_straggler = true;
	return NULL;
}

/* Of ours, but told for people and other receivers. */
static const char *take_nothing(
	struct node *n, const struct metric_row *row, const struct otlp_point *p, double v)
{
	return NULL;
}

static const struct metric_row rows[] = {
	{PUSH_METRIC_SCORE, take_score, 0},
#define X(member, metric) {metric, take_number, offsetof(struct push_health, member)},
	PUSH_RATIOS(X)
#undef X
#define X(NAME, metric, ...)                                                                       \
	{metric, take_number, offsetof(struct push_health, signals[PUSH_SIGNAL_##NAME])},
		PUSH_SIGNALS(X)
#undef X
			{PUSH_METRIC_DEGRADED, take_degraded, 0},
	{PUSH_METRIC_INFO, take_info, 0},
	{PUSH_METRIC_WORLD, take_world, 0},
	{PUSH_METRIC_STRAGGLER, take_straggler, 0},
	{PUSH_METRIC_MODE, take_nothing, 0},
	{PUSH_METRIC_REACHABLE, take_nothing, 0},
	{PUSH_METRIC_LAUNCHES, take_nothing, 0},
	{PUSH_METRIC_STALL, take_nothing, 0},
	{PUSH_METRIC_COPIED, take_nothing, 0},
};

static const struct metric_row *row_find(const char *name, size_t len)
{
	return FIND(x, rows, ARRAY_SIZE(rows),
		strlen(x->name) == len && memcmp(x->name, name, len) == 0);
}

static int take_point(void *arg, const struct otlp_point *p)
{
	struct receiving *x = arg;
	const struct metric_row *row = row_find(p->name, p->name_len);
	const char *why;
	struct node *n;
	double v;

	if (!row) {
		x->taken.foreign++;
		return 0;
	}
	if (p->resource_number != x->resource)
		resource_begin(x, p);
	if (x->err)
		return x->err;
	if (x->why)
		return push_reject(&x->taken, 1, "%s", x->why);
	if (!number_of(p, &v))
		return push_reject(&x->taken, 1, "a point of %s has no number", row->name);
	n = &x->nodes[x->current];
	why = row->take(n, row, p, v);
	if (why)
		return push_reject(&x->taken, 1, "%s", why);
	n->health.sent_ns = MAX(n->health.sent_ns, push_time(p->time_ns));
	n->points++;
	return 0;
}

static void hand_over(struct receiving *x, const struct push_handler *h)
{
	for (size_t i = 0; i < x->count; i++) {
		struct node *n = &x->nodes[i];
		bool told = false;
		int r = 0;

		if (n->has_score && h->health) {
			r = h->health(h->arg, &n->health);
			told = true;
		}
		if (r == 0 && n->has_straggler && h->straggler) {
			r = h->straggler(h->arg, &n->health.who, &n->straggler);
			told = true;
		}
		if (r < 0)
			push_reject(&x->taken, n->points, "refused: %s", strerror(-r));
		else if (told)
			x->taken.taken += n->points;
		else
			x->taken.foreign += n->points;
	}
}

int push_receive_metrics(const void *data, size_t len, bool json, const struct push_handler *h,
	struct push_taken *ret, struct errinfo *reterr)
{
	struct receiving x = {0};
	const struct otlp_visitor visitor = {.arg = &x, .point = take_point};
	struct otlp_walk walk;
	int r = otlp_read(OTLP_METRICS, json, data, len, &visitor, &walk, reterr);

	if (r == 0 && x.err)
		r = errinfo_set(reterr, x.err, "out of memory while reading what agents pushed");
	if (r == 0) {
		hand_over(&x, h);
		*ret = x.taken;
	}
	free(x.nodes);
	free(x.order);
	return r;
}

/* Records of a request: batches of calls, and reports. Each is handed over as
 * it is read; a batch that comes again after a broken request is known by its number. */

struct log_receiving {
	const struct push_handler *handler;
	struct push_taken taken;
	int err;         /* -ENOMEM: the request is given up */
	size_t resource; /* number of the resource that the two below are of */
	const char *why; /* its records are refused */
	struct push_who who;
};

static int log_taken(struct log_receiving *x, int r)
{
	if (r < 0)
		return push_reject(&x->taken, 1, "refused: %s", strerror(-r));
	x->taken.taken++;
	return 0;
}

static int take_calls(struct log_receiving *x, const struct otlp_record *r)
{
	struct push_calls calls = {.who = x->who};
	int err = -EBADMSG;

	if (r->body.kind == OTLP_BYTES)
		err = push_calls_unpack(r->body.text, r->body.len, &calls);
	if (err == -ENOMEM)
		return x->err = err;
	if (err < 0)
		return push_reject(
			&x->taken, 1, "a batch of collectives cannot be read: %s", strerror(-err));
	err = x->handler->calls(x->handler->arg, &calls);
	free(calls.items);
	return log_taken(x, err);
}

static int take_report(struct log_receiving *x, const struct otlp_record *r)
{
	struct push_report report = {.who = x->who, .sent_ns = push_time(r->time_ns)};

	if (!push_report_get(r, &report))
		return push_reject(&x->taken, 1, "a report has a value out of range");
	return log_taken(x, x->handler->report(x->handler->arg, &report));
}

static int take_record(void *arg, const struct otlp_record *r)
{
	struct log_receiving *x = arg;
	bool calls = x->handler->calls &&
		     (push_record_is(r, PUSH_SCOPE_CALLS) || push_record_is(r, PUSH_SCOPE_OWN));
	bool report = x->handler->report && push_record_is(r, PUSH_SCOPE_REPORT);

	if (x->err)
		return x->err;
	if (!calls && !report) {
		x->taken.foreign++;
		return 0;
	}
	if (r->resource_number != x->resource) {
		x->resource = r->resource_number;
		x->why = push_who_get(r->resource, &x->who);
	}
	if (x->why)
		return push_reject(&x->taken, 1, "%s", x->why);
	return calls ? take_calls(x, r) : take_report(x, r);
}

int push_receive_logs(const void *data, size_t len, bool json, const struct push_handler *h,
	struct push_taken *ret, struct errinfo *reterr)
{
	struct log_receiving x = {.handler = h};
	const struct otlp_visitor visitor = {.arg = &x, .record = take_record};
	struct otlp_walk walk;
	int r = otlp_read(OTLP_LOGS, json, data, len, &visitor, &walk, reterr);

	if (r == 0 && x.err)
		r = errinfo_set(reterr, x.err, "out of memory while reading what agents pushed");
	if (r == 0)
		*ret = x.taken;
	return r;
}
