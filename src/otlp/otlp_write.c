/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_write.c - see otlp_write.h. A field is written once for both encodings: by its
 * number as protobuf, under its key as JSON. */
#include "otlp/otlp_write.h"

#include <math.h>

#include "otlp/otlp_fields.h"
#include "protobuf/pb.h"

#define EXACT_MAX (INT64_C(1) << 53)

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

/* ---- fields ---- */

/* A message; @key is NULL for an element of a list. */
static void begin(struct otlp_writer *w, uint32_t field, const char *key)
{
	if (!w->is_json) {
		w->marks[w->depth++] = pb_put_begin(w->b, field);
		return;
	}
	if (key)
		json_key(&w->json, key);
	json_begin_object(&w->json);
}

static void end(struct otlp_writer *w)
{
	if (w->is_json)
		json_end_object(&w->json);
	else
		pb_put_end(w->b, w->marks[--w->depth]);
}

/* A repeated field: as protobuf it is its elements alone. */
static void begin_list(struct otlp_writer *w, const char *key)
{
	if (w->is_json)
		json_begin_array_member(&w->json, key);
}

static void end_list(struct otlp_writer *w)
{
	if (w->is_json)
		json_end_array(&w->json);
}

static void put_text(
	struct otlp_writer *w, uint32_t field, const char *key, const char *text, size_t len)
{
	if (!w->is_json) {
		pb_put_string_len(w->b, field, text, len);
		return;
	}
	json_key(&w->json, key);
	json_put_string_len(&w->json, text, len);
}

static void put_small(struct otlp_writer *w, uint32_t field, const char *key, int v)
{
	if (w->is_json)
		json_int_member(&w->json, key, v);
	else
		pb_put_varint(w->b, field, (uint64_t)v);
}

static void put_bool(struct otlp_writer *w, uint32_t field, const char *key, bool v)
{
	if (w->is_json)
		json_bool_member(&w->json, key, v);
	else
		pb_put_varint(w->b, field, v);
}

static void put_double(struct otlp_writer *w, uint32_t field, const char *key, double v)
{
	if (!w->is_json)
		pb_put_double(w->b, field, v);
	else if (isfinite(v))
		json_double_member(&w->json, key, v);
	else
		json_string_member(&w->json, key,
			isnan(v) ? "NaN"
			: v > 0  ? "Infinity"
				 : "-Infinity");
}

static void put_time(struct otlp_writer *w, uint32_t field, const char *key, uint64_t ns)
{
	if (!w->is_json) {
		pb_put_fixed64(w->b, field, ns);
		return;
	}
	json_string_member(&w->json, key, FORMATTED(24, "%" PRIu64, ns));
}

static void long_member(struct otlp_writer *w, const char *key, int64_t v)
{
	if (!w->longs_as_text && v >= -EXACT_MAX && v <= EXACT_MAX) {
		json_int_member(&w->json, key, v);
		return;
	}
	json_string_member(&w->json, key, FORMATTED(24, "%" PRId64, v));
}

static void put_value(
	struct otlp_writer *w, uint32_t field, const char *key, const struct otlp_value *v)
{
	begin(w, field, key);
	switch (v->kind) {
	case OTLP_TEXT: put_text(w, ANY_STRING, "stringValue", v->text, v->len); break;
	case OTLP_INT:
		if (w->is_json)
			long_member(w, "intValue", v->i);
		else
			pb_put_varint(w->b, ANY_INT, (uint64_t)v->i);
		break;
	case OTLP_DOUBLE: put_double(w, ANY_DOUBLE, "doubleValue", v->d); break;
	case OTLP_BOOL: put_bool(w, ANY_BOOL, "boolValue", v->i != 0); break;
	case OTLP_BYTES:
		if (!w->is_json)
			pb_put_bytes(w->b, ANY_BYTES, v->text, v->len);
		break;
	case OTLP_NONE: break;
	}
	end(w);
}

static void put_attributes(struct otlp_writer *w, uint32_t field, const struct otlp_attributes *a)
{
	begin_list(w, "attributes");
	for (size_t i = 0; i < a->count; i++) {
		begin(w, field, NULL);
		put_text(w, KEY_VALUE_KEY, "key", a->item[i].key, a->item[i].key_len);
		put_value(w, KEY_VALUE_VALUE, "value", &a->item[i].value);
		end(w);
	}
	end_list(w);
}

/* ---- messages ---- */

void otlp_write_begin(struct otlp_writer *w, struct buf *b, bool json, bool logs,
	const struct otlp_attributes *resource, const char *scope, const char *version)
{
	*w = (struct otlp_writer){.b = b, .is_json = json};
	if (json) {
		w->json = json_writer_to_buf(b);
		json_begin_object(&w->json);
	}
	begin_list(w, logs ? "resourceLogs" : "resourceMetrics");
	begin(w, REQUEST_RESOURCES, NULL);
	begin(w, RESOURCE_ITEM_RESOURCE, "resource");
	put_attributes(w, RESOURCE_ATTRIBUTES, resource);
	end(w);
	begin_list(w, logs ? "scopeLogs" : "scopeMetrics");
	begin(w, RESOURCE_ITEM_SCOPES, NULL);
	begin(w, SCOPE_ITEM_SCOPE, "scope");
	put_text(w, SCOPE_NAME, "name", scope, strlen(scope));
	if (version)
		put_text(w, SCOPE_VERSION, "version", version, strlen(version));
	end(w);
	begin_list(w, logs ? "logRecords" : "metrics");
}

void otlp_write_end(struct otlp_writer *w)
{
	for (int level = 0; level < 2; level++) { /* scope, resource */
		end_list(w);
		end(w);
	}
	if (!w->is_json)
		return;
	json_end_array(&w->json);
	json_end_object(&w->json);
	json_finish(&w->json);
}

void otlp_write_metric(struct otlp_writer *w, const char *name, const char *description,
	const char *unit, enum otlp_point_kind kind)
{
	static const struct {
		uint32_t field;
		const char *key;
	} data[] = {[OTLP_GAUGE] = {METRIC_DATA_GAUGE, "gauge"},
		[OTLP_SUM] = {METRIC_DATA_SUM, "sum"},
		[OTLP_HISTOGRAM] = {METRIC_DATA_HISTOGRAM, "histogram"}};

	begin(w, SCOPE_ITEM_ITEMS, NULL);
	put_text(w, METRIC_NAME, "name", name, strlen(name));
	if (description)
		put_text(w, METRIC_DESCRIPTION, "description", description, strlen(description));
	put_text(w, METRIC_UNIT, "unit", unit, strlen(unit));
	begin(w, data[kind].field, data[kind].key);
	if (kind != OTLP_GAUGE)
		put_small(w, DATA_TEMPORALITY, "aggregationTemporality", TEMPORALITY_CUMULATIVE);
	if (kind == OTLP_SUM)
		put_bool(w, DATA_MONOTONIC, "isMonotonic", true);
	begin_list(w, "dataPoints");
}

void otlp_write_metric_end(struct otlp_writer *w)
{
	end_list(w);
	end(w);
	end(w);
}

static void begin_point(struct otlp_writer *w, const struct otlp_point *p, uint32_t attributes)
{
	begin(w, DATA_POINTS, NULL);
	if (p->attributes)
		put_attributes(w, attributes, p->attributes);
	if (p->start_ns)
		put_time(w, POINT_START, "startTimeUnixNano", p->start_ns);
	put_time(w, POINT_TIME, "timeUnixNano", p->time_ns);
}

void otlp_write_point(struct otlp_writer *w, const struct otlp_point *p)
{
	begin_point(w, p, NUMBER_ATTRIBUTES);
	if (p->value.kind != OTLP_INT)
		put_double(w, NUMBER_DOUBLE, "asDouble", p->value.d);
	else if (w->is_json)
		long_member(w, "asInt", p->value.i);
	else
		pb_put_fixed64(w->b, NUMBER_INT, (uint64_t)p->value.i);
	end(w);
}

void otlp_write_histogram(
	struct otlp_writer *w, const struct otlp_point *p, const struct otlp_histogram *h)
{
	begin_point(w, p, HISTOGRAM_ATTRIBUTES);
	put_time(w, HISTOGRAM_COUNT, "count", h->count); /* written alike */
	put_double(w, HISTOGRAM_SUM, "sum", h->sum);
	if (w->is_json) {
		json_begin_array_member(&w->json, "bucketCounts");
		for (size_t i = 0; i <= h->bound_count; i++) {
			json_put_string(&w->json, FORMATTED(24, "%" PRIu64, h->buckets[i]));
		}
		json_end_array(&w->json);
		json_begin_array_member(&w->json, "explicitBounds");
		for (size_t i = 0; i < h->bound_count; i++)
			json_put_double(&w->json, h->bounds[i]);
		json_end_array(&w->json);
	} else {
		pb_put_packed_fixed64(w->b, HISTOGRAM_BUCKETS, h->buckets, h->bound_count + 1);
		pb_put_packed_double(w->b, HISTOGRAM_BOUNDS, h->bounds, h->bound_count);
	}
	if (h->count) {
		put_double(w, HISTOGRAM_MIN, "min", h->min);
		put_double(w, HISTOGRAM_MAX, "max", h->max);
	}
	end(w);
}

void otlp_write_record(struct otlp_writer *w, const struct otlp_record *r)
{
	begin(w, SCOPE_ITEM_ITEMS, NULL);
	put_time(w, RECORD_TIME, "timeUnixNano", r->time_ns);
	put_small(w, RECORD_SEVERITY, "severityNumber", r->severity);
	if (r->body.kind != OTLP_NONE)
		put_value(w, RECORD_BODY, "body", &r->body);
	put_attributes(w, RECORD_ATTRIBUTES, r->attributes);
	put_text(w, RECORD_EVENT, "eventName", r->event, r->event_len);
	end(w);
}

void otlp_write_span(
	struct otlp_writer *w, const struct otlp_span *s, const struct otlp_span_event *event)
{
	begin(w, SCOPE_ITEM_ITEMS, NULL);
	pb_put_bytes(w->b, SPAN_TRACE, s->trace, sizeof(s->trace));
	pb_put_bytes(w->b, SPAN_ID, s->id, sizeof(s->id));
	pb_put_string_len(w->b, SPAN_NAME, s->name, s->name_len);
	pb_put_varint(w->b, SPAN_KIND, (uint64_t)s->kind);
	pb_put_fixed64(w->b, SPAN_START, s->start_ns);
	pb_put_fixed64(w->b, SPAN_END, s->end_ns);
	put_attributes(w, SPAN_ATTRIBUTES, s->attributes);
	if (event) {
		begin(w, SPAN_EVENTS, NULL);
		pb_put_fixed64(w->b, SPAN_EVENT_TIME, event->time_ns);
		pb_put_string(w->b, SPAN_EVENT_NAME, event->name);
		put_attributes(w, SPAN_EVENT_ATTRIBUTES, event->attributes);
		end(w);
	}
	end(w);
}
