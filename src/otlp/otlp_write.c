/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_write.c - see otlp_write.h. Each function writes one message, first as JSON, else as protobuf. */
#include "otlp/otlp_write.h"

#include <math.h>

#include "otlp/otlp_fields.h"
#include "protobuf/pb.h"

#define EXACT_MAX (INT64_C(1) << 53)

enum { MARK_RESOURCE, MARK_SCOPE, MARK_METRIC, MARK_DATA };

static void put_attribute(struct otlp_attributes *a, const char *key, struct otlp_value v)
{
	if (a->count < OTLP_ATTRIBUTES_MAX)
		a->item[a->count++] =
			(struct otlp_attribute){.key = key, .key_len = strlen(key), .value = v};
}

void otlp_put_text(struct otlp_attributes *a, const char *key, const char *text)
{
	put_attribute(
		a, key, (struct otlp_value){.kind = OTLP_TEXT, .text = text, .len = strlen(text)});
}

void otlp_put_int(struct otlp_attributes *a, const char *key, int64_t v)
{
	put_attribute(a, key, (struct otlp_value){.kind = OTLP_INT, .i = v});
}

void otlp_put_double(struct otlp_attributes *a, const char *key, double v)
{
	put_attribute(a, key, (struct otlp_value){.kind = OTLP_DOUBLE, .d = v});
}

static void time_member(struct json_writer *j, const char *key, uint64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, ns);
	json_string_member(j, key, text);
}

static void int_member(struct json_writer *j, const char *key, int64_t v)
{
	char text[24];

	if (v >= -EXACT_MAX && v <= EXACT_MAX) {
		json_int_member(j, key, v);
		return;
	}
	snprintf(text, sizeof(text), "%" PRId64, v);
	json_string_member(j, key, text);
}

static void double_member(struct json_writer *j, const char *key, double v)
{
	if (isfinite(v))
		json_double_member(j, key, v);
	else
		json_string_member(j, key, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

static void json_value(struct json_writer *j, const char *key, const struct otlp_value *v)
{
	json_begin_object_member(j, key);
	switch (v->kind) {
	case OTLP_TEXT:
		json_key(j, "stringValue");
		json_put_string_len(j, v->text, v->len);
		break;
	case OTLP_INT: int_member(j, "intValue", v->i); break;
	case OTLP_DOUBLE: double_member(j, "doubleValue", v->d); break;
	case OTLP_BOOL: json_bool_member(j, "boolValue", v->i != 0); break;
	case OTLP_BYTES:
	case OTLP_NONE: break;
	}
	json_end_object(j);
}

static void json_attributes(struct json_writer *j, const struct otlp_attributes *a)
{
	json_begin_array_member(j, "attributes");
	for (size_t i = 0; i < a->count; i++) {
		json_begin_object(j);
		json_key(j, "key");
		json_put_string_len(j, a->item[i].key, a->item[i].key_len);
		json_value(j, "value", &a->item[i].value);
		json_end_object(j);
	}
	json_end_array(j);
}

static void pb_value(struct buf *b, uint32_t field, const struct otlp_value *v)
{
	size_t mark = pb_put_begin(b, field);

	switch (v->kind) {
	case OTLP_TEXT: pb_put_string_len(b, ANY_STRING, v->text, v->len); break;
	case OTLP_INT: pb_put_varint(b, ANY_INT, (uint64_t)v->i); break;
	case OTLP_DOUBLE: pb_put_double(b, ANY_DOUBLE, v->d); break;
	case OTLP_BOOL: pb_put_varint(b, ANY_BOOL, v->i != 0); break;
	case OTLP_BYTES: pb_put_bytes(b, ANY_BYTES, v->text, v->len); break;
	case OTLP_NONE: break;
	}
	pb_put_end(b, mark);
}

static void pb_attributes(struct buf *b, uint32_t field, const struct otlp_attributes *a)
{
	for (size_t i = 0; i < a->count; i++) {
		size_t mark = pb_put_begin(b, field);

		pb_put_string_len(b, KEY_VALUE_KEY, a->item[i].key, a->item[i].key_len);
		pb_value(b, KEY_VALUE_VALUE, &a->item[i].value);
		pb_put_end(b, mark);
	}
}

static void json_begin_request(struct otlp_writer *w, const struct otlp_attributes *resource,
	const char *scope, const char *version)
{
	struct json_writer *j = &w->json;

	*j = json_writer_to_buf(w->b);
	json_begin_object(j);
	json_begin_array_member(j, w->logs ? "resourceLogs" : "resourceMetrics");
	json_begin_object(j);
	json_begin_object_member(j, "resource");
	json_attributes(j, resource);
	json_end_object(j);
	json_begin_array_member(j, w->logs ? "scopeLogs" : "scopeMetrics");
	json_begin_object(j);
	json_begin_object_member(j, "scope");
	json_string_member(j, "name", scope);
	json_string_member(j, "version", version);
	json_end_object(j);
	json_begin_array_member(j, w->logs ? "logRecords" : "metrics");
}

void otlp_write_begin(struct otlp_writer *w, struct buf *b, bool json, bool logs,
	const struct otlp_attributes *resource, const char *scope, const char *version)
{
	size_t mark;

	*w = (struct otlp_writer){.b = b, .is_json = json, .logs = logs};
	if (json) {
		json_begin_request(w, resource, scope, version);
		return;
	}
	w->marks[MARK_RESOURCE] = pb_put_begin(b, REQUEST_RESOURCES);
	mark = pb_put_begin(b, RESOURCE_ITEM_RESOURCE);
	pb_attributes(b, RESOURCE_ATTRIBUTES, resource);
	pb_put_end(b, mark);
	w->marks[MARK_SCOPE] = pb_put_begin(b, RESOURCE_ITEM_SCOPES);
	mark = pb_put_begin(b, SCOPE_ITEM_SCOPE);
	pb_put_string(b, SCOPE_NAME, scope);
	pb_put_string(b, SCOPE_VERSION, version);
	pb_put_end(b, mark);
}

void otlp_write_end(struct otlp_writer *w)
{
	struct json_writer *j = &w->json;

	if (!w->is_json) {
		pb_put_end(w->b, w->marks[MARK_SCOPE]);
		pb_put_end(w->b, w->marks[MARK_RESOURCE]);
		return;
	}
	json_end_array(j);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
	json_finish(j);
}

void otlp_write_metric(
	struct otlp_writer *w, const char *name, const char *unit, enum otlp_point_kind kind)
{
	bool sum = kind == OTLP_SUM;

	w->kind = kind;
	if (w->is_json) {
		json_begin_object(&w->json);
		json_string_member(&w->json, "name", name);
		json_string_member(&w->json, "unit", unit);
		json_begin_object_member(&w->json, sum ? "sum" : "gauge");
		json_begin_array_member(&w->json, "dataPoints");
		return;
	}
	w->marks[MARK_METRIC] = pb_put_begin(w->b, SCOPE_ITEM_ITEMS);
	pb_put_string(w->b, METRIC_NAME, name);
	pb_put_string(w->b, METRIC_UNIT, unit);
	w->marks[MARK_DATA] = pb_put_begin(w->b, sum ? METRIC_DATA_SUM : METRIC_DATA_GAUGE);
}

static void json_point(struct json_writer *j, const struct otlp_point *p)
{
	json_begin_object(j);
	if (p->attributes && p->attributes->count)
		json_attributes(j, p->attributes);
	if (p->start_ns)
		time_member(j, "startTimeUnixNano", p->start_ns);
	time_member(j, "timeUnixNano", p->time_ns);
	if (p->value.kind == OTLP_INT)
		int_member(j, "asInt", p->value.i);
	else
		double_member(j, "asDouble", p->value.d);
	json_end_object(j);
}

void otlp_write_point(struct otlp_writer *w, const struct otlp_point *p)
{
	size_t mark;

	if (w->is_json) {
		json_point(&w->json, p);
		return;
	}
	mark = pb_put_begin(w->b, DATA_POINTS);
	if (p->start_ns)
		pb_put_fixed64(w->b, POINT_START, p->start_ns);
	pb_put_fixed64(w->b, POINT_TIME, p->time_ns);
	if (p->value.kind == OTLP_INT)
		pb_put_fixed64(w->b, NUMBER_INT, (uint64_t)p->value.i);
	else
		pb_put_double(w->b, NUMBER_DOUBLE, p->value.d);
	if (p->attributes)
		pb_attributes(w->b, NUMBER_ATTRIBUTES, p->attributes);
	pb_put_end(w->b, mark);
}

void otlp_write_metric_end(struct otlp_writer *w)
{
	bool sum = w->kind == OTLP_SUM;

	if (w->is_json) {
		json_end_array(&w->json);
		if (sum) {
			json_int_member(&w->json, "aggregationTemporality", TEMPORALITY_CUMULATIVE);
			json_bool_member(&w->json, "isMonotonic", true);
		}
		json_end_object(&w->json);
		json_end_object(&w->json);
		return;
	}
	if (sum) {
		pb_put_varint(w->b, DATA_TEMPORALITY, TEMPORALITY_CUMULATIVE);
		pb_put_varint(w->b, DATA_MONOTONIC, 1);
	}
	pb_put_end(w->b, w->marks[MARK_DATA]);
	pb_put_end(w->b, w->marks[MARK_METRIC]);
}

void otlp_write_record(struct otlp_writer *w, const struct otlp_record *r)
{
	size_t mark;

	if (w->is_json) {
		json_begin_object(&w->json);
		time_member(&w->json, "timeUnixNano", r->time_ns);
		json_int_member(&w->json, "severityNumber", r->severity);
		if (r->body.kind != OTLP_NONE)
			json_value(&w->json, "body", &r->body);
		json_attributes(&w->json, r->attributes);
		json_key(&w->json, "eventName");
		json_put_string_len(&w->json, r->event, r->event_len);
		json_end_object(&w->json);
		return;
	}
	mark = pb_put_begin(w->b, SCOPE_ITEM_ITEMS);
	pb_put_fixed64(w->b, RECORD_TIME, r->time_ns);
	pb_put_varint(w->b, RECORD_SEVERITY, (uint64_t)r->severity);
	if (r->body.kind != OTLP_NONE)
		pb_value(w->b, RECORD_BODY, &r->body);
	pb_attributes(w->b, RECORD_ATTRIBUTES, r->attributes);
	pb_put_string_len(w->b, RECORD_EVENT, r->event, r->event_len);
	pb_put_end(w->b, mark);
}

static void pb_span_event(struct buf *b, const struct otlp_span_event *e)
{
	size_t mark = pb_put_begin(b, SPAN_EVENTS);

	pb_put_fixed64(b, SPAN_EVENT_TIME, e->time_ns);
	pb_put_string(b, SPAN_EVENT_NAME, e->name);
	pb_attributes(b, SPAN_EVENT_ATTRIBUTES, e->attributes);
	pb_put_end(b, mark);
}

void otlp_write_span(
	struct otlp_writer *w, const struct otlp_span *s, const struct otlp_span_event *event)
{
	size_t mark = pb_put_begin(w->b, SCOPE_ITEM_ITEMS);

	pb_put_bytes(w->b, SPAN_TRACE, s->trace, sizeof(s->trace));
	pb_put_bytes(w->b, SPAN_ID, s->id, sizeof(s->id));
	pb_put_string_len(w->b, SPAN_NAME, s->name, s->name_len);
	pb_put_varint(w->b, SPAN_KIND, (uint64_t)s->kind);
	pb_put_fixed64(w->b, SPAN_START, s->start_ns);
	pb_put_fixed64(w->b, SPAN_END, s->end_ns);
	pb_attributes(w->b, SPAN_ATTRIBUTES, s->attributes);
	if (event)
		pb_span_event(w->b, event);
	pb_put_end(w->b, mark);
}
