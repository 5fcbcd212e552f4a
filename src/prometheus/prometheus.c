/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus.c - see prometheus.h. Each metric has one HELP and one TYPE line, before its samples.
 * In a label's value backslash, double quote and newline are escaped, in help texts backslash and
 * newline; everything else stands for itself. Texts are UTF-8 already (metric.c). */
#include "prometheus/prometheus.h"

#include "base/text.h"

static void put_escaped(struct buf *b, const char *s, bool in_quotes)
{
	for (; *s; s++)
		switch (*s) {
		case '\\': buf_puts(b, "\\\\"); break;
		case '\n': buf_puts(b, "\\n"); break;
		case '"':
			if (in_quotes)
				buf_putc(b, '\\');
			buf_putc(b, '"');
			break;
		default: buf_putc(b, *s);
		}
}

void prometheus_escape(struct buf *b, const char *s)
{
	put_escaped(b, s, true);
}

static void put_double(struct buf *b, double v)
{
	char text[TEXT_MAX];

	buf_puts(b, text_format_double(text, v));
}

static void put_label(struct buf *b, const struct metric_key *key, const struct metric_attribute *a)
{
	buf_printf(b, "%s=\"", key->label);
	if (a->text)
		put_escaped(b, a->text, true);
	else
		buf_printf(b, "%" PRId64, a->number);
	buf_putc(b, '"');
}

/* {a="x",b="y"}, with le="…" at the end if there is one; nothing without any. */
static void put_labels(
	struct buf *b, const struct metric_desc *d, const struct metric_point *p, const char *le)
{
	const char *before = "{";

	for (unsigned i = 0; i < metric_key_count(d); i++) {
		if (p->attributes[i].is_absent)
			continue;
		buf_puts(b, before);
		put_label(b, &d->keys[i], &p->attributes[i]);
		before = ",";
	}
	if (le)
		buf_printf(b, "%sle=\"%s\"", before, le);
	if (le || *before == ',')
		buf_putc(b, '}');
}

static void put_bucket(struct buf *b, const struct metric_desc *d, const struct metric_point *p,
	const char *le, uint64_t count)
{
	buf_printf(b, "%s_bucket", d->prometheus);
	put_labels(b, d, p, le);
	buf_printf(b, " %" PRIu64 "\n", count);
}

static void put_histogram(struct buf *b, const struct metric_desc *d, const struct metric_point *p)
{
	const struct metric_histogram *h = p->value.h;
	uint64_t below = 0;
	char le[TEXT_MAX];

	for (unsigned i = 0; i < METRIC_BOUNDS; i++) {
		below += h->buckets[i];
		put_bucket(b, d, p, text_format_double(le, metric_bound(d, i)), below);
	}
	put_bucket(b, d, p, "+Inf", h->count);
	buf_printf(b, "%s_sum", d->prometheus);
	put_labels(b, d, p, NULL);
	buf_putc(b, ' ');
	put_double(b, h->sum);
	buf_printf(b, "\n%s_count", d->prometheus);
	put_labels(b, d, p, NULL);
	buf_printf(b, " %" PRIu64 "\n", h->count);
}

static void put_number(struct buf *b, const struct metric_desc *d, const struct metric_point *p)
{
	buf_puts(b, d->prometheus);
	put_labels(b, d, p, NULL);
	buf_putc(b, ' ');
	if (d->is_double)
		put_double(b, p->value.d);
	else
		buf_printf(b, "%" PRId64, p->value.i);
	buf_putc(b, '\n');
}

void prometheus_text(struct buf *b, const struct metric_set *s)
{
	static const char *const types[] = {[METRIC_GAUGE] = "gauge",
		[METRIC_COUNTER] = "counter",
		[METRIC_HISTOGRAM] = "histogram"};

	for (const struct metric *m = metric_first(s); m; m = m->next) {
		const struct metric_desc *d = m->desc;

		if (!d->prometheus)
			continue;
		buf_printf(b, "# HELP %s ", d->prometheus);
		put_escaped(b, d->help, false);
		buf_printf(b, "\n# TYPE %s %s\n", d->prometheus, types[d->kind]);
		for (const struct metric_point *p = m->first; p; p = p->next)
			(d->kind == METRIC_HISTOGRAM ? put_histogram : put_number)(b, d, p);
	}
}
