/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_draw.c - fills the tracks of an answer: from the index's sums, or from rows. */
#include <errno.h>
#include <stdlib.h>

#include "answer/timeline/timeline_private.h"
#include "base/array.h"

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
		if (r == 0)
			r = sum_lane(v, t->entry->waiting, true, &t->waiting);
		if (r == 0)
			r = sum_lane(v, t->entry->blocked, true, &t->blocked);
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

static int by_start(const void *a, const void *b)
{
	const struct timeline_slice *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

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
	if (r == 0)
		r = timeline_lane_sum(&set, &lane, begin, end - 1, v->a->shift, add_bin, &f);
	v->first_bin = 0;
	free(lane.cells);
	l->slice_count = 0;
	v->a->is_events = false;
	return r;
}

static int finish_list(struct timeline_view *v, struct timeline_list *l, bool peers, bool nests)
{
	if (l->slice_count)
		qsort(l->slices, l->slice_count, sizeof(*l->slices), by_start);
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
	if (r == 0)
		r = nodedb_snapshot_slices(v->q->snapshot, &what, add_row, v, &skipped, reterr);
	if (r == 0)
		r = read_longs(v, &skipped, reterr);
	for (size_t i = 0; r == 0 && i < v->a->track_count; i++) {
		struct timeline_track *t = &v->a->tracks[i];

		r = finish_list(v, &t->calls, false, t->kind == TRACK_THREAD);
		if (r == 0)
			r = finish_list(v, &t->waiting, true, false);
		if (r == 0)
			r = finish_list(v, &t->blocked, true, false);
	}
	return r;
}
