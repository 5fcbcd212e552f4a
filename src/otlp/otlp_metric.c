/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_metric.c - metrics as requests. */
#include "otlp/otlp_metric.h"

#include "otlp/otlp_write.h"

static void put_point(struct otlp_writer *w, const struct metric_desc *d,
	const struct metric_point *p, wall_time time)
{
	const struct metric_histogram *h = p->value.h;
	struct otlp_attributes a;
	struct otlp_point out = {
		.attributes = &a, .start_ns = (uint64_t)p->start.ns, .time_ns = (uint64_t)time.ns};
	double bounds[METRIC_BOUNDS];

	a.count = 0;
	for (unsigned i = 0; i < metric_key_count(d); i++) {
		const struct metric_attribute *from = &p->attributes[i];

		if (from->is_absent)
			continue;
		if (from->text)
			otlp_put_text(&a, d->keys[i].otlp, from->text);
		else
			otlp_put_int(&a, d->keys[i].otlp, from->number);
	}
	if (d->kind != METRIC_HISTOGRAM) {
		out.value = d->is_double ? (struct otlp_value){.kind = OTLP_DOUBLE, .d = p->value.d}
					 : (struct otlp_value){.kind = OTLP_INT, .i = p->value.i};
		otlp_write_point(w, &out);
		return;
	}
	for (unsigned i = 0; i < METRIC_BOUNDS; i++)
		bounds[i] = metric_bound(d, i);
	otlp_write_histogram(w, &out,
		&(struct otlp_histogram){
			h->count, h->sum, h->min, h->max, h->buckets, bounds, METRIC_BOUNDS});
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

size_t otlp_metric_write(
	struct buf *b, bool json, const struct metric_set *s, const struct otlp_resource *r)
{
	static const enum otlp_point_kind kinds[] = {[METRIC_GAUGE] = OTLP_GAUGE,
		[METRIC_COUNTER] = OTLP_SUM,
		[METRIC_HISTOGRAM] = OTLP_HISTOGRAM};
	struct otlp_resource_row rows[OTLP_RESOURCE_ROWS];
	size_t row_count = otlp_resource_rows(r, rows), points = 0;
	struct otlp_attributes resource;
	struct otlp_writer w;

	resource.count = 0;
	for (size_t i = 0; i < row_count; i++)
		otlp_put_text(&resource, rows[i].key, rows[i].value);
	otlp_write_begin(&w, b, json, false, &resource, "ingero", r->version);
	w.longs_as_text = true;
	for (const struct metric *m = metric_first(s); m; m = m->next) {
		const struct metric_desc *d = m->desc;

		if (!d->otlp)
			continue;
		otlp_write_metric(&w, d->otlp, d->help, d->unit, kinds[d->kind]);
		for (const struct metric_point *p = m->first; p; p = p->next)
			put_point(&w, d, p, metric_set_time(s));
		otlp_write_metric_end(&w);
		points += m->count;
	}
	otlp_write_end(&w);
	return points;
}
