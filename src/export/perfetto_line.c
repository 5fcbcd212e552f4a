/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_line.c - which line of the viewer a slice is drawn on.
 *
 * Invariant: on each line any two slices lie one within the other, or apart. Viewers take that for
 * granted: of two that overlap in part they draw one wrong or none.
 *
 * What a thread calls does nest, so that it lies on the thread; what happens to it meanwhile (stays
 * off the CPU, what the kernel does for it) may begin within a call and end after it, and has lines
 * beside the thread. Block requests and waits are nobody's parts, so that they lie apart. An owner
 * has as many lanes as it needs at a time, LANES_MAX at most: a slice goes to the first on which it
 * fits. Slices come in order of their start, so that a lane need only know the ends of those that
 * are open. */

#include "base/search.h"
#include "base/hash.h"
#include "export/perfetto_private.h"

/* What a node has beside its events: incidents, samples as counters, labels as slices of a line
 * for each key. */

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
			if (rows[k].value < 0)
				continue;
			put_counter(p, t,
				FORMATTED(64, "GPU %lld %s", (long long)s->index, rows[k].what),
				rows[k].unit, s->time.ns, (double)rows[k].value * rows[k].scale);
		}
		r = perfetto_flush(p, PERFETTO_FLUSH_BYTES);
	}
	return r;
}

ORDER(by_start, struct perfetto_label, ASCENDING(start_ns) ?: DESCENDING(end_ns))

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
		SORT(labels, c->label_count, by_start);
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
	r = r ?: put_samples(p, t, c);
	r = r ?: put_gpu_samples(p, t, c);
	r = r ?: put_labels(p, t, c);
	return r < 0 || !p->options->steps || p->is_published ? r : perfetto_steps_put(p, node);
}

#define LANES_MAX  1024
#define DEPTH_MAX  64
#define CUT_MAX_NS 1000       /* wall time is worked out for each event; more is no rounding */
#define TIDS_FROM  (1u << 23) /* the kernel's ids end at 1 << 22 */

struct lane {
	int64_t *ends; /* of the open slices, outermost first */
	uint32_t depth, room;
	uint32_t tid;
};

struct lines { /* of one owner */
	struct lane *lanes;
	unsigned count;
	bool is_named;
};

static uint64_t mix(uint64_t uuid, uint64_t more)
{
	return hash_number(uuid ^ hash_number(more + 1));
}

static bool is_of_thread(enum perfetto_kind kind)
{
	return kind == LINE_THREAD || kind == LINE_OFF_CPU || kind == LINE_NETWORK ||
	       kind == LINE_MEMORY;
}

static void put_name(const struct perfetto_owner *o, unsigned lane, struct buf *b)
{
	static const char *const what[] = {
		[LINE_OFF_CPU] = "off CPU", [LINE_NETWORK] = "network", [LINE_MEMORY] = "memory"};

	if (o->kind == LINE_BLOCK)
		buf_puts(b, "block I/O");
	else if (o->kind == LINE_WAIT)
		buf_printf(b, *o->name ? "NCCL %s" : "NCCL", o->name);
	else if (o->kind == LINE_LABEL)
		buf_puts(b, o->name);
	else if (o->kind == LINE_STEPS)
		buf_printf(b, "steps of %s (%u)", *o->name ? o->name : "process", o->pid);
	else if (o->kind == LINE_THREAD && !lane && (o->tid == o->pid || !*o->name))
		buf_puts(b, o->name);
	else if (o->kind == LINE_THREAD && !lane)
		buf_printf(b, "%s (of process %u)", o->name, o->pid);
	else if (o->kind == LINE_THREAD)
		buf_printf(b, "%s %u", *o->name ? o->name : "thread", o->tid);
	else
		buf_printf(b, "%s %u: %s", *o->name ? o->name : "thread", o->tid, what[o->kind]);
}

static void fill(
	const struct perfetto_owner *o, unsigned lane, uint32_t tid, struct perfetto_line *ret)
{
	uint64_t thread = mix(o->track->uuid, o->tid);

	*ret = (struct perfetto_line){.track = o->track,
		.kind = o->kind,
		.tid = tid,
		.has_room = true,
		.is_thread = o->kind == LINE_THREAD && !lane,
		.uuid = thread,
		.parent = o->track->uuid};
	if (ret->is_thread)
		return;
	ret->uuid = mix(mix(mix(o->track->uuid, o->id), o->kind), lane + LANES_MAX);
	if (is_of_thread(o->kind))
		ret->parent = thread;
}

static void describe(
	struct perfetto *p, const struct perfetto_owner *o, const struct lines *l, unsigned lane)
{
	_cleanup_buf_ struct buf name = BUF_INIT(4096);
	struct perfetto_line line;

	fill(o, lane, l->lanes[lane].tid, &line);
	put_name(o, lane, &name);
	p->format->line(p, &line, buf_str(&name), lane);
}

static int add_lane(struct perfetto *p, const struct perfetto_owner *o, struct lines *l)
{
	struct lane *lanes = reallocarray(l->lanes, l->count + 1, sizeof(*lanes));
	bool is_thread = o->kind == LINE_THREAD && !l->count;

	if (!lanes)
		return -ENOMEM;
	l->lanes = lanes;
	l->lanes[l->count] = (struct lane){.tid = is_thread ? o->tid : TIDS_FROM + p->line_tids++};
	l->count++;
	return 0;
}

static uint64_t key_of(const struct perfetto_owner *o)
{
	return mix(mix(o->track->uuid, o->id), o->kind);
}

static int add_lines(struct perfetto *p, const struct perfetto_owner *o, struct lines **ret)
{
	struct lines *l = calloc(1, sizeof(*l));
	int r = l ? idmap_put(&p->lines, key_of(o), l) : -ENOMEM;

	if (r < 0) {
		free(l);
		return r;
	}
	*ret = l;
	return add_lane(p, o, l);
}

static int find_lines(struct perfetto *p, const struct perfetto_owner *o, struct lines **ret)
{
	struct lines *l = idmap_get(&p->lines, key_of(o));
	bool is_new = !l;
	int r = 0;

	if (is_new && is_of_thread(o->kind) && o->kind != LINE_THREAD) {
		struct perfetto_owner thread = *o; /* described before what lies beside it */

		thread.kind = LINE_THREAD;
		r = find_lines(p, &thread, &l);
	}
	if (r == 0 && is_new)
		r = add_lines(p, o, &l);
	if (r < 0)
		return r;
	if (is_new || (!l->is_named && *o->name)) {
		l->is_named = *o->name;
		describe(p, o, l, 0);
	}
	*ret = l;
	return 0;
}

/* How many slices may be open on a line. */
static uint32_t depth_max(enum perfetto_kind kind)
{
	return kind == LINE_THREAD || kind == LINE_MEMORY || kind == LINE_LABEL ? DEPTH_MAX : 1;
}

/* Whether the slice lies within what is open on @l, or after it; its end may be cut for that. */
static bool fits(struct lane *l, uint32_t depth, int64_t start_ns, int64_t *end_ns)
{
	int64_t open_ns;

	while (l->depth && l->ends[l->depth - 1] <= start_ns)
		l->depth--;
	if (!l->depth)
		return true;
	open_ns = l->ends[l->depth - 1];
	if (l->depth >= depth || *end_ns > open_ns + CUT_MAX_NS)
		return false;
	*end_ns = MIN(*end_ns, open_ns);
	return true;
}

static int open_slice(struct lane *l, int64_t end_ns)
{
	if (l->depth == l->room) {
		uint32_t room = l->room ? 2 * l->room : 4;
		void *ends = reallocarray(l->ends, room, sizeof(*l->ends));

		if (!ends)
			return -ENOMEM;
		l->ends = ends;
		l->room = room;
	}
	l->ends[l->depth++] = end_ns;
	return 0;
}

int perfetto_line_find(struct perfetto *p, const struct perfetto_owner *o, int64_t start_ns,
	int64_t *end_ns, struct perfetto_line *ret)
{
	struct lines *l;
	unsigned lane = 0;
	int r = find_lines(p, o, &l);

	if (r == -ENOBUFS) { /* so many threads that this one has no line of its own */
		fill(o, 0, o->tid, ret);
		ret->has_room = false;
		return 0;
	}
	if (r < 0)
		return r;
	fill(o, 0, l->lanes[0].tid, ret);
	if (*end_ns <= start_ns)
		return 0;
	while (lane < l->count && !fits(&l->lanes[lane], depth_max(o->kind), start_ns, end_ns))
		lane++;
	if (lane == LANES_MAX) {
		ret->has_room = false;
		return 0;
	}
	if (lane == l->count) {
		r = add_lane(p, o, l);
		if (r < 0)
			return r;
		describe(p, o, l, lane);
	}
	fill(o, lane, l->lanes[lane].tid, ret);
	return open_slice(&l->lanes[lane], *end_ns);
}

void perfetto_lines_done(struct perfetto *p)
{
	size_t cursor = 0;
	struct lines *l;

	while ((l = idmap_next(&p->lines, &cursor, NULL))) {
		for (unsigned i = 0; i < l->count; i++)
			free(l->lanes[i].ends);
		free(l->lanes);
		free(l);
	}
	idmap_done(&p->lines);
}
