/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read.c - the part of reading requests that does not depend on their encoding: which messages there are,
 * and what becomes of their fields. */
#include "otlp/otlp_read.h"

#include "otlp/otlp_fields.h"
#include "otlp/otlp_read_private.h"

const struct otlp_value *otlp_attribute_get(const struct otlp_attributes *a, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < a->count; i++)
		if (a->item[i].key_len == len && memcmp(a->item[i].key, key, len) == 0)
			return &a->item[i].value;
	return NULL;
}

static int too_much(struct otlp_reading *s, const char *why)
{
	s->why = why;
	return -E2BIG;
}

struct otlp_attribute *otlp_reading_attribute(struct otlp_reading *s, struct otlp_attributes *a)
{
	struct otlp_attribute *item = &a->item[a->count];

	if (a->count == OTLP_ATTRIBUTES_MAX) {
		too_much(s, "a point, record, span or resource has too many attributes");
		return NULL;
	}
	a->count++;
	*item = (struct otlp_attribute){.key = ""};
	return item;
}

struct otlp_value otlp_text_value(const char *s, size_t len)
{
	if (len && memchr(s, 0, len))
		return (struct otlp_value){0};
	return (struct otlp_value){.kind = OTLP_TEXT, .text = s, .len = len};
}

/* ---- messages ---- */

/* A text's length is behind it. */
#define HAS_LENGTH(of, text)                                                                       \
	STATIC_ASSERT(offsetof(struct of, text##_len) == offsetof(struct of, text) + sizeof(char *))
HAS_LENGTH(otlp_attribute, key);
HAS_LENGTH(otlp_reading, scope);
HAS_LENGTH(otlp_reading, point.name);
HAS_LENGTH(otlp_reading, point.unit);
HAS_LENGTH(otlp_reading, record.event);
HAS_LENGTH(otlp_reading, span.name);

/* Gives the point, record or span to the visitor. 0 or -E2BIG. */
static int visit(struct otlp_reading *s)
{
	const struct otlp_visitor *v = s->visitor;
	int r;

	if (s->done.taken + s->done.rejected == OTLP_POINTS_MAX)
		return too_much(s, "it has too many points, records or spans");
	switch (s->signal) {
	case OTLP_METRICS: r = v->point(v->arg, &s->point); break;
	case OTLP_LOGS: r = v->record(v->arg, &s->record); break;
	default: r = v->span(v->arg, &s->span);
	}
	if (r < 0)
		s->done.rejected++;
	else
		s->done.taken++;
	return 0;
}

static void begin_resource(struct otlp_reading *s, const struct otlp_message *m)
{
	s->resource.count = 0;
	s->point.resource_number++;
	s->record.resource_number++;
	s->span.resource_number++;
}

static int take_scope(struct otlp_reading *s)
{
	s->point.scope = s->record.scope = s->span.scope = s->scope;
	s->point.scope_len = s->record.scope_len = s->span.scope_len = s->scope_len;
	return 0;
}

static void begin_scope(struct otlp_reading *s, const struct otlp_message *m)
{
	s->scope = "";
	s->scope_len = 0;
	take_scope(s);
}

static void begin_metric(struct otlp_reading *s, const struct otlp_message *m)
{
	s->point.name = s->point.unit = "";
	s->point.name_len = s->point.unit_len = 0;
}

static void begin_data(struct otlp_reading *s, const struct otlp_message *m)
{
	s->point.kind = m->kind;
	s->point.is_monotonic = s->point.is_delta = false;
}

/* What is told of a single one is forgotten; its metric, scope and resource stay. */
static void begin_point(struct otlp_reading *s, const struct otlp_message *m)
{
	s->attributes.count = 0;
	s->point.time_ns = s->point.start_ns = s->point.count = 0;
	s->point.value = (struct otlp_value){0};
}

static void begin_record(struct otlp_reading *s, const struct otlp_message *m)
{
	s->attributes.count = 0;
	s->record.time_ns = s->record.observed_ns = 0;
	s->record.severity = 0;
	s->record.body = (struct otlp_value){0};
	s->record.event = "";
	s->record.event_len = 0;
}

static void begin_span(struct otlp_reading *s, const struct otlp_message *m)
{
	struct otlp_span *p = &s->span;

	s->attributes.count = 0;
	p->name = "";
	p->name_len = 0;
	p->start_ns = p->end_ns = 0;
	p->kind = p->status = 0;
	memset(p->trace, 0, sizeof(p->trace));
	memset(p->id, 0, sizeof(p->id));
	memset(p->parent, 0, sizeof(p->parent));
}

/* clang-format off */
#define F(number, type, key, of, member) \
	{number, OTLP_##type, key, offsetof(struct of, member), .size = sizeof(((struct of *)0)->member)}
#define S(number, type, key, member) F(number, type, key, otlp_reading, member)
#define INSIDE(number, type, key, inner) {number, OTLP_##type, key, .message = &inner}
#define MESSAGE(name, heads_, ...) \
	static const struct otlp_message name = { \
		.fields = name##_fields, .heads = heads_, .count = ARRAY_SIZE(name##_fields), __VA_ARGS__}

static const struct otlp_field any_fields[] = {
	F(ANY_STRING, VALUE_TEXT, "stringValue", otlp_value, kind),
	F(ANY_BOOL, VALUE_BOOL, "boolValue", otlp_value, kind),
	F(ANY_INT, VALUE_INT, "intValue", otlp_value, kind),
	F(ANY_DOUBLE, VALUE_DOUBLE, "doubleValue", otlp_value, kind),
	F(ANY_BYTES, VALUE_BYTES, "bytesValue", otlp_value, kind),
};
const struct otlp_message otlp_any_value = {any_fields, .count = ARRAY_SIZE(any_fields), .keeps = true};

static const struct otlp_field key_value_fields[] = {
	F(KEY_VALUE_KEY, STRING, "key", otlp_attribute, key),
	F(KEY_VALUE_VALUE, ANY, "value", otlp_attribute, value),
};
const struct otlp_message otlp_key_value = {
	key_value_fields, .count = ARRAY_SIZE(key_value_fields), .keeps = true};

static const struct otlp_field resource_fields[] = {S(RESOURCE_ATTRIBUTES, ATTRIBUTES, "attributes", resource)};
MESSAGE(resource, 0, .keeps = true);
static const struct otlp_field scope_fields[] = {S(SCOPE_NAME, STRING, "name", scope)};
MESSAGE(scope, 0, .end = take_scope, .keeps = true);

/* The points of a kind; where their attributes are differs. */
#define POINTS(attributes_) \
	S(attributes_, ATTRIBUTES, "attributes", attributes), S(POINT_START, TIME, "startTimeUnixNano", point.start_ns), \
	S(POINT_TIME, TIME, "timeUnixNano", point.time_ns)
#define SUMMED(attributes) \
	POINTS(attributes), S(HISTOGRAM_COUNT, TIME, "count", point.count), \
	S(HISTOGRAM_SUM, VALUE_DOUBLE, "sum", point.value)
static const struct otlp_field number_fields[] = {POINTS(NUMBER_ATTRIBUTES),
	S(NUMBER_INT, VALUE_FIXED, "asInt", point.value), S(NUMBER_DOUBLE, VALUE_DOUBLE, "asDouble", point.value)};
MESSAGE(number, 0, .begin = begin_point, .end = visit);
static const struct otlp_field histogram_fields[] = {SUMMED(HISTOGRAM_ATTRIBUTES)};
MESSAGE(histogram, 0, .begin = begin_point, .end = visit);
static const struct otlp_field exponential_fields[] = {SUMMED(EXPONENTIAL_ATTRIBUTES)};
MESSAGE(exponential, 0, .begin = begin_point, .end = visit);
static const struct otlp_field summary_fields[] = {SUMMED(SUMMARY_ATTRIBUTES)};
MESSAGE(summary, 0, .begin = begin_point, .end = visit);

static const struct otlp_field gauge_data_fields[] = {INSIDE(DATA_POINTS, LIST, "dataPoints", number)};
MESSAGE(gauge_data, 0, .begin = begin_data, .kind = OTLP_GAUGE);
static const struct otlp_field sum_data_fields[] = {
	S(DATA_TEMPORALITY, IS_DELTA, "aggregationTemporality", point.is_delta),
	S(DATA_MONOTONIC, FLAG, "isMonotonic", point.is_monotonic),
	INSIDE(DATA_POINTS, LIST, "dataPoints", number)};
MESSAGE(sum_data, 2, .begin = begin_data, .kind = OTLP_SUM);
static const struct otlp_field histogram_data_fields[] = {
	S(DATA_TEMPORALITY, IS_DELTA, "aggregationTemporality", point.is_delta),
	INSIDE(DATA_POINTS, LIST, "dataPoints", histogram)};
MESSAGE(histogram_data, 1, .begin = begin_data, .kind = OTLP_HISTOGRAM);
static const struct otlp_field exponential_data_fields[] = {INSIDE(DATA_POINTS, LIST, "dataPoints", exponential)};
MESSAGE(exponential_data, 0, .begin = begin_data, .kind = OTLP_OTHER);
static const struct otlp_field summary_data_fields[] = {INSIDE(DATA_POINTS, LIST, "dataPoints", summary)};
MESSAGE(summary_data, 0, .begin = begin_data, .kind = OTLP_OTHER);

static const struct otlp_field metric_fields[] = {
	S(METRIC_NAME, STRING, "name", point.name),
	S(METRIC_UNIT, STRING, "unit", point.unit),
	INSIDE(METRIC_DATA_GAUGE, MESSAGE, "gauge", gauge_data),
	INSIDE(METRIC_DATA_SUM, MESSAGE, "sum", sum_data),
	INSIDE(METRIC_DATA_HISTOGRAM, MESSAGE, "histogram", histogram_data),
	INSIDE(METRIC_DATA_EXPONENTIAL, MESSAGE, "exponentialHistogram", exponential_data),
	INSIDE(METRIC_DATA_SUMMARY, MESSAGE, "summary", summary_data),
};
MESSAGE(metric, 2, .begin = begin_metric);

static const struct otlp_field record_fields[] = {
	S(RECORD_TIME, TIME, "timeUnixNano", record.time_ns),
	S(RECORD_OBSERVED, TIME, "observedTimeUnixNano", record.observed_ns),
	S(RECORD_SEVERITY, NUMBER, "severityNumber", record.severity),
	S(RECORD_BODY, ANY, "body", record.body),
	S(RECORD_ATTRIBUTES, ATTRIBUTES, "attributes", attributes),
	S(RECORD_EVENT, STRING, "eventName", record.event),
};
MESSAGE(record, 0, .begin = begin_record, .end = visit);

static const struct otlp_field status_fields[] = {S(STATUS_CODE, NUMBER, "code", span.status)};
MESSAGE(status, 0, .keeps = true);
static const struct otlp_field span_fields[] = {
	S(SPAN_TRACE, ID, "traceId", span.trace),
	S(SPAN_ID, ID, "spanId", span.id),
	S(SPAN_PARENT, ID, "parentSpanId", span.parent),
	S(SPAN_NAME, STRING, "name", span.name),
	S(SPAN_KIND, NUMBER, "kind", span.kind),
	S(SPAN_START, TIME, "startTimeUnixNano", span.start_ns),
	S(SPAN_END, TIME, "endTimeUnixNano", span.end_ns),
	S(SPAN_ATTRIBUTES, ATTRIBUTES, "attributes", attributes),
	INSIDE(SPAN_STATUS, MESSAGE, "status", status),
};
MESSAGE(span, 0, .begin = begin_span, .end = visit);

/* From a request to its points, records or spans: the same levels under other names. */
#define LEVELS(item, resources, scopes, items) \
	static const struct otlp_field item##_scope_fields[] = { \
		INSIDE(SCOPE_ITEM_SCOPE, MESSAGE, "scope", scope), INSIDE(SCOPE_ITEM_ITEMS, LIST, items, item)}; \
	MESSAGE(item##_scope, 1, .begin = begin_scope); \
	static const struct otlp_field item##_resource_fields[] = { \
		INSIDE(RESOURCE_ITEM_RESOURCE, MESSAGE, "resource", resource), \
		INSIDE(RESOURCE_ITEM_SCOPES, LIST, scopes, item##_scope)}; \
	MESSAGE(item##_resource, 1, .begin = begin_resource); \
	static const struct otlp_field item##_request_fields[] = { \
		INSIDE(REQUEST_RESOURCES, LIST, resources, item##_resource)};
LEVELS(metric, "resourceMetrics", "scopeMetrics", "metrics")
LEVELS(record, "resourceLogs", "scopeLogs", "logRecords")
LEVELS(span, "resourceSpans", "scopeSpans", "spans")

const struct otlp_message otlp_requests[OTLP_SIGNAL_COUNT] = {
	[OTLP_METRICS] = {metric_request_fields, .count = 1},
	[OTLP_LOGS] = {record_request_fields, .count = 1},
	[OTLP_TRACES] = {span_request_fields, .count = 1},
};
/* clang-format on */

int otlp_read(enum otlp_signal signal, bool json, const void *data, size_t len,
	const struct otlp_visitor *v, struct otlp_walk *ret, struct errinfo *reterr)
{
	const char *what = otlp_signal_id(signal);
	struct otlp_reading s;
	int err;

	/* The attributes' items are as large as a page and are valid up to their count only. */
	s.visitor = v;
	s.done = (struct otlp_walk){0};
	s.signal = signal;
	s.why = NULL;
	s.resource.count = s.attributes.count = 0;
	s.point = (struct otlp_point){
		.resource = &s.resource, .attributes = &s.attributes, .name = "", .unit = ""};
	s.record = (struct otlp_record){.resource = &s.resource, .attributes = &s.attributes};
	s.span = (struct otlp_span){.resource = &s.resource, .attributes = &s.attributes};
	begin_scope(&s, NULL);
	err = json ? otlp_reading_json(&s, data, len) : otlp_reading_protobuf(&s, data, len);
	if (err == 0) {
		*ret = s.done;
		return 0;
	}
	if (err == -ENOMEM)
		return errinfo_set(reterr, err, "out of memory while reading OTLP %s", what);
	if (err == -E2BIG)
		return errinfo_set(reterr, err, "the request of OTLP %s is too large: %s", what,
			s.why ? s.why : "its messages are nested too deeply");
	return errinfo_set(reterr, -EBADMSG, "the body is not a request of OTLP %s in %s", what,
		json ? "JSON" : "protobuf");
}
