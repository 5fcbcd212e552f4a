/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - see rows.h. What a resource says is worked out once for all of its points; a point that says
 * something of itself is worked out on its own. */
#include "cluster/keep/rows.h"

#include <math.h>

#include "base/text.h"
#include "cluster/keep/rows_private.h"
#include "json/writer.h"
#include "push/push_wire.h"

#define AHEAD_NS (24 * 3600 * (int64_t)NS_PER_S)
#define KEY_MAX  256 /* bytes of an attribute's name in attrs; the rest is cut */

void rows_done(struct rows *r)
{
	buf_done(&r->batch.bytes);
	free(r->keys);
	idmap_done(&r->known);
}

/* Counts it; the first reason is kept. -EINVAL. */
static int rows_reject(struct rows *r, const char *why)
{
	r->rejected++;
	if (!r->why[0])
		snprintf(r->why, sizeof(r->why), "%s", why);
	return -EINVAL;
}

/* ---- attrs ---- */

static void put_key(struct json_writer *w, const struct otlp_attribute *a)
{
	char key[KEY_MAX];

	text_copy(key, sizeof(key), a->key, a->key_len);
	json_key(w, key);
}

static void put_attribute(struct json_writer *w, const struct otlp_attribute *a)
{
	const struct otlp_value *v = &a->value;

	if (v->kind == OTLP_NONE || v->kind == OTLP_BYTES)
		return;
	put_key(w, a);
	switch (v->kind) {
	case OTLP_TEXT: json_put_string_len(w, v->text, v->len); break;
	case OTLP_INT: json_put_int(w, v->i); break;
	case OTLP_BOOL: json_put_bool(w, v->i != 0); break;
	default: json_put_double(w, v->d);
	}
}

static bool has_key(const struct otlp_attributes *a, const struct otlp_attribute *other)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->item[i].key_len == other->key_len &&
			memcmp(a->item[i].key, other->key, other->key_len) == 0)
			return true;
	return false;
}

/* put_attributes - those without a column of their own, and that @but does not say too. */
static void put_attributes(
	struct json_writer *w, const struct otlp_attributes *a, const struct otlp_attributes *but)
{
	for (size_t i = 0; i < a->count; i++)
		if (!who_has(&a->item[i]) && !(but && has_key(but, &a->item[i])))
			put_attribute(w, &a->item[i]);
}

/* put_span - what a span has that other events have not. */
static void put_span(struct json_writer *w, const struct otlp_span *s)
{
	static const char *const kinds[] = {
		NULL, "internal", "server", "client", "producer", "consumer"};
	const struct {
		const char *key;
		const uint8_t *id;
		size_t size;
	} ids[] = {{"trace_id", s->trace, sizeof(s->trace)}, {"span_id", s->id, sizeof(s->id)},
		{"parent_span_id", s->parent, sizeof(s->parent)}};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		char hex[2 * OTLP_TRACE_ID + 1];
		bool told = false;

		for (size_t k = 0; k < ids[i].size; k++) {
			snprintf(hex + 2 * k, 3, "%02x", ids[i].id[k]);
			told = told || ids[i].id[k];
		}
		if (told)
			json_string_member(w, ids[i].key, hex);
	}
	if (s->kind > 0 && s->kind < (int)ARRAY_SIZE(kinds))
		json_string_member(w, "span_kind", kinds[s->kind]);
	if (s->status == 2)
		json_bool_member(w, "error", true);
}

static void put_attrs(struct rows_walk *x, const struct otlp_attributes *resource,
	const struct otlp_attributes *a, const struct otlp_span *span)
{
	struct buf *b = &x->json;
	struct json_writer w;

	if (!a->count && !x->resource_tells && !span)
		return;
	buf_clear(b);
	w = json_writer_to_buf(b);
	json_begin_object(&w);
	if (span)
		put_span(&w, span);
	put_attributes(&w, a, NULL);
	if (x->resource_tells)
		put_attributes(&w, resource, a);
	json_end_object(&w);
	json_finish(&w);
	if (b->err) {
		x->err = b->err == -ENOMEM ? -ENOMEM : x->err;
		return;
	}
	if (b->len > strlen("{}\n"))
		batch_text(&x->rows->batch, EVENTS_ATTRIBUTES, b->data, b->len - 1);
}

/* ---- events ---- */

/* What points, records and spans have in common. */
struct item {
	const struct otlp_attributes *resource, *attributes;
	size_t resource_number;
	const char *name, *kind, *unit;
	size_t name_len, unit_len;
	uint64_t time_ns;
	double real; /* NaN: none */
	const int64_t *integer;
	const struct otlp_value *body;
	const struct otlp_span *span;
	int severity;
};

/* who_of - whom the item is about; its attributes come before those of its resource. */
static struct who who_of(struct rows_walk *x, const struct item *i)
{
	struct who w;

	if (i->resource_number != x->resource) {
		x->resource = i->resource_number;
		x->who = (struct who){0};
		who_add(&x->who, i->resource);
		who_check(&x->who, x->q);
		x->resource_tells = false;
		for (size_t n = 0; n < i->resource->count; n++)
			x->resource_tells |= !who_has(&i->resource->item[n]);
	}
	w = x->who;
	who_add(&w, i->attributes);
	if (w.told[ROLE_CLUSTER] != x->who.told[ROLE_CLUSTER] ||
		w.told[ROLE_NODE] != x->who.told[ROLE_NODE])
		who_check(&w, x->q);
	return w;
}

static void put_role(struct batch *b, const struct who *w, enum role role, int column)
{
	int64_t n;

	if (role == ROLE_RANK || role == ROLE_NRANKS) {
		if (who_int(w, role, &n))
			batch_int(b, column, n);
	} else if (w->told[role]) {
		batch_text(b, column, w->told[role]->text, w->told[role]->len);
	}
}

static void put_body(struct batch *b, const struct otlp_value *v)
{
	char number[40];

	switch (v->kind) {
	case OTLP_TEXT: batch_text(b, EVENTS_BODY, v->text, v->len); return;
	case OTLP_INT:
	case OTLP_BOOL: snprintf(number, sizeof(number), "%lld", (long long)v->i); break;
	case OTLP_DOUBLE: snprintf(number, sizeof(number), "%.17g", v->d); break;
	default: return;
	}
	batch_text_of(b, EVENTS_BODY, number);
}

STATIC_ASSERT(EVENTS_RECEIVED == 1 && EVENTS_CLUSTER == 2 && EVENTS_NODE == 3 && CHAINS_NODE == 3 &&
	      COLLECTIVES_NODE == 3 && INCIDENTS_NODE == 3 && STEPS_NODE == 3);

void rows_begin(struct rows_walk *x, enum store_table t, int64_t ts_ns, const struct who *who)
{
	struct batch *b = &x->rows->batch;

	batch_row(b, t);
	batch_int(b, EVENTS_TS, ts_ns);
	batch_int(b, EVENTS_RECEIVED, x->now_ns);
	batch_text(b, EVENTS_CLUSTER, who->cluster, who->cluster_len);
	batch_text(b, EVENTS_NODE, who->node, who->node_len);
}

static void put_event(struct rows_walk *x, const struct who *w, const struct item *i, int64_t ts)
{
	struct batch *b = &x->rows->batch;

	rows_begin(x, TABLE_EVENTS, ts, w);
	put_role(b, w, ROLE_RANK, EVENTS_RANK);
	put_role(b, w, ROLE_NRANKS, EVENTS_NRANKS);
	batch_text(b, EVENTS_NAME, i->name, i->name_len);
	batch_text_of(b, EVENTS_KIND, i->kind);
	batch_real(b, EVENTS_REAL, i->real);
	if (i->integer)
		batch_int(b, EVENTS_INT, *i->integer);
	batch_text(b, EVENTS_UNIT, i->unit, i->unit_len);
	if (i->body)
		put_body(b, i->body);
	put_attrs(x, i->resource, i->attributes, i->span);
	put_role(b, w, ROLE_EVENT, EVENTS_EVENT);
	put_role(b, w, ROLE_CHAIN, EVENTS_CHAIN);
	if (i->severity > 0)
		batch_int(b, EVENTS_SEVERITY, i->severity);
}

/* take_item - 0 and *ret_who; a negative errno: it is rejected. */
static int take_item(struct rows_walk *x, const struct item *i, struct who *ret_who)
{
	int64_t ts = i->time_ns ? push_time(i->time_ns) : x->now_ns;

	if (x->err)
		return x->err;
	*ret_who = who_of(x, i);
	if (ret_who->why) {
		x->rows->refused += ret_who->refused;
		return rows_reject(x->rows, ret_who->why);
	}
	if (ts - x->now_ns > AHEAD_NS)
		return rows_reject(x->rows, "its time is more than a day ahead");
	x->rows->untimed = x->rows->untimed || !i->time_ns;
	put_event(x, ret_who, i, ts);
	return 0;
}

static const char *kind_of(const struct otlp_point *p)
{
	if (p->kind == OTLP_HISTOGRAM || p->kind == OTLP_OTHER)
		return "histogram";
	if (p->kind == OTLP_SUM && p->is_delta)
		return "delta";
	return p->kind == OTLP_SUM && p->is_monotonic ? "counter" : "gauge";
}

static int take_point(void *arg, const struct otlp_point *p)
{
	struct rows_walk *x = arg;
	bool many = p->kind == OTLP_HISTOGRAM || p->kind == OTLP_OTHER;
	int64_t integer = many ? push_time(p->count) : p->value.i;
	struct item i = {.resource = p->resource,
		.resource_number = p->resource_number,
		.attributes = p->attributes,
		.name = p->name,
		.name_len = p->name_len,
		.kind = kind_of(p),
		.unit = p->unit,
		.unit_len = p->unit_len,
		.time_ns = p->time_ns,
		.integer = many || p->value.kind == OTLP_INT ? &integer : NULL};
	struct who who;

	if (!p->name_len)
		return rows_reject(x->rows, "its metric has no name");
	i.real = p->value.kind == OTLP_INT ? (double)p->value.i : p->value.d;
	if (p->value.kind == OTLP_NONE) {
		if (!many)
			return rows_reject(x->rows, "it has no value");
		i.real = NAN;
	} else if (!isfinite(i.real)) {
		return rows_reject(x->rows, "its value is not a finite number");
	}
	return take_item(x, &i, &who);
}

static int take_record(void *arg, const struct otlp_record *r)
{
	struct rows_walk *x = arg;
	const struct otlp_value *event = otlp_attribute_get(r->attributes, "event.name");
	struct item i = {.resource = r->resource,
		.resource_number = r->resource_number,
		.attributes = r->attributes,
		.name = "log",
		.name_len = strlen("log"),
		.kind = "log",
		.time_ns = r->time_ns ? r->time_ns : r->observed_ns,
		.real = NAN,
		.body = &r->body,
		.severity = r->severity};
	struct who who;
	int err;

	if (r->event_len) {
		i.name = r->event;
		i.name_len = r->event_len;
	} else if (event && event->kind == OTLP_TEXT && event->len) {
		i.name = event->text;
		i.name_len = event->len;
	}
	if (push_record_is(r, PUSH_SCOPE_CHAIN) || push_record_is(r, PUSH_SCOPE_CALLS) ||
		push_record_is(r, PUSH_SCOPE_OWN) || push_record_is(r, PUSH_SCOPE_REPORT)) {
		who = who_of(x, &i);
		if (!who.why && i.time_ns && !rows_record_is_new(x, &who, r))
			return x->err;
	}
	err = take_item(x, &i, &who);
	if (err < 0)
		return err;
	x->pushed = x->pushed || push_record_is(r, PUSH_SCOPE_CALLS) ||
		    push_record_is(r, PUSH_SCOPE_OWN) || push_record_is(r, PUSH_SCOPE_REPORT);
	if (push_record_is(r, PUSH_SCOPE_CHAIN))
		rows_chain(x, &who, r);
	return 0;
}

static int take_span(void *arg, const struct otlp_span *s)
{
	struct rows_walk *x = arg;
	struct item i = {.resource = s->resource,
		.resource_number = s->resource_number,
		.attributes = s->attributes,
		.name = s->name_len ? s->name : "span",
		.name_len = s->name_len ? s->name_len : strlen("span"),
		.kind = "span",
		.unit = "s",
		.unit_len = 1,
		.time_ns = s->start_ns,
		.real = s->end_ns >= s->start_ns
				? (double)(s->end_ns - s->start_ns) / (double)NS_PER_S
				: NAN,
		.span = s};
	struct who who;

	return take_item(x, &i, &who);
}

/* ---- requests ---- */

int rows_read(const struct keeper_request *q, int64_t now_ns, const struct seen *seen,
	struct rows *ret, struct errinfo *reterr)
{
	struct rows_walk x = {.q = q,
		.now_ns = now_ns,
		.seen = seen,
		.rows = ret,
		.json = BUF_INIT(BATCH_TEXT_MAX)};
	const struct otlp_visitor v = {
		.arg = &x, .point = take_point, .record = take_record, .span = take_span};
	struct otlp_walk walked;
	int r = otlp_read(q->signal, q->json, q->data, q->len, &v, &walked, reterr);

	buf_done(&x.json);
	if (r == 0 && x.pushed)
		r = rows_push(&x, reterr);
	if (r < 0)
		return r;
	if (x.err == -ENOMEM || ret->batch.bytes.err == -ENOMEM)
		return errinfo_set(reterr, -ENOMEM, "out of memory for this request");
	if (ret->batch.bytes.err)
		return errinfo_set(reterr, -E2BIG,
			"the request expands to more than %u MiB of rows: send it in parts",
			ROWS_BYTES_MAX >> 20);
	ret->taken = walked.taken - MIN(walked.taken, x.unread);
	return 0;
}
