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
#include "base/search.h"
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

ORDER(by_process, struct failure,
	ASCENDING(event->pid) ?: ASCENDING(event->start.ns) ?: ASCENDING(event->seq)
					?: ASCENDING(event))

/* Equal are two that are told together. */
ORDER(by_mistake_alone, struct failure,
	ASCENDING(family) ?: COMPARE(failure_is_nccl(x->event), failure_is_nccl(y->event))
			  ?: ASCENDING(event->ret) ?: COMPARE(!x->forked_from, !y->forked_from))

ORDER(by_mistake, struct failure, by_mistake_alone(x, y) ?: by_process(x, y))

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
	size_t at = LOWER_BOUND(i, l->count, l->items[i].event->pid < pid);

	for (; at < l->count && l->items[at].event->pid == pid; at++)
		if (!failure_is_nccl(l->items[at].event) &&
			l->items[at].event->ret == CODE_NOT_INITIALIZED)
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
	for (; items + g.count < end && !by_mistake_alone(items, items + g.count); g.count++) {
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
