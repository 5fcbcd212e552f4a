/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_beside.c - what a time line shows beside the calls of threads: collectives of ranks,
 * readings of GPUs, incidents, how many calls there were in all. */
#include <math.h>

#include "answer/timeline/timeline_index_private.h"
#include "base/array.h"
#include "base/search.h"

#define INCIDENTS_MAX 500
#define SERIES_MAX    1024
#define NODES_ASKED   64
#define SLICES_MAX    10000

/* One bin of a list, made if it is not there; NULL if there are too many. */
static int find_bin(struct timeline_list *l, int64_t bin, struct timeline_bin **ret)
{
	size_t i = l->bin_count;
	int r;

	*ret = NULL;
	while (i > 0 && l->bins[i - 1].bin > bin)
		i--;
	if (i > 0 && l->bins[i - 1].bin == bin) {
		*ret = &l->bins[i - 1];
		return 0;
	}
	r = ARRAY_RESERVE(l->bins, l->bin_room, l->bin_count + 1, 4 * TIMELINE_WIDTH_MAX);
	if (r < 0)
		return r == -ENOBUFS ? 0 : r;
	memmove(&l->bins[i + 1], &l->bins[i], (l->bin_count - i) * sizeof(*l->bins));
	l->bin_count++;
	l->bins[i] = (struct timeline_bin){.bin = bin, .name = -1};
	*ret = &l->bins[i];
	return 0;
}

static struct timeline_track *track_of(const struct idmap *tracks, uint16_t node, uint32_t pid)
{
	return idmap_get(tracks, ((uint64_t)node << 32 | pid) + 1);
}

/* The answer's tracks of one kind, by process. */
static int map_tracks(struct timeline_view *v, enum timeline_track_kind kind, struct idmap *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < v->a->track_count; i++) {
		struct timeline_track *t = &v->a->tracks[i];

		if (t->kind == kind)
			r = idmap_put(
				ret, ((uint64_t)t->process->node << 32 | t->process->pid) + 1, t);
	}
	return r;
}

/* ---- buckets ---- */

/* What of @whole, spread evenly over @width, lies before @at: sums of neighbours are exact. */
static uint64_t share(uint64_t whole, int64_t at, int64_t width)
{
	at = at < 0 ? 0 : MIN(at, width);
	return (uint64_t)((__uint128_t)whole * (uint64_t)at / (uint64_t)width);
}

static int spread(
	struct timeline_view *v, struct timeline_track *t, const struct timeline_bucket *b)
{
	/* a bucket begins before the recording and ends after it: its calls did not */
	int64_t start = MAX(b->start_ns, v->ix->range.first_ns) - v->a->origin_ns;
	int64_t end =
		MIN(b->start_ns + v->ix->bucket_ns, v->ix->range.last_ns + 1) - v->a->origin_ns;
	int64_t width = MAX(end - start, INT64_C(1));
	int64_t first = MAX(start, v->a->from_ns) >> t->shift;
	int64_t last = MIN(start + width - 1, v->a->to_ns) >> t->shift;
	int r = 0;

	for (int64_t i = first; r == 0 && i <= last; i++) {
		int64_t from = (i << t->shift) - start, to = ((i + 1) << t->shift) - start;
		struct timeline_bin *bin;

		r = find_bin(&t->calls, i, &bin);
		if (!bin)
			continue;
		bin->busy_ns += share(b->busy_ns, to, width) - share(b->busy_ns, from, width);
		bin->count += (uint32_t)(share(b->count, to, width) - share(b->count, from, width));
		bin->name = timeline_op_name(v, b->name);
	}
	return r;
}

int timeline_draw_processes(struct timeline_view *v)
{
	struct idmap tracks = IDMAP_INIT(TIMELINE_TRACKS_MAX);
	int r = map_tracks(v, TRACK_PROCESS, &tracks);
	unsigned shift = v->a->shift;

	while (INT64_C(2) << shift < v->ix->bucket_ns)
		shift++;
	for (size_t i = 0; i < v->a->track_count; i++)
		v->a->tracks[i].shift = v->a->tracks[i].kind == TRACK_PROCESS ? shift : v->a->shift;
	for (size_t i = 0; r == 0 && tracks.used && i < v->ix->bucket_count; i++) {
		const struct timeline_bucket *b = &v->ix->buckets[i];
		struct timeline_track *t;

		if (b->start_ns + v->ix->bucket_ns <= v->q->scope.from_ns)
			continue;
		if (b->start_ns > v->q->scope.to_ns)
			break;
		t = track_of(&tracks, b->node, b->pid);
		if (t)
			r = spread(v, t, b);
	}
	idmap_done(&tracks);
	return r;
}

/* ---- collectives ---- */

static int add_slice(
	struct timeline_view *v, struct timeline_track *t, const struct timeline_collective *c)
{
	struct timeline_list *l = &t->calls;
	int r = ARRAY_RESERVE(
		l->slices, l->slice_room, l->slice_count + 1, (size_t)TIMELINE_COLLECTIVES_MAX);

	if (r < 0)
		return r;
	l->slices[l->slice_count++] = (struct timeline_slice){.start_ns = c->start_ns,
		.dur_ns = timeline_collective_ns(c),
		.wait_ns = timeline_collective_wait(c),
		.name = timeline_op_name(v, TIMELINE_NAME(SOURCE_NCCL, c->op)),
		.op = TIMELINE_NAME(SOURCE_NCCL, c->op),
		.peer = -1,
		.collective = c};
	return 0;
}

static int add_to_bin(struct timeline_view *v, struct timeline_track *t, int64_t bin, uint64_t ns,
	uint64_t wait_ns, const struct timeline_collective *c)
{
	struct timeline_bin *b;
	int r = find_bin(&t->calls, bin, &b);

	if (!b)
		return r;
	if (b->name < 0)
		b->name = timeline_op_name(v, TIMELINE_NAME(SOURCE_NCCL, c->op));
	b->busy_ns += ns;
	b->wait_ns += wait_ns;
	b->count += bin == (c->start_ns - v->a->origin_ns) >> v->a->shift;
	return 0;
}

/* What of a slice from @start_ns on lies in @bin. */
static uint64_t part(const struct timeline_view *v, int64_t start_ns, uint64_t dur_ns, int64_t bin)
{
	int64_t from = MAX(start_ns - v->a->origin_ns, bin << v->a->shift);
	int64_t to = MIN(start_ns - v->a->origin_ns + (int64_t)dur_ns, (bin + 1) << v->a->shift);

	return to > from ? (uint64_t)(to - from) : 0;
}

static int add_bins(
	struct timeline_view *v, struct timeline_track *t, const struct timeline_collective *c)
{
	uint64_t dur = timeline_collective_ns(c), wait = timeline_collective_wait(c);
	int64_t start = c->start_ns - v->a->origin_ns;
	int64_t first = MAX(start, v->a->from_ns) >> v->a->shift;
	int64_t end = start + (int64_t)(dur ? dur - 1 : 0);
	int64_t last = MIN(end, v->a->to_ns) >> v->a->shift;
	int r = 0;

	for (int64_t bin = first; r == 0 && bin <= last; bin++)
		r = add_to_bin(v, t, bin, part(v, c->start_ns, dur, bin),
			part(v, c->start_ns, wait, bin), c);
	return r;
}

static bool is_in(const struct timeline_view *v, const struct timeline_collective *c)
{
	return c->start_ns + (int64_t)timeline_collective_ns(c) >= v->q->scope.from_ns;
}

static int draw_ranks(struct timeline_view *v, struct idmap *tracks)
{
	const struct timeline_index *ix = v->ix;
	size_t limit = MAX((size_t)1024, 2 * v->width), n = 0;
	size_t first = LOWER_BOUND(i, ix->collective_count,
		ix->collectives[i].start_ns <
			v->q->scope.from_ns - (int64_t)ix->longest_collective_ns);
	bool many;
	int r = 0;

	for (size_t i = first; i < ix->collective_count; i++) {
		if (ix->collectives[i].start_ns > v->q->scope.to_ns)
			break;
		n += is_in(v, &ix->collectives[i]) &&
		     track_of(tracks, ix->collectives[i].node, ix->collectives[i].pid) != NULL;
	}
	many = n > limit * tracks->used / 2 || n > SLICES_MAX;
	for (size_t i = first; r == 0 && i < ix->collective_count; i++) {
		const struct timeline_collective *c = &ix->collectives[i];
		struct timeline_track *t = track_of(tracks, c->node, c->pid);

		if (c->start_ns > v->q->scope.to_ns)
			break;
		if (t && is_in(v, c))
			r = many ? add_bins(v, t, c) : add_slice(v, t, c);
	}
	if (many)
		v->a->is_events = false;
	return r;
}

int timeline_draw_ranks(struct timeline_view *v)
{
	struct idmap tracks = IDMAP_INIT(TIMELINE_TRACKS_MAX);
	int r = map_tracks(v, TRACK_RANK, &tracks);

	if (r == 0 && tracks.used)
		r = draw_ranks(v, &tracks);
	idmap_done(&tracks);
	return r;
}

/* ---- GPUs ---- */

static struct timeline_series *find_series(
	struct timeline_view *v, const struct timeline_gpu *g, unsigned field)
{
	struct timeline_answer *a = v->a;
	struct timeline_series *s;

	for (size_t i = 0; i < a->series_count; i++)
		if (a->series[i].gpu == g->gpu && a->series[i].field == field &&
			a->series[i].node == v->ix->nodes[g->node])
			return &a->series[i];
	if (a->series_count == SERIES_MAX) {
		a->truncated = true;
		return NULL;
	}
	a->series = a->series ?: calloc(SERIES_MAX, sizeof(*a->series));
	if (!a->series)
		return NULL;
	s = &a->series[a->series_count++];
	*s = (struct timeline_series){.node = v->ix->nodes[g->node], .gpu = g->gpu, .field = field};
	return s;
}

/* Readings of one bin become their mean. */
static int add_reading(struct timeline_view *v, struct timeline_series *s, int64_t ns, double value)
{
	int64_t bin = (ns - v->a->origin_ns) >> v->a->shift;
	struct timeline_reading *last = s->count ? &s->points[s->count - 1] : NULL;
	int r;

	if (last && (last->time_ns - v->a->origin_ns) >> v->a->shift == bin) {
		s->in_last++;
		last->value += (value - last->value) / s->in_last;
		return 0;
	}
	r = ARRAY_RESERVE(s->points, s->room, s->count + 1, 4 * TIMELINE_WIDTH_MAX);
	if (r < 0)
		return r == -ENOBUFS ? 0 : r;
	s->points[s->count++] = (struct timeline_reading){ns, value};
	s->in_last = 1;
	return 0;
}

int timeline_draw_gpus(struct timeline_view *v)
{
	const struct timeline_index *ix = v->ix;
	int r = 0;

	if (v->q->request->kinds[0] && !timeline_in_list(v->q->request->kinds, "gpu"))
		return 0;
	for (size_t i = 0; r == 0 && i < ix->gpu_count; i++) {
		const struct timeline_gpu *g = &ix->gpus[i];

		if (g->time_ns < v->q->scope.from_ns - (int64_t)(2 * NS_PER_S) ||
			g->time_ns > v->q->scope.to_ns + (int64_t)(2 * NS_PER_S) ||
			(v->q->scope.node && strcmp(v->q->scope.node, ix->nodes[g->node]) != 0))
			continue;
		for (unsigned k = 0; r == 0 && k < ARRAY_SIZE(timeline_gpu_fields); k++) {
			struct timeline_series *s =
				isnan(g->value[k]) ? NULL : find_series(v, g, k);

			if (s)
				r = add_reading(v, s, g->time_ns, (double)g->value[k]);
		}
	}
	return r;
}

/* ---- incidents ---- */

static void take_incident(
	struct timeline_view *v, const struct sql_table *t, size_t row, struct timeline_incident *i)
{
	bool stored = table_column(t, "first_seen") >= 0;
	int64_t first = table_int(t, row, table_column(t, stored ? "first_seen" : "detected_at"));
	int64_t last = table_int(t, row, table_column(t, stored ? "last_seen" : "detected_at"));

	*i = (struct timeline_incident){.start_ns = first - v->a->origin_ns,
		.dur_ns = (uint64_t)MAX(last - first, INT64_C(0)),
		.pid = (uint32_t)table_int(t, row, table_column(t, "pid")),
		.active = stored && !table_int(t, row, table_column(t, "resolved_at"))};
	snprintf(i->id, sizeof(i->id), "%s", table_text(t, row, table_column(t, "id")));
	snprintf(i->severity, sizeof(i->severity), "%s",
		table_text(t, row, table_column(t, "severity")));
	snprintf(i->title, sizeof(i->title), "%s", table_text(t, row, table_column(t, "summary")));
	snprintf(i->node, sizeof(i->node), "%s", table_text(t, row, table_column(t, "node")));
}

static bool incident_is_asked(const struct timeline_view *v, const struct timeline_incident *i)
{
	bool found = !v->q->scope.pid_count || !i->pid;

	for (size_t k = 0; k < v->q->scope.pid_count && !found; k++)
		found = v->q->scope.pids[k] == i->pid;
	return found && i->start_ns <= v->a->to_ns &&
	       i->start_ns + (int64_t)i->dur_ns >= v->a->from_ns;
}

int timeline_list_incidents(struct timeline_view *v, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct scope scope = {.node = v->q->scope.node};
	struct timeline_answer *a = v->a;
	int r = nodedb_snapshot_list(
		v->q->snapshot, NODEDB_INCIDENTS, &scope, 4 * INCIDENTS_MAX, &t, reterr);

	if (r == 0 && !t.row_count) {
		sql_table_done(&t);
		t = (struct sql_table){0};
		r = nodedb_snapshot_list(
			v->q->snapshot, NODEDB_CHAINS, &scope, 4 * INCIDENTS_MAX, &t, reterr);
	}
	if (r < 0)
		return r;
	a->incidents = calloc(INCIDENTS_MAX, sizeof(*a->incidents));
	if (!a->incidents)
		return -ENOMEM;
	a->truncated = a->truncated || t.truncated;
	for (size_t i = 0; i < t.row_count; i++) {
		if (a->incident_count == INCIDENTS_MAX) {
			a->truncated = true;
			break;
		}
		take_incident(v, &t, i, &a->incidents[a->incident_count]);
		a->incident_count += incident_is_asked(v, &a->incidents[a->incident_count]);
	}
	return 0;
}

/* ---- how many calls ---- */

static int add_rows(void *arg, const struct timeline_cell *c)
{
	*(uint64_t *)arg += c->count;
	return 0;
}

static uint64_t rows_of(const struct timeline_view *v, const struct timeline_process *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < v->ix->entry_count; i++) {
		const struct timeline_entry *e = &v->ix->entries[i];

		if (&v->ix->processes[e->process] == p && e->kind == TRACK_THREAD && e->lane)
			timeline_lane_sum(&v->ix->lanes, e->lane, v->q->scope.from_ns,
				v->q->scope.to_ns, v->ix->lanes.shift, add_rows, &n);
	}
	return n;
}

static int list_counts(struct timeline_view *v)
{
	struct timeline_answer *a = v->a;

	a->counts = calloc(a->track_count + 1, sizeof(*a->counts));
	if (!a->counts)
		return -ENOMEM;
	for (size_t i = 0; i < a->track_count; i++) {
		const struct timeline_process *p = a->tracks[i].process;

		if (a->count_count && a->counts[a->count_count - 1].process == p)
			continue;
		a->counts[a->count_count++] =
			(struct timeline_counts){.process = p, .rows = rows_of(v, p)};
	}
	return 0;
}

/* Counted calls come by node, because process ids of different nodes have nothing in common. */
static int count_node(struct timeline_view *v, uint16_t node, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct scope scope = v->q->scope;
	int r;

	scope.node = v->ix->nodes[node][0] ? v->ix->nodes[node] : NULL;
	r = nodedb_snapshot_list(v->q->snapshot, NODEDB_CALLS, &scope, 0, &t, reterr);
	for (size_t i = 0; r == 0 && i < t.row_count; i++)
		for (size_t k = 0; k < v->a->count_count; k++)
			if (v->a->counts[k].process->node == node &&
				v->a->counts[k].process->pid == table_int(&t, i, 0))
				v->a->counts[k].calls = (uint64_t)table_int(&t, i, 1);
	return r;
}

int timeline_count_calls(struct timeline_view *v, struct errinfo *reterr)
{
	bool asked[TIMELINE_NODES_MAX] = {false};
	size_t nodes = 0;
	int r = list_counts(v);

	for (size_t i = 0; r == 0 && i < v->a->count_count && nodes < NODES_ASKED; i++) {
		uint16_t node = v->a->counts[i].process->node;

		if (asked[node])
			continue;
		asked[node] = true;
		nodes++;
		r = count_node(v, node, reterr);
	}
	return r;
}
