/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read_protobuf.c - requests as protobuf. Fields come in any order, so what describes a level is
 * read before what is inside it, by walking the level twice: the second walk steps over the content
 * by its length. All texts stay where they are in the request. */

#include "otlp/otlp_fields.h"
#include "otlp/otlp_read_private.h"
#include "protobuf/pb.h"

static void fail(struct pb_reader *r, int err)
{
	if (!r->err)
		r->err = err;
	r->at = r->end;
}

static struct otlp_value read_any(struct pb_reader *outer, const struct pb_field *value)
{
	struct pb_reader r = pb_enter(outer, value);
	struct otlp_value v = {0};
	struct pb_field f;
	const char *text;
	size_t len = 0;

	while (pb_next(&r, &f))
		switch (f.number) {
		case ANY_STRING:
			text = pb_string(&r, &f, &len);
			v = text ? otlp_text_value(text, len) : (struct otlp_value){0};
			break;
		case ANY_BOOL:
			v = (struct otlp_value){.kind = OTLP_BOOL, .i = pb_int(&r, &f) != 0};
			break;
		case ANY_INT: v = (struct otlp_value){.kind = OTLP_INT, .i = pb_int(&r, &f)}; break;
		case ANY_DOUBLE:
			v = (struct otlp_value){.kind = OTLP_DOUBLE, .d = pb_double(&r, &f)};
			break;
		case ANY_BYTES:
			v = (struct otlp_value){
				.kind = OTLP_BYTES, .text = (const char *)f.data, .len = f.len};
			if (f.type != PB_BYTES)
				fail(&r, -EBADMSG);
			break;
		}
	pb_leave(outer, &r);
	return v;
}

static void read_attribute(struct otlp_reading *s, struct otlp_attributes *a,
	struct pb_reader *outer, const struct pb_field *pair)
{
	struct otlp_attribute *item = otlp_reading_attribute(s, a);
	struct pb_reader r;
	struct pb_field f;

	if (!item) {
		fail(outer, -E2BIG);
		return;
	}
	r = pb_enter(outer, pair);
	while (pb_next(&r, &f)) {
		if (f.number == KEY_VALUE_KEY)
			item->key = pb_string(&r, &f, &item->key_len);
		else if (f.number == KEY_VALUE_VALUE)
			item->value = read_any(&r, &f);
	}
	pb_leave(outer, &r);
}

static void read_resource(
	struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *resource)
{
	struct pb_reader r = pb_enter(outer, resource);
	struct pb_field f;

	while (pb_next(&r, &f))
		if (f.number == RESOURCE_ATTRIBUTES)
			read_attribute(s, &s->resource, &r, &f);
	pb_leave(outer, &r);
}

static void read_scope(
	struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *scope)
{
	struct pb_reader r = pb_enter(outer, scope);
	struct pb_field f;
	const char *name;
	size_t len = 0;

	while (pb_next(&r, &f)) {
		if (f.number != SCOPE_NAME)
			continue;
		name = pb_string(&r, &f, &len);
		if (name)
			otlp_reading_scope(s, name, len);
	}
	pb_leave(outer, &r);
}

/* Where a kind of point has its attributes. */
static const struct {
	enum otlp_point_kind kind;
	uint32_t attributes;
	bool is_number;
} data_kinds[] = {
	[METRIC_DATA_GAUGE] = {OTLP_GAUGE, NUMBER_ATTRIBUTES, true},
	[METRIC_DATA_SUM] = {OTLP_SUM, NUMBER_ATTRIBUTES, true},
	[METRIC_DATA_HISTOGRAM] = {OTLP_HISTOGRAM, HISTOGRAM_ATTRIBUTES, false},
	[METRIC_DATA_EXPONENTIAL] = {OTLP_OTHER, EXPONENTIAL_ATTRIBUTES, false},
	[METRIC_DATA_SUMMARY] = {OTLP_OTHER, SUMMARY_ATTRIBUTES, false},
};

static bool is_data(uint32_t field)
{
	return field < ARRAY_SIZE(data_kinds) && data_kinds[field].attributes;
}

static void read_point(struct otlp_reading *s, struct pb_reader *outer,
	const struct pb_field *point, uint32_t data)
{
	struct pb_reader r = pb_enter(outer, point);
	bool number = data_kinds[data].is_number;
	struct otlp_point *p = &s->point;
	struct pb_field f;

	otlp_reading_point(s);
	while (pb_next(&r, &f)) {
		if (f.number == data_kinds[data].attributes)
			read_attribute(s, &s->attributes, &r, &f);
		else if (f.number == POINT_START)
			p->start_ns = pb_fixed64(&r, &f);
		else if (f.number == POINT_TIME)
			p->time_ns = pb_fixed64(&r, &f);
		else if (number && f.number == NUMBER_INT)
			p->value = (struct otlp_value){
				.kind = OTLP_INT, .i = (int64_t)pb_fixed64(&r, &f)};
		else if (f.number == (number ? (uint32_t)NUMBER_DOUBLE : (uint32_t)HISTOGRAM_SUM))
			p->value = (struct otlp_value){.kind = OTLP_DOUBLE, .d = pb_double(&r, &f)};
		else if (!number && f.number == HISTOGRAM_COUNT)
			p->count = pb_fixed64(&r, &f);
	}
	if (!r.err)
		r.err = otlp_reading_visit(s);
	pb_leave(outer, &r);
}

static void read_data(struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *data)
{
	struct pb_reader r = pb_enter(outer, data), again = r;
	struct pb_field f;

	s->point.kind = data_kinds[data->number].kind;
	s->point.is_monotonic = s->point.is_delta = false;
	if (s->point.kind == OTLP_SUM || s->point.kind == OTLP_HISTOGRAM)
		while (pb_next(&again, &f)) {
			if (f.number == DATA_TEMPORALITY)
				s->point.is_delta = pb_int(&again, &f) == TEMPORALITY_DELTA;
			else if (f.number == DATA_MONOTONIC && s->point.kind == OTLP_SUM)
				s->point.is_monotonic = pb_int(&again, &f) != 0;
		}
	pb_leave(&r, &again);
	while (pb_next(&r, &f))
		if (f.number == DATA_POINTS)
			read_point(s, &r, &f, data->number);
	pb_leave(outer, &r);
}

static void read_metric(
	struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *metric)
{
	struct pb_reader r = pb_enter(outer, metric), again = r;
	struct otlp_point *p = &s->point;
	struct pb_field f;

	p->name = p->unit = "";
	p->name_len = p->unit_len = 0;
	while (pb_next(&again, &f)) {
		if (f.number == METRIC_NAME)
			p->name = pb_string(&again, &f, &p->name_len);
		else if (f.number == METRIC_UNIT)
			p->unit = pb_string(&again, &f, &p->unit_len);
	}
	pb_leave(&r, &again);
	while (pb_next(&r, &f))
		if (is_data(f.number))
			read_data(s, &r, &f);
	pb_leave(outer, &r);
}

static void read_record(
	struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *record)
{
	struct pb_reader r = pb_enter(outer, record);
	struct otlp_record *l = &s->record;
	struct pb_field f;

	otlp_reading_record(s);
	while (pb_next(&r, &f))
		switch (f.number) {
		case RECORD_TIME: l->time_ns = pb_fixed64(&r, &f); break;
		case RECORD_OBSERVED: l->observed_ns = pb_fixed64(&r, &f); break;
		case RECORD_SEVERITY: l->severity = (int)pb_int(&r, &f); break;
		case RECORD_BODY: l->body = read_any(&r, &f); break;
		case RECORD_ATTRIBUTES: read_attribute(s, &s->attributes, &r, &f); break;
		case RECORD_EVENT: l->event = pb_string(&r, &f, &l->event_len); break;
		}
	if (!r.err)
		r.err = otlp_reading_visit(s);
	pb_leave(outer, &r);
}

/* read_id - of @size bytes, or nothing. */
static void read_id(struct pb_reader *r, const struct pb_field *f, uint8_t *ret, size_t size)
{
	if (f->type != PB_BYTES)
		fail(r, -EBADMSG);
	else if (f->len == size)
		memcpy(ret, f->data, size);
}

static int read_status(struct pb_reader *outer, const struct pb_field *status)
{
	struct pb_reader r = pb_enter(outer, status);
	struct pb_field f;
	int code = 0;

	while (pb_next(&r, &f))
		if (f.number == STATUS_CODE)
			code = (int)pb_int(&r, &f);
	pb_leave(outer, &r);
	return code;
}

static void read_span(struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *span)
{
	struct pb_reader r = pb_enter(outer, span);
	struct otlp_span *p = &s->span;
	struct pb_field f;

	otlp_reading_span(s);
	while (pb_next(&r, &f))
		switch (f.number) {
		case SPAN_TRACE: read_id(&r, &f, p->trace, sizeof(p->trace)); break;
		case SPAN_ID: read_id(&r, &f, p->id, sizeof(p->id)); break;
		case SPAN_PARENT: read_id(&r, &f, p->parent, sizeof(p->parent)); break;
		case SPAN_NAME: p->name = pb_string(&r, &f, &p->name_len); break;
		case SPAN_KIND: p->kind = (int)pb_int(&r, &f); break;
		case SPAN_START: p->start_ns = pb_fixed64(&r, &f); break;
		case SPAN_END: p->end_ns = pb_fixed64(&r, &f); break;
		case SPAN_ATTRIBUTES: read_attribute(s, &s->attributes, &r, &f); break;
		case SPAN_STATUS: p->status = read_status(&r, &f); break;
		}
	if (!r.err)
		r.err = otlp_reading_visit(s);
	pb_leave(outer, &r);
}

static void read_scope_item(
	struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *item)
{
	struct pb_reader r = pb_enter(outer, item), again = r;
	struct pb_field f;

	otlp_reading_scope(s, "", 0);
	while (pb_next(&again, &f))
		if (f.number == SCOPE_ITEM_SCOPE)
			read_scope(s, &again, &f);
	pb_leave(&r, &again);
	while (pb_next(&r, &f))
		if (f.number == SCOPE_ITEM_ITEMS) {
			switch (s->signal) {
			case OTLP_METRICS: read_metric(s, &r, &f); break;
			case OTLP_LOGS: read_record(s, &r, &f); break;
			default: read_span(s, &r, &f);
			}
		}
	pb_leave(outer, &r);
}

static void read_resource_item(
	struct otlp_reading *s, struct pb_reader *outer, const struct pb_field *item)
{
	struct pb_reader r = pb_enter(outer, item), again = r;
	struct pb_field f;

	otlp_reading_resource(s);
	while (pb_next(&again, &f))
		if (f.number == RESOURCE_ITEM_RESOURCE)
			read_resource(s, &again, &f);
	pb_leave(&r, &again);
	while (pb_next(&r, &f))
		if (f.number == RESOURCE_ITEM_SCOPES)
			read_scope_item(s, &r, &f);
	pb_leave(outer, &r);
}

int otlp_reading_protobuf(struct otlp_reading *s, const void *data, size_t len)
{
	struct pb_reader r = pb_reader_of(data, len);
	struct pb_field f;

	while (pb_next(&r, &f))
		if (f.number == REQUEST_RESOURCES)
			read_resource_item(s, &r, &f);
	return r.err;
}
