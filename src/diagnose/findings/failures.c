/* SPDX-License-Identifier: Apache-2.0 */
/* failures.c - see failures.h.
 *
 * One mistake: calls of one family of processes (all that one ancestor forked, as far as the
 * recording shows it), of one kind (CUDA or NCCL), that returned the same error. Answers that are no
 * failures (not ready, already enabled, in progress) are left out, and so are errors that other
 * detectors report (memory, graph captures).
 *
 * A process that is broken returns errors from then on, and what differs from the first one is a
 * consequence. Broken is a process after a sticky error, which every later call returns, and one that
 * was forked from a process that had used CUDA: there it cannot be initialised, whatever is called.
 *
 * Order of the input does not matter. O(n log n) for n failures. */
#include "diagnose/findings/failures.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/accounts/lineage.h"
#include "base/array.h"
#include "wire/op_kind.h"

#define CODE_NOT_INITIALIZED 3  /* of runtime and driver */
#define FORKS_FOLLOWED       16 /* of processes that could not use CUDA themselves */

void failures_done(struct failure_list *l)
{
	free(l->items);
	*l = (struct failure_list){0};
}

/* Pinned host memory is the host's: the rest of "out of memory" is told by detect_memory.c. */
static bool is_told_elsewhere(const struct event *e, enum error_class class)
{
	bool host = (e->source == SOURCE_CUDA && e->op == CUDA_HOST_ALLOC) ||
		    (e->source == SOURCE_DRIVER && e->op == DRIVER_HOST_ALLOC);

	return (class == ERROR_MEMORY && !host) || class == ERROR_CAPTURE;
}

static bool is_error(const struct event *e)
{
	enum error_class class;

	if (!op_kind_is_gpu(e->source) || e->ret <= 0 || (e->flags & WIRE_NESTED) ||
		!baseline_is_sane(e))
		return false;
	class = error_find(e->source, e->ret)->class;
	return class != ERROR_EXPECTED && !is_told_elsewhere(e, class);
}

static int by_time(const struct event *x, const struct event *y)
{
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start.ns != y->start.ns)
		return x->start.ns < y->start.ns ? -1 : 1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return (x > y) - (x < y);
}

static int by_process(const void *a, const void *b)
{
	return by_time(((const struct failure *)a)->event, ((const struct failure *)b)->event);
}

/* 0: the two are told together. */
static int compare_mistake(const struct failure *x, const struct failure *y)
{
	bool nccl_x = failure_is_nccl(x->event), nccl_y = failure_is_nccl(y->event);

	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	if (nccl_x != nccl_y)
		return nccl_x ? 1 : -1;
	if (x->event->ret != y->event->ret)
		return x->event->ret < y->event->ret ? -1 : 1;
	return !x->forked_from - !y->forked_from;
}

static int by_mistake(const void *a, const void *b)
{
	int r = compare_mistake(a, b);

	return r ? r : by_process(a, b);
}

static int collect(const struct recording *rec, struct failure_list *ret)
{
	size_t room = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		if (!is_error(&rec->events[i]))
			continue;
		if (ARRAY_RESERVE(ret->items, room, ret->count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		ret->items[ret->count++] = (struct failure){.event = &rec->events[i]};
	}
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_process);
	return 0;
}

/* Whether CUDA could not be initialised in @pid itself: its calls are no use of CUDA. */
static bool is_uninitialised(const struct failure_list *l, uint32_t pid)
{
	size_t low = 0, high = l->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->items[middle].event->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < l->count && l->items[low].event->pid == pid; low++)
		if (!failure_is_nccl(l->items[low].event) &&
			l->items[low].event->ret == CODE_NOT_INITIALIZED)
			return true;
	return false;
}

static uint32_t forked_from(const struct detector_input *s, const struct lineage *lines,
	const struct failure_list *l, const struct event *e)
{
	uint32_t pid = e->pid;

	if (failure_is_nccl(e) || e->ret != CODE_NOT_INITIALIZED)
		return 0;
	for (int i = 0; i < FORKS_FOLLOWED; i++) {
		if (!lineage_forked_after_use(lines, s->ops, pid, e->start.ns, &pid))
			return 0;
		if (!is_uninitialised(l, pid))
			return pid;
	}
	return 0;
}

/* Names the family of each failure, which are in order of process and time. */
static void place(
	const struct detector_input *s, const struct lineage *lines, struct failure_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		struct failure *f = &l->items[i], *last = i ? f - 1 : NULL;

		f->family = lineage_root(lines, f->event->pid, f->event->start.ns);
		if (last && last->event->pid == f->event->pid && last->event->ret == f->event->ret)
			f->forked_from = last->forked_from;
		else
			f->forked_from = forked_from(s, lines, l, f->event);
	}
}

/* Leaves out the consequences of what broke a process. */
static void leave_consequences(struct failure_list *l)
{
	const struct event *broken = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct event *e = l->items[i].event;

		if (broken && broken->pid != e->pid)
			broken = NULL;
		if (broken &&
			(broken->ret != e->ret || failure_is_nccl(broken) != failure_is_nccl(e)))
			continue;
		l->items[kept++] = l->items[i];
		if (!broken && (l->items[i].forked_from || error_find(e->source, e->ret)->sticky))
			broken = e;
	}
	l->count = kept;
}

int failures_find(const struct detector_input *s, struct failure_list *ret)
{
	_cleanup_(lineage_done) struct lineage lines = {0};
	int r;

	*ret = (struct failure_list){0};
	r = collect(s->rec, ret);
	if (r < 0 || !ret->count)
		return r;
	r = lineage_build(s->rec, &lines);
	if (r < 0)
		return r;
	place(s, &lines, ret);
	leave_consequences(ret);
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_mistake);
	return 0;
}

struct error_group failures_group(const struct failure *items, const struct failure *end)
{
	struct error_group g = {.items = items, .first = items->event, .last_ns = INT64_MIN};

	g.row = error_find(items->event->source, items->event->ret);
	for (; items + g.count < end && !compare_mistake(items, items + g.count); g.count++) {
		const struct event *e = items[g.count].event;

		g.calls += MAX(e->weight, 1U);
		g.last_ns = MAX(g.last_ns, e->start.ns);
		g.processes += !g.count || e->pid != items[g.count - 1].event->pid;
		if (e->start.ns < g.first->start.ns ||
			(e->start.ns == g.first->start.ns && e->seq < g.first->seq))
			g.first = e;
	}
	return g;
}
