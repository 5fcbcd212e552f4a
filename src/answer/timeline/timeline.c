/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - see timeline.h.
 *
 * A view that few rows lie in is drawn from the rows, any other from the index's sums. How many lie
 * in it the index knows beforehand, so that no view costs more than ROWS_MAX rows. */
#include "answer/timeline/timeline.h"

#include "answer/timeline/timeline_index_private.h"
#include "base/array.h"
#include "base/hash.h"

#define WIDTH_DEFAULT 1000
#define ROWS_MAX      30000 /* read one by one: 40 ms */
#define NAMES_MAX     4096

const char *const timeline_track_names[TRACK_KINDS] = {
	[TRACK_PROCESS] = "process",
	[TRACK_RANK] = "rank",
	[TRACK_THREAD] = "thread",
	[TRACK_STREAM] = "stream",
	[TRACK_HOST] = "host",
};

/* ---- names ---- */

static int timeline_name(struct timeline_view *v, const char *text)
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
	if (!peer || peer >= v->ix->peer_count)
		return -1;
	return timeline_name(
		v, FORMATTED(64, "%s %u",
			   v->ix->peers[peer].comm[0] ? v->ix->peers[peer].comm : "process",
			   v->ix->peers[peer].pid));
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
			    ? timeline_draw_rows(v, reterr)
			    : timeline_draw_sums(v);
	r = r ?: timeline_draw_processes(v);
	r = r ?: timeline_draw_ranks(v);
	r = r ?: timeline_draw_steps(v);
	r = r ?: timeline_draw_gpus(v);
	r = r ?: timeline_list_incidents(v, reterr);
	return r ?: timeline_count_calls(v, reterr);
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
