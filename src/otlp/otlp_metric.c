/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_metric.c - metrics as protobuf. */
#include "otlp/otlp_metric.h"

#include "otlp/otlp_fields.h"
#include "protobuf/pb.h"
#include "json/writer.h"

static void put_attribute(
	struct buf *b, unsigned field, const char *key, const struct metric_attribute *a)
{
	size_t pair = pb_put_begin(b, field), value;

	pb_put_string(b, KEY_VALUE_KEY, key);
	value = pb_put_begin(b, KEY_VALUE_VALUE);
	if (a->text)
		pb_put_string(b, ANY_STRING, a->text);
	else
		pb_put_varint(b, ANY_INT, (uint64_t)a->number);
	pb_put_end(b, value);
	pb_put_end(b, pair);
}

static void put_attributes(struct buf *b, unsigned field, const struct metric_desc *d,
	const struct metric_attribute *attributes)
{
	for (unsigned i = 0; i < metric_key_count(d); i++)
		if (!attributes[i].is_absent)
			put_attribute(b, field, d->keys[i].otlp, &attributes[i]);
}

static void put_number(struct buf *b, const struct metric_desc *d, const struct metric_point *p)
{
	if (d->is_double) {
		pb_put_double(b, NUMBER_DOUBLE, p->value.d);
		put_attributes(b, NUMBER_ATTRIBUTES, d, p->attributes);
		return;
	}
	pb_put_fixed64(b, NUMBER_INT, (uint64_t)p->value.i);
	put_attributes(b, NUMBER_ATTRIBUTES, d, p->attributes);
}

static void put_histogram(struct buf *b, const struct metric_desc *d, const struct metric_point *p)
{
	const struct metric_histogram *h = p->value.h;
	double bounds[METRIC_BOUNDS];

	for (unsigned i = 0; i < METRIC_BOUNDS; i++)
		bounds[i] = metric_bound(d, i);
	pb_put_fixed64(b, HISTOGRAM_COUNT, h->count);
	pb_put_double(b, HISTOGRAM_SUM, h->sum);
	pb_put_packed_fixed64(b, HISTOGRAM_BUCKETS, h->buckets, METRIC_BOUNDS + 1);
	pb_put_packed_double(b, HISTOGRAM_BOUNDS, bounds, METRIC_BOUNDS);
	put_attributes(b, HISTOGRAM_ATTRIBUTES, d, p->attributes);
	if (h->count) {
		pb_put_double(b, HISTOGRAM_MIN, h->min);
		pb_put_double(b, HISTOGRAM_MAX, h->max);
	}
}

static void put_metric(struct buf *b, const struct metric *m, wall_time time)
{
	static const unsigned data[] = {[METRIC_GAUGE] = METRIC_DATA_GAUGE,
		[METRIC_COUNTER] = METRIC_DATA_SUM,
		[METRIC_HISTOGRAM] = METRIC_DATA_HISTOGRAM};
	const struct metric_desc *d = m->desc;
	size_t metric = pb_put_begin(b, SCOPE_ITEM_ITEMS), body;

	pb_put_string(b, METRIC_NAME, d->otlp);
	pb_put_string(b, METRIC_DESCRIPTION, d->help);
	pb_put_string(b, METRIC_UNIT, d->unit);
	body = pb_put_begin(b, data[d->kind]);
	for (const struct metric_point *p = m->first; p; p = p->next) {
		size_t point = pb_put_begin(b, DATA_POINTS);

		if (p->start.ns)
			pb_put_fixed64(b, POINT_START, (uint64_t)p->start.ns);
		pb_put_fixed64(b, POINT_TIME, (uint64_t)time.ns);
		(d->kind == METRIC_HISTOGRAM ? put_histogram : put_number)(b, d, p);
		pb_put_end(b, point);
	}
	if (d->kind != METRIC_GAUGE)
		pb_put_varint(b, DATA_TEMPORALITY, TEMPORALITY_CUMULATIVE);
	if (d->kind == METRIC_COUNTER)
		pb_put_varint(b, DATA_MONOTONIC, 1);
	pb_put_end(b, body);
	pb_put_end(b, metric);
}

static void add_row(
	struct otlp_resource_row *rows, size_t *count, const char *key, const char *value)
{
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(rows[i].key, key))
			return;
	if (value && value[0])
		rows[(*count)++] = (struct otlp_resource_row){key, value};
}

size_t otlp_resource_rows(
	const struct otlp_resource *r, struct otlp_resource_row ret[OTLP_RESOURCE_ROWS])
{
	size_t n = 0;

	add_row(ret, &n, "service.name", r->service ? r->service : "ingero");
	add_row(ret, &n, "service.version", r->version);
	add_row(ret, &n, "service.instance.id", r->node);
	add_row(ret, &n, "host.name", r->host);
	add_row(ret, &n, "ingero.node.id", r->node);
	add_row(ret, &n, "ingero.cluster.id", r->cluster);
	for (size_t i = 0; i < r->more_count; i++)
		add_row(ret, &n, r->more[i].key, r->more[i].value);
	return n;
}

static void put_resource(struct buf *b, const struct otlp_resource *r)
{
	size_t resource = pb_put_begin(b, RESOURCE_ITEM_RESOURCE);
	struct otlp_resource_row rows[OTLP_RESOURCE_ROWS];
	size_t n = otlp_resource_rows(r, rows);

	for (size_t i = 0; i < n; i++)
		put_attribute(b, RESOURCE_ATTRIBUTES, rows[i].key, &METRIC_TEXT(rows[i].value));
	pb_put_end(b, resource);
}

size_t otlp_metric_protobuf(
	struct buf *b, const struct metric_set *s, const struct otlp_resource *r)
{
	size_t rows = pb_put_begin(b, REQUEST_RESOURCES), scopes, scope, points = 0;

	put_resource(b, r);
	scopes = pb_put_begin(b, RESOURCE_ITEM_SCOPES);
	scope = pb_put_begin(b, SCOPE_ITEM_SCOPE);
	pb_put_string(b, SCOPE_NAME, "ingero");
	if (r->version)
		pb_put_string(b, SCOPE_VERSION, r->version);
	pb_put_end(b, scope);
	for (const struct metric *m = metric_first(s); m; m = m->next)
		if (m->desc->otlp) {
			put_metric(b, m, metric_set_time(s));
			points += m->count;
		}
	pb_put_end(b, scopes);
	pb_put_end(b, rows);
	return points;
}

/* metrics by OTLP's JSON mapping: keys in lower camel case, 64-bit integers as
 * strings, enums as numbers. */

static void long_member(struct json_writer *w, const char *key, int64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	json_string_member(w, key, text);
}

static void put_long(struct json_writer *w, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	json_put_string(w, text);
}

static void json_put_attribute(
	struct json_writer *w, const char *key, const struct metric_attribute *a)
{
	json_begin_object(w);
	json_string_member(w, "key", key);
	json_begin_object_member(w, "value");
	if (a->text)
		json_string_member(w, "stringValue", a->text);
	else
		long_member(w, "intValue", a->number);
	json_end_object(w);
	json_end_object(w);
}

static void json_put_attributes(struct json_writer *w, const struct metric_desc *d,
	const struct metric_attribute *attributes)
{
	json_begin_array_member(w, "attributes");
	for (unsigned i = 0; i < metric_key_count(d); i++)
		if (!attributes[i].is_absent)
			json_put_attribute(w, d->keys[i].otlp, &attributes[i]);
	json_end_array(w);
}

static void json_put_histogram(
	struct json_writer *w, const struct metric_desc *d, const struct metric_histogram *h)
{
	long_member(w, "count", (int64_t)h->count);
	json_double_member(w, "sum", h->sum);
	json_begin_array_member(w, "bucketCounts");
	for (unsigned i = 0; i <= METRIC_BOUNDS; i++)
		put_long(w, h->buckets[i]);
	json_end_array(w);
	json_begin_array_member(w, "explicitBounds");
	for (unsigned i = 0; i < METRIC_BOUNDS; i++)
		json_put_double(w, metric_bound(d, i));
	json_end_array(w);
	if (!h->count)
		return;
	json_double_member(w, "min", h->min);
	json_double_member(w, "max", h->max);
}

static void put_point(struct json_writer *w, const struct metric_desc *d,
	const struct metric_point *p, wall_time time)
{
	json_begin_object(w);
	json_put_attributes(w, d, p->attributes);
	if (p->start.ns)
		long_member(w, "startTimeUnixNano", p->start.ns);
	long_member(w, "timeUnixNano", time.ns);
	if (d->kind == METRIC_HISTOGRAM)
		json_put_histogram(w, d, p->value.h);
	else if (d->is_double)
		json_double_member(w, "asDouble", p->value.d);
	else
		long_member(w, "asInt", p->value.i);
	json_end_object(w);
}

static void json_put_metric(struct json_writer *w, const struct metric *m, wall_time time)
{
	static const char *const data[] = {[METRIC_GAUGE] = "gauge",
		[METRIC_COUNTER] = "sum",
		[METRIC_HISTOGRAM] = "histogram"};
	const struct metric_desc *d = m->desc;

	json_begin_object(w);
	json_string_member(w, "name", d->otlp);
	json_string_member(w, "description", d->help);
	json_string_member(w, "unit", d->unit);
	json_begin_object_member(w, data[d->kind]);
	if (d->kind != METRIC_GAUGE)
		json_int_member(w, "aggregationTemporality", TEMPORALITY_CUMULATIVE);
	if (d->kind == METRIC_COUNTER) {
		json_bool_member(w, "isMonotonic", true);
	}
	json_begin_array_member(w, "dataPoints");
	for (const struct metric_point *p = m->first; p; p = p->next)
		put_point(w, d, p, time);
	json_end_array(w);
	json_end_object(w);
	json_end_object(w);
}

static void json_put_resource(struct json_writer *w, const struct otlp_resource *r)
{
	struct otlp_resource_row rows[OTLP_RESOURCE_ROWS];
	size_t n = otlp_resource_rows(r, rows);

	json_begin_object_member(w, "resource");
	json_begin_array_member(w, "attributes");
	for (size_t i = 0; i < n; i++)
		json_put_attribute(w, rows[i].key, &METRIC_TEXT(rows[i].value));
	json_end_array(w);
	json_end_object(w);
}

static size_t put_scope(
	struct json_writer *w, const struct metric_set *s, const struct otlp_resource *r)
{
	size_t points = 0;

	json_begin_object_member(w, "scope");
	json_string_member(w, "name", "ingero");
	if (r->version)
		json_string_member(w, "version", r->version);
	json_end_object(w);
	json_begin_array_member(w, "metrics");
	for (const struct metric *m = metric_first(s); m; m = m->next)
		if (m->desc->otlp) {
			json_put_metric(w, m, metric_set_time(s));
			points += m->count;
		}
	json_end_array(w);
	return points;
}

size_t otlp_metric_json(struct buf *b, const struct metric_set *s, const struct otlp_resource *r)
{
	struct json_writer writer = json_writer_to_buf(b), *w = &writer;
	size_t points;

	json_begin_object(w);
	json_begin_array_member(w, "resourceMetrics");
	json_begin_object(w);
	json_put_resource(w, r);
	json_begin_array_member(w, "scopeMetrics");
	json_begin_object(w);
	points = put_scope(w, s, r);
	json_end_object(w);
	json_end_array(w);
	json_end_object(w);
	json_end_array(w);
	json_end_object(w);
	json_finish(w);
	return points;
}
