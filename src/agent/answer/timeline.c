/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - see timeline.h.
 *
 * A view that few rows lie in is drawn from the rows, any other from the index's sums. How many lie
 * in it the index knows beforehand, so that no view costs more than ROWS_MAX rows. */
#include "agent/answer/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answer/timeline_private.h"
#include "base/array.h"
#include "base/hash.h"

#define WIDTH_DEFAULT 1000
#define ROWS_MAX      30000 /* read one by one: 40 ms */
#define SLICES_MAX    12000 /* of an answer: 0.5 MB of JSON */
#define TRACK_SLICES  1024  /* of a track, or two for each pixel */
#define NAMES_MAX     4096

const char *const timeline_track_names[TRACK_KINDS] = {
	[TRACK_PROCESS] = "process",
	[TRACK_RANK] = "rank",
	[TRACK_THREAD] = "thread",
	[TRACK_STREAM] = "stream",
	[TRACK_HOST] = "host",
};

/* ---- names ---- */

int timeline_name(struct timeline_view *v, const char *text)
{
	struct timeline_answer *a = v->a;
	uint64_t id = hash_bytes(text, strlen(text)) | 1;
	uintptr_t at = (uintptr_t)idmap_get(&v->names, id);

	if (at)
		return (int)at - 1;
	if (ARRAY_RESERVE(a->names, a->name_room, a->name_count + 1, NAMES_MAX) < 0 ||
		idmap_put(&v->names, id, (void *)(uintptr_t)(a->name_count + 1)) < 0)
		return -1;
	snprintf(a->names[a->name_count], sizeof(a->names[0]), "%s", text);
	return (int)a->name_count++;
}

int timeline_op_name(struct timeline_view *v, unsigned name)
{
	char scratch[32];

	if (v->op_names[name] < 0)
		v->op_names[name] = timeline_name(
			v, wire_op_name(name / WIRE_OP_MAX, name % WIRE_OP_MAX, scratch));
	return v->op_names[name];
}

int timeline_peer_name(struct timeline_view *v, unsigned peer)
{
	char text[64];

	if (!peer || peer >= v->ix->peer_count)
		return -1;
	snprintf(text, sizeof(text), "%s %u",
		v->ix->peers[peer].comm[0] ? v->ix->peers[peer].comm : "process",
		v->ix->peers[peer].pid);
	return timeline_name(v, text);
}

/* ---- which tracks ---- */

static bool is_asked(
	const struct question *q, const struct timeline_index *ix, const struct timeline_entry *e)
{
	const struct timeline_process *p = &ix->processes[e->process];
	bool found = !q->scope.pid_count;

	for (size_t i = 0; i < q->scope.pid_count && !found; i++)
		found = q->scope.pids[i] == p->pid;
	if (!found || (q->scope.node && strcmp(q->scope.node, ix->nodes[p->node]) != 0 &&
			      ix->nodes[p->node][0]))
		return false;
	return !q->request->kinds[0] ||
	       timeline_in_list(q->request->kinds, timeline_track_names[e->kind]);
}

bool timeline_in_list(const char *list, const char *name)
{
	for (size_t len; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len == strlen(name) && !strncmp(list, name, len))
			return true;
	}
	return false;
}

static int choose_tracks(struct timeline_view *v)
{
	struct timeline_answer *a = v->a;
	size_t limit = answer_limit(v->q->request->limit, TIMELINE_TRACKS, TIMELINE_TRACKS_MAX);
	size_t seen = 0;

	a->tracks = calloc(limit + 1, sizeof(*a->tracks));
	if (!a->tracks)
		return -ENOMEM;
	for (size_t i = 0; i < v->ix->entry_count; i++) {
		const struct timeline_entry *e = &v->ix->entries[i];
		const struct timeline_lane *l = e->lane      ? e->lane
						: e->waiting ? e->waiting
							     : e->blocked;

		if (!is_asked(v->q, v->ix, e))
			continue;
		if (seen++ < v->q->request->offset || a->track_count == limit) {
			a->other_tracks++;
			continue;
		}
		a->tracks[a->track_count++] = (struct timeline_track){.kind = e->kind,
			.process = &v->ix->processes[e->process],
			.entry = e,
			.tid = l ? l->key.tid : 0,
			.stream = l ? l->key.stream : 0,
			.name = l ? l->name : "",
			.total_ns = e->total_ns};
	}
	return 0;
}

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

static int draw_sums(struct timeline_view *v)
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

static int draw_rows(struct timeline_view *v, struct errinfo *reterr)
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

/* ---- all ---- */

static void choose_bins(struct timeline_view *v)
{
	int64_t span = v->q->scope.to_ns - v->q->scope.from_ns + 1;
	unsigned shift = 0;

	v->width = answer_limit(v->q->request->points, WIDTH_DEFAULT, TIMELINE_WIDTH_MAX);
	v->width = MAX(v->width, (size_t)TIMELINE_WIDTH_MIN);
	while (shift < 60 && (span >> shift) > (int64_t)v->width)
		shift++;
	v->a->shift = shift;
}

static int draw(struct timeline_view *v, struct errinfo *reterr)
{
	int64_t from = v->q->scope.from_ns, to = v->q->scope.to_ns;
	int r = choose_tracks(v);

	v->early_ns = from - v->ix->lanes.long_ns;
	if (r == 0 && v->ix->has_rows)
		r = timeline_lanes_rows(&v->ix->lanes, v->early_ns,
			    to + (v->ix->is_published ? v->ix->lanes.long_ns : 0)) <= ROWS_MAX
			    ? draw_rows(v, reterr)
			    : draw_sums(v);
	if (r == 0)
		r = timeline_draw_processes(v);
	if (r == 0)
		r = timeline_draw_ranks(v);
	if (r == 0)
		r = timeline_draw_steps(v);
	if (r == 0)
		r = timeline_draw_gpus(v);
	if (r == 0)
		r = timeline_list_incidents(v, reterr);
	if (r == 0)
		r = timeline_count_calls(v, reterr);
	return r;
}

int answer_timeline(const struct question *q, const struct timeline_index *ix,
	struct timeline_answer *ret, struct errinfo *reterr)
{
	_cleanup_(timeline_answer_done) struct timeline_answer a = {0};
	struct timeline_view v = {.q = q,
		.ix = ix,
		.a = &a,
		.lists = IDMAP_INIT(3 * TIMELINE_TRACKS_MAX),
		.names = IDMAP_INIT(NAMES_MAX)};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(v.op_names); i++)
		v.op_names[i] = -1;
	a.origin_ns = ix->lanes.origin_ns;
	a.from_ns = q->scope.from_ns - a.origin_ns;
	a.to_ns = q->scope.to_ns - a.origin_ns;
	a.begin_ns = ix->range.first_ns - a.origin_ns;
	a.end_ns = ix->range.last_ns - a.origin_ns;
	choose_bins(&v);
	a.waiting_name = timeline_name(&v, "waiting for a CPU");
	a.blocked_name = timeline_name(&v, ix->is_published ? "off the CPU" : "blocked");
	r = draw(&v, reterr);
	idmap_done(&v.lists);
	idmap_done(&v.names);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct timeline_answer){0};
	return 0;
}

static void list_done(struct timeline_list *l)
{
	free(l->bins);
	free(l->slices);
}

void timeline_answer_done(struct timeline_answer *a)
{
	for (size_t i = 0; i < a->track_count; i++) {
		list_done(&a->tracks[i].calls);
		list_done(&a->tracks[i].waiting);
		list_done(&a->tracks[i].blocked);
	}
	for (size_t i = 0; i < a->series_count; i++)
		free(a->series[i].points);
	free(a->names);
	free(a->tracks);
	free(a->series);
	free(a->incidents);
	free(a->bars);
	free(a->counts);
	*a = (struct timeline_answer){0};
}
