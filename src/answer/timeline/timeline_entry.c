/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_entry.c - the tracks that a time line can draw: of threads and streams what lanes there are,
 * of processes those that took part in collectives and whose calls were counted. */

#include "base/search.h"
#include "answer/timeline/timeline_index_private.h"
#include "answer/answer.h"
#include "answer/steps.h"
#include "base/array.h"
#include "base/search.h"

static struct timeline_lane *lane_of(
	const struct timeline_index *ix, struct timeline_key key, enum timeline_kind kind)
{
	key.kind = kind;
	return timeline_lane_get(&ix->lanes, &key);
}

/* The track that @l is the first lane of; false: it is not, or belongs to no process. */
static bool make_entry(const struct timeline_index *ix, const struct idmap *processes,
	const struct timeline_lane *l, struct timeline_entry *e)
{
	static const enum timeline_track_kind kinds[TIMELINE_KINDS] = {
		[TIMELINE_CALLS] = TRACK_THREAD,
		[TIMELINE_WAITING] = TRACK_THREAD,
		[TIMELINE_BLOCKED] = TRACK_THREAD,
		[TIMELINE_STREAM] = TRACK_STREAM,
		[TIMELINE_HOST] = TRACK_HOST};
	uintptr_t process =
		(uintptr_t)idmap_get(processes, timeline_process_id(l->key.node, l->key.pid));

	if (!process)
		return false;
	*e = (struct timeline_entry){.kind = kinds[l->key.kind],
		.process = (uint32_t)(process - 1),
		.lane = l,
		.total_ns = l->busy_ns};
	if (e->kind != TRACK_THREAD)
		return true;
	e->lane = lane_of(ix, l->key, TIMELINE_CALLS);
	e->waiting = lane_of(ix, l->key, TIMELINE_WAITING);
	e->blocked = lane_of(ix, l->key, TIMELINE_BLOCKED);
	e->total_ns = e->lane ? e->lane->busy_ns : 0;
	return l == (e->lane ? e->lane : e->waiting ? e->waiting : e->blocked);
}

static int by_process(const void *a, const void *b)
{
	const struct timeline_entry *x = a, *y = b;
	const struct timeline_lane *p = x->lane ? x->lane : x->waiting ? x->waiting : x->blocked;
	const struct timeline_lane *q = y->lane ? y->lane : y->waiting ? y->waiting : y->blocked;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (!p || !q)
		return 0;
	if (p->key.tid != q->key.tid)
		return p->key.tid < q->key.tid ? -1 : 1;
	return (p->key.stream > q->key.stream) - (p->key.stream < q->key.stream);
}

static void add_entry(const struct idmap *processes, uint64_t id, bool *seen,
	enum timeline_track_kind kind, struct timeline_entry *list, size_t *n)
{
	uintptr_t at = (uintptr_t)idmap_get(processes, id);

	if (!at || seen[at - 1])
		return;
	seen[at - 1] = true;
	list[(*n)++] = (struct timeline_entry){.kind = kind, .process = (uint32_t)(at - 1)};
}

/* Tracks for processes that took part in collectives, and for those whose calls were counted. */
static int add_process_tracks(struct timeline_index *ix, const struct idmap *processes,
	struct timeline_entry *list, size_t *n)
{
	_cleanup_free_ bool *ranks = calloc(ix->process_count + 1, sizeof(*ranks));
	_cleanup_free_ bool *counted = calloc(ix->process_count + 1, sizeof(*counted));

	if (!ranks || !counted)
		return -ENOMEM;
	for (size_t i = 0; i < ix->collective_count; i++)
		add_entry(processes,
			timeline_process_id(ix->collectives[i].node, ix->collectives[i].pid), ranks,
			TRACK_RANK, list, n);
	for (size_t i = 0; i < ix->bucket_count; i++)
		add_entry(processes, timeline_process_id(ix->buckets[i].node, ix->buckets[i].pid),
			counted, TRACK_PROCESS, list, n);
	for (size_t i = 0; i < *n; i++)
		if (list[i].kind == TRACK_PROCESS)
			list[i].total_ns = ix->processes[list[i].process].busy_ns;
	return 0;
}

int timeline_list_entries(struct timeline_index *ix)
{
	struct idmap processes = IDMAP_INIT(TIMELINE_PROCESSES_MAX);
	size_t room = ix->lanes.count + 2 * ix->process_count + 1, n = 0;
	struct timeline_entry *list = calloc(room, sizeof(*list));
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ix->process_count; i++)
		r = idmap_put(&processes,
			timeline_process_id(ix->processes[i].node, ix->processes[i].pid),
			(void *)(uintptr_t)(i + 1));
	for (size_t i = 0; r == 0 && i < ix->lanes.count; i++)
		if (make_entry(ix, &processes, ix->lanes.list[i], &list[n]))
			n++;
	r = r ?: add_process_tracks(ix, &processes, list, &n);
	if (r == 0) {
		SORT(list, n, by_process);
		free(ix->entries);
		ix->entries = TAKE(list);
		ix->entry_count = n;
	}
	free(list);
	idmap_done(&processes);
	return r;
}

/* the processes of a time line: those of the recording's table, and those that only
 * rows know of; the busiest first. */

static void take_process(
	struct timeline_index *ix, const struct sql_table *t, size_t i, struct timeline_process *p)
{
	int rank = table_column(t, "rank");
	const char *node = table_text(t, i, table_column(t, "node"));

	*p = (struct timeline_process){.pid = (uint32_t)table_int(t, i, table_column(t, "pid")),
		.rank = -1,
		.node = timeline_find_node(ix, node, strlen(node))};
	if (rank >= 0 && sql_table_cell(t, i, rank)->type == SQL_INT)
		p->rank = (int32_t)table_int(t, i, rank);
	snprintf(p->comm, sizeof(p->comm), "%s", table_text(t, i, table_column(t, "comm")));
	snprintf(
		p->command, sizeof(p->command), "%s", table_text(t, i, table_column(t, "cmdline")));
}

static struct timeline_process *find_process(
	struct idmap *at, struct timeline_process *list, size_t *count, uint16_t node, uint32_t pid)
{
	struct timeline_process *p = idmap_get(at, timeline_process_id(node, pid));

	if (p || *count == TIMELINE_PROCESSES_MAX)
		return p;
	p = &list[*count];
	if (idmap_put(at, timeline_process_id(node, pid), p) < 0)
		return NULL;
	*p = (struct timeline_process){.node = node, .pid = pid, .rank = -1};
	++*count;
	return p;
}

/* Lanes say how busy it is, and of those that no table knows that there is one. */
static int add_lanes(struct timeline_index *ix, struct timeline_process *list, size_t *count)
{
	struct idmap at = IDMAP_INIT(TIMELINE_PROCESSES_MAX);
	int r = 0;

	for (size_t i = *count; r == 0 && i-- > 0;)
		r = idmap_put(&at, timeline_process_id(list[i].node, list[i].pid), &list[i]);
	for (size_t i = 0; r == 0 && i < ix->lanes.count; i++) {
		const struct timeline_lane *l = ix->lanes.list[i];
		struct timeline_process *p =
			find_process(&at, list, count, l->key.node, l->key.pid);

		if (!p)
			continue;
		if (p->rank < 0)
			p->rank = l->rank;
		if (l->name[0] && (!p->comm[0] || l->key.tid == l->key.pid))
			memcpy(p->comm, l->name, sizeof(p->comm));
		if (l->key.kind == TIMELINE_CALLS && !ix->bucket_count)
			p->busy_ns += l->busy_ns;
	}
	for (size_t i = 0; r == 0 && i < ix->bucket_count; i++) {
		const struct timeline_bucket *b = &ix->buckets[i];
		struct timeline_process *p = find_process(&at, list, count, b->node, b->pid);

		if (p)
			p->busy_ns += b->busy_ns;
	}
	for (size_t i = 0; r == 0 && i < ix->collective_count; i++) {
		const struct timeline_collective *c = &ix->collectives[i];
		struct timeline_process *p = find_process(&at, list, count, c->node, c->pid);

		if (p && p->rank < 0)
			p->rank = c->rank;
	}
	idmap_done(&at);
	return r == -ENOBUFS ? 0 : r;
}

ORDER(by_use, struct timeline_process, DESCENDING(busy_ns) ?: ASCENDING(node) ?: ASCENDING(pid))

int timeline_load_processes(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	_cleanup_free_ struct timeline_process *list = NULL;
	size_t count = 0;
	int r = nodedb_snapshot_list(
		l, NODEDB_PROCESSES, &(struct scope){0}, TIMELINE_PROCESSES_MAX / 2, &t, reterr);

	if (r < 0)
		return r;
	list = calloc(TIMELINE_PROCESSES_MAX, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (; count < t.row_count; count++)
		take_process(ix, &t, count, &list[count]);
	r = add_lanes(ix, list, &count);
	if (r < 0)
		return r;
	SORT(list, count, by_use);
	free(ix->processes);
	ix->processes = reallocarray(list, count + 1, sizeof(*list));
	ix->processes = ix->processes ? ix->processes : list;
	ix->process_count = count;
	list = NULL;
	return 0;
}

/* steps of training on a time line: those that the account of steps has found
 * (steps.h), slow ones marked. Steps of one process that fall into one pixel are one. */

#define STEPS_MAX  (512u << 10) /* 16 MB */
#define DRAWN_MAX  8192
#define STEP_MAX_S 3600 /* a longer one is not looked for before a view */

ORDER(by_start, struct timeline_step, ASCENDING(start_ns) ?: ASCENDING(pid))

static uint16_t node_of(const struct timeline_index *ix, const char *name)
{
	for (size_t i = 0; i < ix->node_count; i++)
		if (!strcmp(ix->nodes[i], name))
			return (uint16_t)i;
	return 0;
}

static int add_row(
	struct timeline_steps *s, const struct timeline_index *ix, const struct steps_row *row)
{
	const struct step_account *a = row->account;
	uint16_t node = node_of(ix, row->node);

	for (size_t i = 0; i < a->mark_count; i++) {
		int r = ARRAY_RESERVE(s->items, s->room, s->count + 1, (size_t)STEPS_MAX);

		if (r < 0)
			return r == -ENOBUFS ? 0 : r;
		s->items[s->count++] = (struct timeline_step){.start_ns = a->marks[i].start.ns,
			.dur_ns = a->marks[i].dur_ns,
			.pid = a->pid,
			.node = node,
			.is_slow = a->marks[i].is_slow};
	}
	return 0;
}

int timeline_steps_load(const struct timeline_index *ix, const char *path,
	struct timeline_steps *ret, struct errinfo *reterr)
{
	_cleanup_(steps_answer_done) struct steps_answer a = {0};
	struct timeline_steps s = {0};
	int r = steps_load(path, &(struct scope){0}, &a, reterr);

	for (size_t i = 0; r == 0 && i < a.count; i++)
		/* equal pieces of time are no steps */
		if (a.rows[i].account->origin != STEP_BY_TIME)
			r = add_row(&s, ix, &a.rows[i]);
	if (r < 0) {
		free(s.items);
		return r;
	}
	SORT(s.items, s.count, by_start);
	*ret = s;
	return 0;
}

void timeline_index_steps(struct timeline_index *ix, struct timeline_steps *steps)
{
	free(ix->steps);
	ix->steps = TAKE(steps->items);
	ix->step_count = steps->count;
	ix->steps_known = true;
	steps->count = 0;
}

static size_t first_after(const struct timeline_index *ix, int64_t ns)
{
	return LOWER_BOUND(i, ix->step_count, ix->steps[i].start_ns <= ns);
}

const struct timeline_step *timeline_index_step(
	const struct timeline_index *ix, const char *node, uint32_t pid, int64_t ns)
{
	uint16_t number = node_of(ix, node);
	int64_t early = ns - STEP_MAX_S * (int64_t)NS_PER_S;

	for (size_t i = first_after(ix, ns); i-- > 0;) {
		const struct timeline_step *s = &ix->steps[i];

		if (s->start_ns < early)
			return NULL;
		if (s->pid == pid && s->node == number)
			return s->start_ns + (int64_t)s->dur_ns > ns ? s : NULL;
	}
	return NULL;
}

/* ---- drawing ---- */

static bool is_asked(const struct timeline_view *v, const struct timeline_step *s)
{
	const struct scope *scope = &v->q->scope;
	bool found = !scope->pid_count;

	for (size_t i = 0; i < scope->pid_count && !found; i++)
		found = scope->pids[i] == s->pid;
	return found && (!scope->node || !strcmp(scope->node, v->ix->nodes[s->node])) &&
	       s->start_ns + (int64_t)s->dur_ns >= scope->from_ns;
}

static int add_step(struct timeline_view *v, struct idmap *last, const struct timeline_step *s)
{
	struct timeline_answer *a = v->a;
	int64_t start = s->start_ns - a->origin_ns;
	uint64_t id = ((uint64_t)s->node << 32 | s->pid) + 1;
	uintptr_t at = (uintptr_t)idmap_get(last, id);
	struct timeline_bar *bar = at ? &a->bars[at - 1] : NULL;
	int r;

	if (bar && bar->start_ns >> a->shift == start >> a->shift) {
		bar->dur_ns = (uint64_t)(start + (int64_t)s->dur_ns - bar->start_ns);
		bar->steps++;
		bar->slow += s->is_slow;
		return 0;
	}
	r = ARRAY_RESERVE(a->bars, a->bar_room, a->bar_count + 1, DRAWN_MAX);
	a->truncated |= r == -ENOBUFS;
	if (r < 0)
		return r == -ENOBUFS ? 0 : r;
	a->bars[a->bar_count++] = (struct timeline_bar){.start_ns = start,
		.dur_ns = s->dur_ns,
		.steps = 1,
		.slow = s->is_slow,
		.pid = s->pid,
		.node = s->node};
	return idmap_put(last, id, (void *)(uintptr_t)a->bar_count);
}

int timeline_draw_steps(struct timeline_view *v)
{
	struct idmap last = IDMAP_INIT(TIMELINE_PROCESSES_MAX);
	int64_t early = v->q->scope.from_ns - STEP_MAX_S * (int64_t)NS_PER_S;
	int r = 0;

	for (size_t i = first_after(v->ix, early); r == 0 && i < v->ix->step_count; i++) {
		if (v->ix->steps[i].start_ns > v->q->scope.to_ns)
			break;
		if (is_asked(v, &v->ix->steps[i]))
			r = add_step(v, &last, &v->ix->steps[i]);
	}
	idmap_done(&last);
	return r;
}
