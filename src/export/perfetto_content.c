/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_content.c - what a node has beside its events: incidents, samples as counters, labels as slices of a line
 * for each key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto_private.h"
#include "base/hash.h"

static void put_counter(struct perfetto *p, const struct perfetto_track *t, const char *name,
	const char *unit, int64_t ns, double value)
{
	struct perfetto_counter c = {name, unit, ns, value};

	if (value < 0)
		return; /* not told */
	p->format->counter(p, t, &c);
	p->stats.counters++;
}

static int put_samples(
	struct perfetto *p, const struct perfetto_track *t, const struct nodedb_content *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->sample_count; i++) {
		const struct host_sample *s = &c->samples[i];

		put_counter(p, t, "host CPU", "%", s->time.ns, s->cpu_pct);
		put_counter(p, t, "host memory", "%", s->time.ns, s->mem_pct);
		put_counter(p, t, "host swap", "MB", s->time.ns, (double)s->swap_mb);
		r = perfetto_flush(p, PERFETTO_FLUSH_BYTES);
	}
	return r;
}

static int put_gpu_samples(
	struct perfetto *p, const struct perfetto_track *t, const struct nodedb_content *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->gpu_sample_count; i++) {
		const struct gpu_sample *s = &c->gpu_samples[i];
		const struct {
			const char *what, *unit;
			int64_t value;
			double scale;
		} rows[] = {{"utilisation", "%", s->util_gpu_pct, 1},
			{"memory used", "MB", s->mem_used_bytes, 1e-6},
			{"power", "W", s->power_mw, 1e-3},
			{"temperature", "C", s->temperature_c, 1},
			{"SM clock", "MHz", s->sm_clock_mhz, 1}};

		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			char name[64];

			if (rows[k].value < 0)
				continue;
			snprintf(name, sizeof(name), "GPU %lld %s", (long long)s->index,
				rows[k].what);
			put_counter(p, t, name, rows[k].unit, s->time.ns,
				(double)rows[k].value * rows[k].scale);
		}
		r = perfetto_flush(p, PERFETTO_FLUSH_BYTES);
	}
	return r;
}

static int by_start(const void *a, const void *b)
{
	const struct perfetto_label *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* A label without a span holds until its key is set again, or to the end. */
static int resolve_labels(
	const struct nodedb_content *c, int64_t last_ns, struct perfetto_label *ret)
{
	struct idmap next = IDMAP_INIT(NODEDB_LABELS_MAX); /* by key and pid: set again when */
	int r = 0;

	for (size_t i = 0; i < c->label_count; i++)
		last_ns = MAX(last_ns, c->labels[i].time_ns);
	for (size_t i = c->label_count; r == 0 && i-- > 0;) {
		const struct annotation_label *l = &c->labels[i], *then;
		uint64_t key = hash_number(hash_bytes(l->key, strlen(l->key)) + l->pid);

		ret[i] = (struct perfetto_label){.key = l->key,
			.value = l->value,
			.pid = l->pid,
			.start_ns = l->span_start_ns,
			.end_ns = l->span_end_ns};
		if (l->span_end_ns)
			continue;
		then = idmap_get(&next, key);
		ret[i].start_ns = l->time_ns;
		ret[i].end_ns = then ? then->time_ns : last_ns;
		r = idmap_put(&next, key, (void *)l);
	}
	idmap_done(&next);
	return r;
}

static int put_label(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_label *l)
{
	struct perfetto_owner o = {.track = t,
		.kind = LINE_LABEL,
		.id = hash_bytes(l->key, strlen(l->key)) + l->pid,
		.name = l->key};
	struct perfetto_line line;
	struct perfetto_label cut = *l;
	int r = perfetto_line_find(p, &o, l->start_ns, &cut.end_ns, &line);

	if (r < 0)
		return r;
	if (line.has_room)
		p->format->label(p, &line, &cut);
	p->stats.labels++;
	return perfetto_flush(p, PERFETTO_FLUSH_BYTES);
}

static int put_labels(
	struct perfetto *p, const struct perfetto_track *t, const struct nodedb_content *c)
{
	_cleanup_free_ struct perfetto_label *labels = calloc(c->label_count + 1, sizeof(*labels));
	int r = labels ? resolve_labels(c, p->last_ns, labels) : -ENOMEM;

	if (r == 0)
		qsort(labels, c->label_count, sizeof(*labels), by_start);
	for (size_t i = 0; r == 0 && i < c->label_count; i++)
		r = put_label(p, t, &labels[i]);
	return r;
}

int perfetto_content_put(struct perfetto *p, const char *node, const struct nodedb_content *c)
{
	const struct perfetto_track *t;
	int r = perfetto_track_find(p, node, strlen(node), -1, &t);

	for (size_t i = 0; r == 0 && i < c->chain_count; i++) {
		p->format->chain(p, t, &c->chains[i]);
		p->stats.chains++;
		r = perfetto_flush(p, PERFETTO_FLUSH_BYTES);
	}
	if (r == 0)
		r = put_samples(p, t, c);
	if (r == 0)
		r = put_gpu_samples(p, t, c);
	if (r == 0)
		r = put_labels(p, t, c);
	return r < 0 || !p->options->steps || p->is_published ? r : perfetto_steps_put(p, node);
}
