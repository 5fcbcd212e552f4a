/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto.c - takes a recording piece by piece (nodedb_stream.h), gives every piece its process
 * and line in the viewer and hands it to the format.
 *
 * Collectives come from their own table where there is one, because only that says which of other
 * ranks they belong to: those are joined by flows, from the rank that began first to the next. They
 * are held until the events come to their time, because lines want slices in order of their start
 * (perfetto_line.c). Beside the call, which only enqueues, its wait for the other ranks is drawn:
 * the rank that came last has the short one. */
#include "agent/export/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answer/steps.h"
#include "base/hash.h"
#include "agent/export/perfetto_private.h"

#define OUT_MAX     (8u << 20)
#define FLUSH_BYTES (256u << 10)
#define TRACKS_MAX  65536
#define LINES_MAX   (1u << 20) /* 100 MB: what further threads do is drawn as moments */
#define RANKS_MAX   65536

const char *perfetto_category(unsigned source)
{
	switch (source) {
	case PERFETTO_STEPS: return "step";
	case SOURCE_GRAPH: return "graph";
	case SOURCE_CUDA:
	case SOURCE_HOST:
	case SOURCE_DRIVER:
	case SOURCE_IO:
	case SOURCE_TCP:
	case SOURCE_NET:
	case SOURCE_NCCL:
	case SOURCE_NVTX: return wire_source_name(source);
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

int perfetto_track_find(struct perfetto *p, const char *node, size_t len, int32_t rank,
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

/* ---- the rank of a process ---- */

static uint64_t process_hash(const char *node, size_t len, uint32_t pid)
{
	return hash_number(hash_bytes(node, len) ^ hash_number(pid));
}

int32_t perfetto_rank(const struct perfetto *p, const char *node, size_t len, uint32_t pid)
{
	return (int32_t)(intptr_t)idmap_get(&p->ranks, process_hash(node, len, pid)) - 1;
}

/* ---- pieces, as nodedb_stream() gives them ---- */

static int take_track(void *arg, const char *node, int32_t rank)
{
	struct perfetto *p = arg;
	const struct perfetto_track *t;

	return perfetto_track_find(p, node, strlen(node), rank, &t);
}

static void take_origin(void *arg, bool is_published)
{
	struct perfetto *p = arg;

	p->is_published = is_published;
}

static int take_rank(void *arg, const char *node, uint32_t pid, int32_t rank)
{
	struct perfetto *p = arg;
	int r = idmap_put(
		&p->ranks, process_hash(node, strlen(node), pid), (void *)((intptr_t)rank + 1));

	return r == -ENOBUFS ? 0 : r; /* its events lie with the node */
}

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
	return flush(p, FLUSH_BYTES);
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

static int take_content(void *arg, const char *node, const struct nodedb_content *c)
{
	struct perfetto *p = arg;
	const struct perfetto_track *t;
	int r = perfetto_track_find(p, node, strlen(node), -1, &t);

	for (size_t i = 0; r == 0 && i < c->chain_count; i++) {
		p->format->chain(p, t, &c->chains[i]);
		p->stats.chains++;
		r = flush(p, FLUSH_BYTES);
	}
	if (r == 0)
		r = put_samples(p, t, c);
	if (r == 0)
		r = put_gpu_samples(p, t, c);
	if (r == 0)
		r = put_labels(p, t, c);
	return r < 0 || !p->options->steps || p->is_published ? r : perfetto_steps_put(p, node);
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

static int by_time(const void *a, const void *b)
{
	const struct perfetto_collective *x = a, *y = b;

	if (x->row->start.ns != y->row->start.ns)
		return x->row->start.ns < y->row->start.ns ? -1 : 1;
	return (x->row->dur_ns < y->row->dur_ns) - (x->row->dur_ns > y->row->dur_ns);
}

static int take_collectives(void *arg, struct collective_row *rows, size_t count)
{
	struct perfetto *p = arg;
	uint64_t from = 0;

	if (!count)
		return 0;
	p->collectives = calloc(count, sizeof(*p->collectives));
	if (!p->collectives)
		return -ENOMEM;
	p->collective_count = count;
	qsort(rows, count, sizeof(*rows), by_collective);
	for (size_t i = 0; i < count; i++) {
		struct perfetto_collective *c = &p->collectives[i];

		*c = (struct perfetto_collective){.row = &rows[i], .from = from};
		c->group = hash_number(rows[i].c.comm_hash ^ hash_number(rows[i].c.seq));
		if (i + 1 < count && is_joined(&rows[i], &rows[i + 1])) {
			c->to = ++p->flow_ids;
			p->stats.flows++;
		}
		from = c->to;
	}
	qsort(p->collectives, count, sizeof(*p->collectives), by_time);
	return 0;
}

/* ---- slices ---- */

/* Whether all lies on its thread, nested or not, as the published agent's JSON has it. */
static bool is_flat(const struct perfetto *p)
{
	return p->is_published && !p->options->proto;
}

int perfetto_slice_put(struct perfetto *p, const struct perfetto_owner *o, struct perfetto_slice *s)
{
	int64_t end_ns = is_flat(p) ? s->start_ns : s->end_ns;
	struct event_args args = *s->args;
	struct perfetto_line line;
	int r = perfetto_line_find(p, o, s->start_ns, &end_ns, &line);

	if (r < 0)
		return r;
	if (!line.has_room) {
		event_arg_number(&args, "duration_ns", s->end_ns - s->start_ns);
		s->args = &args;
		s->end_ns = s->start_ns;
	} else if (!is_flat(p)) {
		s->end_ns = end_ns;
	}
	p->format->slice(p, &line, s);
	return flush(p, FLUSH_BYTES);
}

/* The wait for the other ranks, from the rank's arrival. It is known from the synchronisation that
 * followed on the stream. */
static int put_wait(struct perfetto *p, const struct perfetto_track *t,
	const struct collective_row *row, const struct event_args *args)
{
	char scratch[32], name[48], comm[24] = "";
	struct perfetto_owner o = {.track = t, .kind = LINE_WAIT, .name = comm};
	struct perfetto_slice s = {.source = SOURCE_NCCL,
		.op = row->op,
		.name = name,
		.start_ns = row->start.ns,
		.end_ns = row->start.ns + row->c.wait_ns,
		.args = args};
	const char *op = wire_op_name(SOURCE_NCCL, row->op, scratch);

	o.id = hash_number(row->c.comm_hash ^ hash_number(row->pid)) + (uint64_t)row->c.rank;
	snprintf(name, sizeof(name), "%s wait", strncmp(op, "nccl", 4) ? op : op + 4);
	if (row->c.comm_hash)
		snprintf(comm, sizeof(comm), "%016llx", (unsigned long long)row->c.comm_hash);
	return perfetto_slice_put(p, &o, &s);
}

static int put_collective(struct perfetto *p, const struct perfetto_collective *c)
{
	const struct collective_row *row = c->row;
	int32_t rank = perfetto_rank(p, row->node, strlen(row->node), row->pid);
	struct event_args args;
	struct perfetto_owner o = {
		.kind = LINE_THREAD, .id = row->tid, .pid = row->pid, .tid = row->tid, .name = ""};
	struct perfetto_slice s = {.source = SOURCE_NCCL,
		.op = row->op,
		.start_ns = row->start.ns,
		.args = &args,
		.group = c->from || c->to ? c->group : 0,
		.from = c->from,
		.to = c->to};
	int r = perfetto_track_find(
		p, row->node, strlen(row->node), rank >= 0 ? rank : MAX(row->c.rank, -1), &o.track);

	if (r < 0)
		return r;
	event_args_collective(row, &args);
	/* flows need a slice */
	s.end_ns = s.start_ns + MAX((int64_t)row->dur_ns, p->format->shortest_ns);
	r = perfetto_slice_put(p, &o, &s);
	return r < 0 || row->c.wait_ns <= 0 ? r : put_wait(p, o.track, row, &args);
}

/* The collectives that began before a call from @start_ns on that took @dur_ns. */
static int put_collectives(struct perfetto *p, int64_t start_ns, uint64_t dur_ns)
{
	int r = 0;

	while (r == 0 && p->collective_next < p->collective_count) {
		const struct perfetto_collective *c = &p->collectives[p->collective_next];

		if (c->row->start.ns > start_ns ||
			(c->row->start.ns == start_ns && c->row->dur_ns < dur_ns))
			return 0;
		p->collective_next++;
		r = put_collective(p, c);
	}
	return r;
}

static enum perfetto_kind kind_of(const struct perfetto *p, const struct event *e)
{
	if (is_flat(p))
		return LINE_THREAD;
	switch (e->source) {
	case SOURCE_IO: return LINE_BLOCK;
	case SOURCE_NET: return LINE_NETWORK;
	case SOURCE_HOST:
		if (e->op == HOST_SCHED_SWITCH)
			return LINE_OFF_CPU;
		return e->dur_ns ? LINE_MEMORY : LINE_THREAD;
	default: return LINE_THREAD;
	}
}

static int put_event(struct perfetto *p, const struct perfetto_track *t, const struct event *e,
	const struct stack *stack, const char *name)
{
	enum perfetto_kind kind = kind_of(p, e);
	struct event_args args;
	struct perfetto_owner o = {.track = t,
		.kind = kind,
		.id = kind == LINE_BLOCK ? 0 : e->tid,
		.pid = e->pid,
		.tid = e->tid,
		.name = e->comm};
	struct perfetto_slice s = {.source = e->source,
		.op = e->op,
		.start_ns = e->start.ns,
		.end_ns = event_end_ns(e),
		.args = &args,
		.stack = stack};

	event_args_call(e, p->is_published, &args);
	if (name && e->source == SOURCE_NVTX)
		s.name = name;
	else if (name)
		event_arg_text(&args, "kernel", name);
	return perfetto_slice_put(p, &o, &s);
}

static int take_event(
	void *arg, const char *node, size_t len, const struct event *e, struct nodedb_stream *s)
{
	struct perfetto *p = arg;
	_cleanup_free_ struct stack *stack = NULL;
	const struct perfetto_track *t;
	const char *name = NULL;
	int r = put_collectives(p, e->start.ns, e->dur_ns);

	if (r < 0 || (p->collective_count && e->source == SOURCE_NCCL && collective_is_one(e)))
		return r;
	r = perfetto_track_find(p, node, len,
		e->place.known & PLACEMENT_RANK ? e->place.rank
						: perfetto_rank(p, node, len, e->pid),
		&t);
	if (r == 0 && p->options->stacks && e->stack_hash)
		r = nodedb_stream_stack(s, e->stack_hash, &stack, p->reterr);
	if (r >= 0 && s && !p->is_published)
		r = nodedb_stream_name(s, e, node, len, &name, p->reterr);
	return r < 0 ? r : put_event(p, t, e, stack, name);
}

static int take_end(void *arg)
{
	return put_collectives(arg, INT64_MAX, 0);
}

static void perfetto_done(struct perfetto *p)
{
	for (size_t i = 0; i < p->track_count; i++)
		free(p->list[i]);
	free(p->list);
	free(p->collectives);
	p->format->done(p);
	perfetto_lines_done(p);
	idmap_done(&p->tracks);
	idmap_done(&p->ranks);
	buf_done(&p->out);
}

int perfetto_write(perfetto_source *source, void *arg, int64_t last_ns,
	const struct perfetto_options *options, struct output *o, struct perfetto_stats *ret,
	struct errinfo *reterr)
{
	_cleanup_(perfetto_done) struct perfetto p = {
		.format = options->proto ? &perfetto_proto : &perfetto_json,
		.options = options,
		.output = o,
		.reterr = reterr,
		.out = BUF_INIT(OUT_MAX),
		.tracks = IDMAP_INIT(TRACKS_MAX),
		.ranks = IDMAP_INIT(RANKS_MAX),
		.lines = IDMAP_INIT(LINES_MAX),
		.last_ns = last_ns};
	const struct nodedb_sink sink = {&p, take_origin, take_track, take_rank, take_content,
		take_collectives, take_event, take_end};
	int r = p.format->begin(&p);

	if (r < 0)
		return r;
	r = source(arg, &sink, &p.stats.stream, reterr);
	if (r < 0)
		return r;
	p.format->end(&p);
	r = flush(&p, 0);
	if (r < 0)
		return r;
	p.stats.bytes = o->bytes;
	*ret = p.stats;
	return 0;
}

struct recording_source {
	const char *path;
	const struct nodedb_filter *filter;
};

static int give_recording(void *arg, const struct nodedb_sink *sink,
	struct nodedb_stream_stats *ret, struct errinfo *reterr)
{
	const struct recording_source *s = arg;

	return nodedb_stream(s->path, s->filter, sink, ret, reterr);
}

int perfetto_export(const char *path, const struct nodedb_filter *f,
	const struct perfetto_options *options, struct output *o, struct perfetto_stats *ret,
	struct errinfo *reterr)
{
	_cleanup_(steps_answer_done) struct steps_answer steps = {0};
	struct perfetto_options all = *options;
	struct recording_source s = {path, f};
	struct nodedb_range range;
	int r = nodedb_range(path, &range, reterr);

	if (r == 0 && !f->scope.source) { /* steps are made of everything */
		r = steps_load(path, &f->scope, &steps, reterr);
		steps_release_contents(&steps); /* the stream reads anew, piece by piece */
		all.steps = &steps;
	}
	if (r < 0)
		return r;
	return perfetto_write(give_recording, &s, f->scope.to_ns ? f->scope.to_ns : range.last_ns,
		&all, o, ret, reterr);
}
