/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_draw.c - fills the tracks of an answer: from the index's sums, or from rows. */
#include <math.h>

#include "base/search.h"
#include "base/array.h"
#include "answer/answer.h"
#include "answer/timeline/timeline_index_private.h"
#include "diagnose/accounts/lateness.h"

#define SLICES_MAX   12000 /* of an answer: 0.5 MB of JSON */
#define TRACK_SLICES 1024  /* of a track, or two for each pixel */

/* ---- from sums ---- */

struct filling {
	struct timeline_view *v;
	struct timeline_list *list;
	bool peers; /* names are peers */
};

static int add_bin(void *arg, const struct timeline_cell *c)
{
	struct filling *f = arg;
	struct timeline_list *l = f->list;
	int r = ARRAY_RESERVE(l->bins, l->bin_room, l->bin_count + 1, 4 * TIMELINE_WIDTH_MAX);

	if (r == -ENOBUFS)
		return 0;
	if (r < 0)
		return r;
	l->bins[l->bin_count++] = (struct timeline_bin){.bin = (int64_t)c->bin + f->v->first_bin,
		.busy_ns = c->busy_ns,
		.count = c->count,
		.name = f->peers ? timeline_peer_name(f->v, c->name)
				 : timeline_op_name(f->v, c->name)};
	return 0;
}

static int sum_lane(struct timeline_view *v, const struct timeline_lane *lane, bool peers,
	struct timeline_list *list)
{
	struct filling f = {v, list, peers};

	if (!lane)
		return 0;
	return timeline_lane_sum(&v->ix->lanes, lane, v->q->scope.from_ns, v->q->scope.to_ns,
		v->a->shift, add_bin, &f);
}

int timeline_draw_sums(struct timeline_view *v)
{
	int r = 0;

	v->a->shift = MAX(v->a->shift, v->ix->lanes.shift);
	v->first_bin = 0;
	for (size_t i = 0; r == 0 && i < v->a->track_count; i++) {
		struct timeline_track *t = &v->a->tracks[i];

		r = sum_lane(v, t->entry->lane, false, &t->calls);
		r = r ?: sum_lane(v, t->entry->waiting, true, &t->waiting);
		r = r ?: sum_lane(v, t->entry->blocked, true, &t->blocked);
	}
	return r;
}

/* ---- from rows ---- */

static int add_piece(
	struct timeline_view *v, const struct timeline_piece *p, const struct nodedb_slice *s)
{
	int64_t end_ns = p->start_ns + (int64_t)p->dur_ns;
	const struct timeline_lane *lane = timeline_lane_get(&v->ix->lanes, &p->key);
	struct timeline_list *l = lane ? idmap_get(&v->lists, (uint64_t)(uintptr_t)lane) : NULL;
	bool off = p->key.kind == TIMELINE_WAITING || p->key.kind == TIMELINE_BLOCKED;
	int r;

	if (!l || p->start_ns > v->q->scope.to_ns || end_ns < v->q->scope.from_ns)
		return 0;
	r = ARRAY_RESERVE(l->slices, l->slice_room, l->slice_count + 1, (size_t)1 << 24);
	if (r < 0)
		return r;
	l->slices[l->slice_count++] = (struct timeline_slice){.start_ns = p->start_ns,
		.dur_ns = p->dur_ns,
		.name = off ? -1 : timeline_op_name(v, p->name),
		.op = p->name,
		.nested = p->nested,
		.peer = off ? timeline_peer_name(v, p->name) : -1,
		.row = s->row};
	return 0;
}

static int add_row(void *arg, const struct nodedb_slice *s)
{
	struct timeline_view *v = arg;
	struct timeline_piece pieces[TIMELINE_PIECES];
	int r = 0, n;

	if (s->row > v->ix->last_row) /* came after the index was made */
		return 0;
	/* What it would add to the index is there: it has seen the row. */
	n = timeline_pieces((struct timeline_index *)v->ix, s,
		timeline_index_node((struct timeline_index *)v->ix, s), pieces);
	for (int i = 0; r == 0 && i < n; i++)
		r = add_piece(v, &pieces[i], s);
	return r;
}

static int map_lists(struct timeline_view *v)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < v->a->track_count; i++) {
		struct timeline_track *t = &v->a->tracks[i];

		if (t->entry->lane)
			r = idmap_put(&v->lists, (uint64_t)(uintptr_t)t->entry->lane, &t->calls);
		if (r == 0 && t->entry->waiting)
			r = idmap_put(
				&v->lists, (uint64_t)(uintptr_t)t->entry->waiting, &t->waiting);
		if (r == 0 && t->entry->blocked)
			r = idmap_put(
				&v->lists, (uint64_t)(uintptr_t)t->entry->blocked, &t->blocked);
	}
	return r;
}

/* Rows that began long before and reach into the view. */
static int read_longs(struct timeline_view *v, uint64_t *skipped, struct errinfo *reterr)
{
	const struct timeline_lanes *s = &v->ix->lanes;
	int64_t rows[256];
	struct nodedb_slices what = {.rows = rows};
	int r = 0;

	for (size_t i = 0; r == 0 && i <= s->long_count; i++) {
		const struct timeline_long *l = &s->longs[i];

		if (i < s->long_count && l->start_ns < v->early_ns &&
			l->start_ns + (int64_t)l->dur_ns >= v->q->scope.from_ns)
			rows[what.row_count++] = l->row;
		if (what.row_count == ARRAY_SIZE(rows) || (i == s->long_count && what.row_count)) {
			r = nodedb_snapshot_slices(
				v->q->snapshot, &what, add_row, v, skipped, reterr);
			what.row_count = 0;
		}
	}
	return r;
}

ORDER(by_start, struct timeline_slice, ASCENDING(start_ns) ?: DESCENDING(dur_ns) ?: ASCENDING(row))

/* How many others each lies in. */
static void nest(struct timeline_list *l)
{
	int64_t ends[16];
	int depth = 0;

	for (size_t i = 0; i < l->slice_count; i++) {
		struct timeline_slice *s = &l->slices[i];

		while (depth && ends[depth - 1] <= s->start_ns)
			depth--;
		/* clocks are read for each: a call may seem to begin before the one it lies in */
		s->depth = s->nested && !depth ? 1 : depth;
		if (depth < (int)ARRAY_SIZE(ends))
			ends[depth++] = s->start_ns + (int64_t)s->dur_ns;
	}
}

/* Too many slices become bins: of those that lie in no other, as far as they lie in the view. */
static int sum_slices(struct timeline_view *v, struct timeline_list *l, bool peers)
{
	int64_t width = INT64_C(1) << v->a->shift, origin = v->a->origin_ns;
	int64_t first = (v->q->scope.from_ns - origin) >> v->a->shift;
	int64_t begin = origin + first * width;
	int64_t end = origin + (((v->q->scope.to_ns - origin) >> v->a->shift) + 1) * width;
	struct timeline_lanes set = {.origin_ns = begin, .shift = v->a->shift};
	struct timeline_lane lane = {0};
	struct filling f = {v, l, peers};
	int r = 0;

	set.cells_max = SIZE_MAX;
	for (size_t i = 0; r == 0 && i < l->slice_count; i++) {
		const struct timeline_slice *s = &l->slices[i];
		int64_t from = MAX(s->start_ns, begin);
		int64_t to = MIN(s->start_ns + (int64_t)s->dur_ns, end);

		bool inside = v->ix->is_published ? s->depth > 0 : s->nested;

		if (!inside && from <= to)
			r = timeline_lane_add(&set, &lane, from, (uint64_t)(to - from), s->op);
	}
	v->first_bin = first;
	r = r ?: timeline_lane_sum(&set, &lane, begin, end - 1, v->a->shift, add_bin, &f);
	v->first_bin = 0;
	free(lane.cells);
	l->slice_count = 0;
	v->a->is_events = false;
	return r;
}

static int finish_list(struct timeline_view *v, struct timeline_list *l, bool peers, bool nests)
{
	SORT(l->slices, l->slice_count, by_start);
	if (nests)
		nest(l);
	if (l->slice_count <= MAX((size_t)TRACK_SLICES, 2 * v->width) &&
		v->slices + l->slice_count <= SLICES_MAX) {
		v->slices += l->slice_count;
		return 0;
	}
	return sum_slices(v, l, peers);
}

int timeline_draw_rows(struct timeline_view *v, struct errinfo *reterr)
{
	uint64_t skipped = 0;
	struct nodedb_slices what = {.from_ns = MAX(v->early_ns, INT64_C(1)),
		.to_ns = v->q->scope.to_ns,
		.reach_ns = v->ix->lanes.long_ns};
	int r = map_lists(v);

	v->a->is_events = true;
	r = r ?: nodedb_snapshot_slices(v->q->snapshot, &what, add_row, v, &skipped, reterr);
	r = r ?: read_longs(v, &skipped, reterr);
	for (size_t i = 0; r == 0 && i < v->a->track_count; i++) {
		struct timeline_track *t = &v->a->tracks[i];

		r = finish_list(v, &t->calls, false, t->kind == TRACK_THREAD);
		r = r ?: finish_list(v, &t->waiting, true, false);
		r = r ?: finish_list(v, &t->blocked, true, false);
	}
	return r;
}

/* what a time line takes over from tables other than that of events: collectives with
 * who came last, buckets of counted calls, readings of GPUs. */

const struct timeline_gpu_field timeline_gpu_fields[5] = {
	{"utilization", "%", "util_gpu_pct", 1},
	{"memory used", "MB", "mem_used_bytes", 1e-6},
	{"power", "W", "power_mw", 1e-3},
	{"temperature", "C", "temperature_c", 1},
	{"SM clock", "MHz", "sm_clock_mhz", 1},
};

/* ---- collectives ---- */

static void take_collective(
	struct timeline_index *ix, const struct collective_row *row, struct timeline_collective *c)
{
	*c = (struct timeline_collective){.start_ns = row->start.ns,
		.dur_ns = row->dur_ns,
		.comm = row->c.comm_hash,
		.seq = row->c.seq,
		.bytes = row->c.bytes,
		.wait_ns = row->c.wait_ns,
		.pid = row->pid,
		.tid = row->tid,
		.rank = row->c.rank,
		.late_rank = -1,
		.op = row->op,
		.node = timeline_find_node(ix, row->node, strlen(row->node))};
	ix->longest_collective_ns = MAX(ix->longest_collective_ns, timeline_collective_ns(c));
}

/* Who came last, where that can be told. */
static int judge(struct timeline_collective *list, const struct collective_row *rows, size_t count)
{
	struct recording rec = {.collectives = rows, .collective_count = count};
	_cleanup_(match_done) struct match_table t = {0};
	int r = match_run(&rec, &t);

	for (size_t i = 0; r == 0 && i < t.match_count; i++) {
		const struct match *m = &t.matches[i];
		struct lateness late;

		if (m->count < 2 || !lateness_find(&t, m, &late))
			continue;
		for (size_t k = 0; k < m->count; k++) {
			size_t row = rank_calls_row(&rec, &t.calls, match_row(&t, m, k));

			list[row].late_rank = late.row->c.rank;
			list[row].gap_ns = late.gap_ns;
		}
	}
	return r;
}

int timeline_load_collectives(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	_cleanup_free_ struct collective_row *rows = NULL;
	_cleanup_free_ struct timeline_collective *list = NULL;
	size_t count = 0, first;
	int r = nodedb_snapshot_collectives(
		l, &(struct scope){0}, &rows, &count, &ix->older_collectives, reterr);

	if (r < 0)
		return r;
	first = count > TIMELINE_COLLECTIVES_MAX ? count - TIMELINE_COLLECTIVES_MAX : 0;
	ix->older_collectives = ix->older_collectives || first;
	list = calloc(count - first + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = first; i < count; i++)
		take_collective(ix, &rows[i], &list[i - first]);
	r = count ? judge(list, rows + first, count - first) : 0;
	if (r < 0)
		return r;
	free(ix->collectives);
	ix->collectives = TAKE(list);
	ix->collective_count = count - first;
	return 0;
}

/* ---- buckets ---- */

struct bucketing {
	struct timeline_index *ix;
	struct timeline_bucket *list;
	size_t count, room, first; /* first: of those that begin when the last one does */
};

/* Ops of one process and bucket become one. */
static int add_bucket(void *arg, const struct nodedb_bucket *b)
{
	struct bucketing *g = arg;
	uint16_t node = timeline_find_node(g->ix, b->node, b->node_len);
	struct timeline_cell sum,
		one = {.lead_ns = (float)b->busy_ns, .name = TIMELINE_NAME(b->source, b->op)};
	struct timeline_bucket *to = NULL;
	int r;

	if (g->count && g->list[g->count - 1].start_ns != b->start_ns)
		g->first = g->count;
	for (size_t i = g->first; i < g->count && !to; i++)
		if (g->list[i].pid == b->pid && g->list[i].node == node)
			to = &g->list[i];
	if (!to) {
		r = ARRAY_RESERVE(g->list, g->room, g->count + 1, (size_t)TIMELINE_BUCKETS_MAX);
		if (r < 0) {
			g->ix->older_buckets = r == -ENOBUFS;
			return r == -ENOBUFS ? 0 : r;
		}
		to = &g->list[g->count++];
		*to = (struct timeline_bucket){
			.start_ns = b->start_ns, .pid = b->pid, .node = node, .name = one.name};
	}
	sum = (struct timeline_cell){.lead_ns = to->lead_ns, .name = to->name};
	timeline_cell_add(&sum, &one);
	to->lead_ns = sum.lead_ns;
	to->name = sum.name;
	to->busy_ns += b->busy_ns;
	to->count += b->count;
	return 0;
}

int timeline_load_buckets(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	struct bucketing g = {.ix = ix};
	int r = nodedb_snapshot_buckets(
		l, TIMELINE_FINE_NS, add_bucket, &g, &ix->bucket_ns, reterr);

	if (r < 0) {
		free(g.list);
		return r;
	}
	free(ix->buckets);
	ix->buckets = g.list;
	ix->bucket_count = g.count;
	return 0;
}

/* ---- GPUs ---- */

int timeline_load_gpus(struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct timeline_gpu *list;
	int node, gpu, time;
	int r = nodedb_snapshot_list(l, NODEDB_GPU_SAMPLES, &(struct scope){0}, 0, &t, reterr);

	if (r < 0)
		return r;
	list = calloc(t.row_count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	node = table_column(&t, "node");
	gpu = table_column(&t, "gpu");
	time = table_column(&t, "timestamp");
	for (size_t i = 0; i < t.row_count; i++) { /* newest first */
		struct timeline_gpu *g = &list[t.row_count - 1 - i];
		const char *name = table_text(&t, i, node);

		g->time_ns = table_int(&t, i, time);
		g->node = timeline_find_node(ix, name, strlen(name));
		g->gpu = (uint16_t)table_int(&t, i, gpu);
		for (size_t k = 0; k < ARRAY_SIZE(timeline_gpu_fields); k++) {
			int c = table_column(&t, timeline_gpu_fields[k].column);
			bool known = c >= 0 && sql_table_cell(&t, i, c)->type == SQL_INT;

			g->value[k] = known ? (float)((double)table_int(&t, i, c) *
						      timeline_gpu_fields[k].scale)
					    : NAN;
		}
	}
	free(ix->gpus);
	ix->gpus = list;
	ix->gpu_count = t.row_count;
	ix->older_gpus = t.truncated;
	return 0;
}
