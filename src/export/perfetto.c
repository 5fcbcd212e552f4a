/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto.c - takes a recording piece by piece (nodedb_reader.h), gives every piece its process
 * and line in the viewer and hands it to the format. */
#include "export/export.h"

#include "answer/steps.h"
#include "base/hash.h"
#include "export/perfetto_private.h"

#define OUT_MAX    (8u << 20)
#define TRACKS_MAX 65536
#define LINES_MAX  (1u << 20) /* 100 MB: what further threads do is drawn as moments */
#define RANKS_MAX  65536

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

int perfetto_flush(struct perfetto *p, size_t above)
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

static int take_content(void *arg, const char *node, const struct nodedb_content *c)
{
	return perfetto_content_put(arg, node, c);
}

static int take_collectives(void *arg, struct collective_row *rows, size_t count)
{
	return perfetto_collectives_hold(arg, rows, count);
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
	return perfetto_flush(p, PERFETTO_FLUSH_BYTES);
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
	int r = perfetto_collectives_put(p, e->start.ns, e->dur_ns);

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
	return perfetto_collectives_put(arg, INT64_MAX, 0);
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
	r = perfetto_flush(&p, 0);
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
