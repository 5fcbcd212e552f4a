/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_steps.c - steps of training on a time line: those that the account of steps has found
 * (steps.h), slow ones marked. Steps of one process that fall into one pixel are one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answer/steps.h"
#include "answer/timeline/timeline_private.h"
#include "base/array.h"

#define STEPS_MAX  (512u << 10) /* 16 MB */
#define DRAWN_MAX  8192
#define STEP_MAX_S 3600 /* a longer one is not looked for before a view */

static int by_start(const void *a, const void *b)
{
	const struct timeline_step *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

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
	if (s.count)
		qsort(s.items, s.count, sizeof(*s.items), by_start);
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
	size_t low = 0, high = ix->step_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ix->steps[middle].start_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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
	if (r == -ENOBUFS)
		a->truncated = true;
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
