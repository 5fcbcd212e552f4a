/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto.c - takes a recording piece by piece (nodedb_stream.h), gives every piece its process
 * and thread in the viewer and hands it to the format.
 *
 * Collectives come from their own table where there is one, because only that says which of other
 * ranks they belong to: those are joined by flows, from the rank that began first to the next. */
#include "cli/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cli/perfetto_private.h"

#define OUT_MAX     (8u << 20)
#define FLUSH_BYTES (256u << 10)
#define TRACKS_MAX  65536
#define THREADS_MAX (1u << 20) /* 16 MB: further ones are drawn without a name */

const char *perfetto_category(unsigned source)
{
	switch (source) {
	case SOURCE_GRAPH: return "graph";
	case SOURCE_CUDA:
	case SOURCE_HOST:
	case SOURCE_DRIVER:
	case SOURCE_IO:
	case SOURCE_TCP:
	case SOURCE_NET:
	case SOURCE_NCCL: return wire_source_name(source);
	default: return "other";
	}
}

void perfetto_frame(struct buf *b, const struct stack_frame *f)
{
	const char *name = f->py_func ? f->py_func : f->symbol;
	const char *file = f->py_func ? f->py_file : f->file;
	uint32_t line = f->py_func ? f->py_line : f->line;

	if (name)
		buf_puts(b, name);
	else
		buf_printf(b, "0x%llx", (unsigned long long)f->ip);
	if (file && *file)
		buf_printf(b, line ? " (%s:%u)" : " (%s)", stack_base_name(file), line);
}

static int flush(struct perfetto *p, size_t above)
{
	int r = p->out.err;

	if (r == 0 && p->out.len > above) {
		r = output_write(p->output, p->out.data, p->out.len, p->reterr);
		buf_clear(&p->out);
	}
	return r;
}

static uint64_t track_hash(const char *node, size_t len, int32_t rank)
{
	return hash_number(hash_bytes(node, len) + (uint64_t)(rank + 1) * 0x9e3779b97f4a7c15ULL);
}

static int add_track(
	struct perfetto *p, const char *node, size_t len, int32_t rank, struct perfetto_track **ret)
{
	_cleanup_free_ struct perfetto_track *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	if (p->track_count == p->track_room) {
		size_t room = p->track_room ? 2 * p->track_room : 64;
		void *list = reallocarray(p->list, room, sizeof(*p->list));

		if (!list)
			return -ENOMEM;
		p->list = list;
		p->track_room = room;
	}
	len = MIN(len, sizeof(t->node) - 1);
	memcpy(t->node, node, len);
	t->node_len = len;
	t->rank = rank;
	t->number = (uint32_t)p->track_count + 1;
	t->uuid = track_hash(node, len, rank);
	r = idmap_put(&p->tracks, t->uuid, t);
	if (r < 0)
		return r;
	p->format->track(p, t);
	*ret = p->list[p->track_count++] = TAKE(t);
	return 0;
}

static int find_track(struct perfetto *p, const char *node, size_t len, int32_t rank,
	const struct perfetto_track **ret)
{
	const struct perfetto_track *last = p->last;
	struct perfetto_track *t;
	int r = 0;

	len = MIN(len, sizeof(t->node) - 1);
	if (last && last->rank == rank && last->node_len == len && !memcmp(last->node, node, len)) {
		*ret = last;
		return 0;
	}
	t = idmap_get(&p->tracks, track_hash(node, len, rank));
	if (!t)
		r = add_track(p, node, len, rank, &t);
	if (r < 0)
		return errinfo_set(
			p->reterr, r, "the recording has more than %d nodes and ranks", TRACKS_MAX);
	*ret = p->last = t;
	return 0;
}

static void name_thread(struct perfetto *p, const struct perfetto_track *t, const struct event *e)
{
	uint64_t key = hash_number(t->uuid ^ hash_number(e->tid));
	char name[64];

	if (!e->comm[0] || idmap_get(&p->threads, key))
		return;
	if (idmap_put(&p->threads, key, p) < 0)
		return; /* drawn without a name */
	if (e->tid == e->pid)
		snprintf(name, sizeof(name), "%s", e->comm);
	else
		snprintf(name, sizeof(name), "%s (of process %u)", e->comm, e->pid);
	p->format->thread(p, t, e->tid, name);
}

/* ---- pieces, as nodedb_stream() gives them ---- */

static int take_track(void *arg, const char *node, int32_t rank)
{
	struct perfetto *p = arg;
	const struct perfetto_track *t;

	return find_track(p, node, strlen(node), rank, &t);
}

static void put_counter(struct perfetto *p, const struct perfetto_track *t, const char *name,
	const char *unit, int64_t ns, double value)
{
	struct perfetto_counter c = {name, unit, ns, value};

	if (value < 0)
		return; /* not told */
	p->format->counter(p, t, &c);
	p->figures.counters++;
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
		r = flush(p, FLUSH_BYTES);
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
		r = flush(p, FLUSH_BYTES);
	}
	return r;
}

/* A label without a span holds until its key is set again, or to the end. */
static int put_labels(
	struct perfetto *p, const struct perfetto_track *t, const struct nodedb_content *c)
{
	struct idmap next = IDMAP_INIT(NODEDB_LABELS_MAX); /* by key and pid: set again when */
	int64_t last_ns = p->last_ns;
	int r = 0;

	for (size_t i = 0; i < c->label_count; i++)
		last_ns = MAX(last_ns, c->labels[i].time_ns);
	for (size_t i = c->label_count; r == 0 && i-- > 0;) {
		const struct annotation_label *l = &c->labels[i], *then;
		struct perfetto_label label = {.key = l->key,
			.value = l->value,
			.pid = l->pid,
			.start_ns = l->span_start_ns,
			.end_ns = l->span_end_ns};
		uint64_t key = hash_number(hash_bytes(l->key, strlen(l->key)) + l->pid);

		if (!l->span_end_ns) {
			then = idmap_get(&next, key);
			label.start_ns = l->time_ns;
			label.end_ns = then ? then->time_ns : last_ns;
			r = idmap_put(&next, key, (void *)l);
		}
		p->format->label(p, t, &label);
		p->figures.labels++;
		if (r == 0)
			r = flush(p, FLUSH_BYTES);
	}
	idmap_done(&next);
	return r;
}

static int take_content(void *arg, const char *node, const struct nodedb_content *c)
{
	struct perfetto *p = arg;
	const struct perfetto_track *t;
	int r = find_track(p, node, strlen(node), -1, &t);

	for (size_t i = 0; r == 0 && i < c->chain_count; i++) {
		p->format->chain(p, t, &c->chains[i]);
		p->figures.chains++;
		r = flush(p, FLUSH_BYTES);
	}
	if (r == 0)
		r = put_samples(p, t, c);
	if (r == 0)
		r = put_gpu_samples(p, t, c);
	return r < 0 ? r : put_labels(p, t, c);
}

static int by_collective(const void *a, const void *b)
{
	const struct collective_row *x = a, *y = b;

	if (x->c.comm_hash != y->c.comm_hash)
		return x->c.comm_hash < y->c.comm_hash ? -1 : 1;
	if (x->c.seq != y->c.seq)
		return x->c.seq < y->c.seq ? -1 : 1;
	return (x->start.ns > y->start.ns) - (x->start.ns < y->start.ns);
}

static bool is_joined(const struct collective_row *x, const struct collective_row *y)
{
	return x->c.comm_hash && x->c.seq && x->c.comm_hash == y->c.comm_hash &&
	       x->c.seq == y->c.seq && x->c.rank != y->c.rank;
}

static int take_collectives(void *arg, struct collective_row *rows, size_t count)
{
	struct perfetto *p = arg;
	struct perfetto_collective c = {0};
	int r = 0;

	p->has_collectives = count > 0;
	if (count)
		qsort(rows, count, sizeof(*rows), by_collective);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct perfetto_track *t;

		c = (struct perfetto_collective){.row = &rows[i], .from = c.to};
		c.group = hash_number(rows[i].c.comm_hash ^ hash_number(rows[i].c.seq));
		if (i + 1 < count && is_joined(&rows[i], &rows[i + 1])) {
			c.to = ++p->flow_ids;
			p->figures.flows++;
		}
		r = find_track(p, rows[i].node, strlen(rows[i].node),
			rows[i].c.rank >= 0 ? rows[i].c.rank : -1, &t);
		if (r == 0) {
			p->format->collective(p, t, &c);
			r = flush(p, FLUSH_BYTES);
		}
	}
	return r;
}

static int take_event(
	void *arg, const char *node, size_t len, const struct event *e, struct nodedb_stream *s)
{
	struct perfetto *p = arg;
	_cleanup_free_ struct stack *stack = NULL;
	const struct perfetto_track *t;
	int r;

	if (p->has_collectives && e->source == SOURCE_NCCL && collective_is_one(e))
		return 0;
	r = find_track(p, node, len, e->place.known & PLACEMENT_RANK ? e->place.rank : -1, &t);
	if (r < 0)
		return r;
	name_thread(p, t, e);
	if (p->wish->stacks && e->stack_hash) {
		r = nodedb_stream_stack(s, e->stack_hash, &stack, p->reterr);
		if (r < 0)
			return r;
	}
	p->format->call(p, t, e, stack);
	return flush(p, FLUSH_BYTES);
}

static void perfetto_done(struct perfetto *p)
{
	for (size_t i = 0; i < p->track_count; i++)
		free(p->list[i]);
	free(p->list);
	p->format->done(p);
	idmap_done(&p->tracks);
	idmap_done(&p->threads);
	buf_done(&p->out);
}

int perfetto_write(perfetto_source *source, void *arg, int64_t last_ns,
	const struct perfetto_wish *wish, struct output *o, struct perfetto_figures *ret,
	struct errinfo *reterr)
{
	_cleanup_(perfetto_done) struct perfetto p = {
		.format = wish->proto ? &perfetto_proto : &perfetto_json,
		.wish = wish,
		.output = o,
		.reterr = reterr,
		.out = BUF_INIT(OUT_MAX),
		.tracks = IDMAP_INIT(TRACKS_MAX),
		.threads = IDMAP_INIT(THREADS_MAX),
		.last_ns = last_ns};
	const struct nodedb_sink sink = {
		&p, take_track, take_content, take_collectives, take_event};
	int r = p.format->begin(&p);

	if (r < 0)
		return r;
	r = source(arg, &sink, &p.figures.stream, reterr);
	if (r < 0)
		return r;
	p.format->end(&p);
	r = flush(&p, 0);
	if (r < 0)
		return r;
	p.figures.bytes = o->bytes;
	*ret = p.figures;
	return 0;
}

struct recording_source {
	const char *path;
	const struct nodedb_filter *filter;
};

static int give_recording(void *arg, const struct nodedb_sink *sink,
	struct nodedb_stream_figures *ret, struct errinfo *reterr)
{
	const struct recording_source *s = arg;

	return nodedb_stream(s->path, s->filter, sink, ret, reterr);
}

int perfetto_export(const char *path, const struct nodedb_filter *f,
	const struct perfetto_wish *wish, struct output *o, struct perfetto_figures *ret,
	struct errinfo *reterr)
{
	struct recording_source s = {path, f};
	struct nodedb_range range;
	int r = nodedb_range(path, &range, reterr);

	if (r < 0)
		return r;
	return perfetto_write(give_recording, &s, f->scope.to_ns ? f->scope.to_ns : range.last_ns,
		wish, o, ret, reterr);
}
