/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_metric_json.c - metrics by OTLP's JSON mapping: keys in lower camel case, 64-bit integers as
 * strings, enums as numbers. */
#include <inttypes.h>
#include <stdio.h>

#include "json/writer.h"
#include "otlp/otlp_fields.h"
#include "otlp/otlp_metric.h"

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

static void put_attribute(struct json_writer *w, const char *key, const struct metric_attribute *a)
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

static void put_attributes(struct json_writer *w, const struct metric_desc *d,
	const struct metric_attribute *attributes)
{
	json_begin_array_member(w, "attributes");
	for (unsigned i = 0; i < metric_key_count(d); i++)
		if (!attributes[i].is_absent)
			put_attribute(w, d->keys[i].otlp, &attributes[i]);
	json_end_array(w);
}

static void put_histogram(
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
	put_attributes(w, d, p->attributes);
	if (p->start.ns)
		long_member(w, "startTimeUnixNano", p->start.ns);
	long_member(w, "timeUnixNano", time.ns);
	if (d->kind == METRIC_HISTOGRAM)
		put_histogram(w, d, p->value.h);
	else if (d->is_double)
		json_double_member(w, "asDouble", p->value.d);
	else
		long_member(w, "asInt", p->value.i);
	json_end_object(w);
}

static void put_metric(struct json_writer *w, const struct metric *m, wall_time time)
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

static void put_resource(struct json_writer *w, const struct otlp_resource *r)
{
	struct otlp_resource_row rows[OTLP_RESOURCE_ROWS];
	size_t n = otlp_resource_rows(r, rows);

	json_begin_object_member(w, "resource");
	json_begin_array_member(w, "attributes");
	for (size_t i = 0; i < n; i++)
		put_attribute(w, rows[i].key, &METRIC_TEXT(rows[i].value));
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
			put_metric(w, m, metric_set_time(s));
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
	put_resource(w, r);
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
