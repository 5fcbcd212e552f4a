/* SPDX-License-Identifier: Apache-2.0 */
/* gap.c - pauses between a wait that returned and the next call that gives the GPU work.
 *
 * Only calls that the probes marked WIRE_AFTER_GAP end a pause: between the wait and such a call
 * the thread made none, recorded or not, that gives the GPU work, so nothing that it queued can still
 * run, but on streams it did not wait for. Calls that give it none (an allocation) cut a pause in two. A pause in which another thread of the process has a recorded call is none.
 * Files without that mark (published ones) have no pauses.
 *
 * The excess of a pause is its length less what a healthy loop needs: 1 ms (what the probes leave
 * out) or 5 % of the ordinary step, whichever is more.
 *
 * What it was spent on: the largest of the parts in which the thread was off the CPU, if it has 30
 * % of the excess, because those are recorded facts; else running, if that has half; else unknown.
 * A busy machine stretches whatever runs: losing the CPU counts only if it is more than running.
 *
 * O(n log n) in calls. At most a million pauses, the first of each process first. */
#include "diagnose/calls/gap.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/calls/part.h"
#include "base/array.h"
#include "base/search.h"
#include "base/sort.h"
#include "wire/op_kind.h"

#define NEED_NS      (1 * (int64_t)NS_PER_MS)
#define NEED_PARTS   20 /* 5 % of a step */
#define AWAY_SHARE   0.3
#define RUN_SHARE    0.5
#define GAPS_MAX     (1U << 20)
#define SECTOR_BYTES 512

struct call {
	int64_t start_ns, end_ns;
	int64_t latest_ns; /* end of any call of the process up to here */
	size_t event;
	uint32_t pid, tid;
};

static bool is_call(const struct event *e)
{
	return op_kind_is_gpu(e->source) && !(e->flags & WIRE_NESTED) && baseline_is_sane(e);
}

static int by_process_and_time(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->pid != y->pid || x->tid == y->tid)
		return by_process_and_time(a, b);
	return x->tid < y->tid ? -1 : 1;
}

static int calls_collect(const struct recording *rec, struct call **ret, size_t *ret_count)
{
	_cleanup_free_ struct call *calls = NULL;
	size_t n = 0, room = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!is_call(e))
			continue;
		if (ARRAY_RESERVE(calls, room, n + 1, CORRELATE_ROWS_MAX) < 0)
			return -ENOMEM;
		calls[n++] = (struct call){e->start.ns, event_end_ns(e), 0, i, e->pid, e->tid};
	}
	*ret = TAKE(calls);
	*ret_count = n;
	return 0;
}

/* In order of process and time, each with the latest end so far. */
static void calls_order(struct call *calls, size_t n)
{
	SORT_DEALT(calls, n, by_process_and_time, offsetof(struct call, pid));
	for (size_t i = 0; i < n; i++) {
		calls[i].latest_ns = calls[i].end_ns;
		if (i && calls[i - 1].pid == calls[i].pid)
			calls[i].latest_ns = MAX(calls[i].latest_ns, calls[i - 1].latest_ns);
	}
}

/* Whether a call of the process is under way at some time in the pause. */
static bool is_busy(const struct call *calls, size_t n, const struct span *s)
{
	size_t after = LOWER_BOUND(i, n,
		calls[i].pid < s->pid || (calls[i].pid == s->pid && calls[i].start_ns < s->end_ns));

	return after && calls[after - 1].pid == s->pid && calls[after - 1].latest_ns > s->start_ns;
}

static uint64_t excess_of(const struct step_list *steps, int64_t length_ns)
{
	int64_t need = NEED_NS;

	if (steps)
		need = MAX(need, (int64_t)(steps->ordinary_ns / NEED_PARTS));
	return length_ns > need ? (uint64_t)(length_ns - need) : 0;
}

static bool leaves_idle(const struct event *e)
{
	return step_is_wait(e) || op_kind_is_workless(e->source, e->op);
}

/* @calls in order of thread and time; pauses end at marked calls right after a wait or a call without work. */
static size_t gaps_cut(const struct recording *rec, const struct step_table *steps,
	const struct call *calls, size_t n, struct gap *out)
{
	const struct step_list *list = NULL;
	size_t count = 0;

	for (size_t i = 1; i < n && count < GAPS_MAX; i++) {
		const struct call *c = &calls[i], *before = &calls[i - 1];
		struct gap g = {.wait = before->event, .next = c->event, .step = SIZE_MAX};

		if (!(rec->events[c->event].flags & WIRE_AFTER_GAP) || before->tid != c->tid ||
			before->pid != c->pid || !leaves_idle(&rec->events[before->event]))
			continue;
		if (!list || list->pid != c->pid)
			list = steps_of(steps, c->pid);
		g.span = (struct span){before->end_ns, c->start_ns,
			excess_of(list, c->start_ns - before->end_ns), c->tid, c->pid};
		if (list)
			g.step = step_at(list, c->start_ns);
		if (g.span.excess_ns)
			out[count++] = g;
	}
	return count;
}

static void count_bytes(
	const struct recording *rec, const struct attribution_index *x, struct gap *g)
{
	const struct interval_list *l = &x->by_process;

	for (size_t i = interval_seek(l, g->span.pid, g->span.start_ns); i < l->count; i++) {
		const struct event *e = &rec->events[l->items[i].event];

		if (l->items[i].key != g->span.pid || l->items[i].start_ns >= g->span.end_ns)
			break;
		if (e->op == IO_READ)
			g->read += MIN(e->arg0, UINT64_C(1) << 40) * SECTOR_BYTES;
		else if (e->op == IO_WRITE)
			g->written += MIN(e->arg0, UINT64_C(1) << 40) * SECTOR_BYTES;
		else if (e->op == IO_FLUSH || e->op == IO_DISCARD)
			g->written += SECTOR_BYTES; /* moves nothing, but is waited for */
	}
}

static enum idle idle_of_cause(enum cause c, const struct gap *g)
{
	switch (c) {
	case CAUSE_PREEMPTED:
	case CAUSE_RUN_QUEUE: return IDLE_CPU;
	/* Reads are asked for in the reader's own name; writes often in others'. */
	case CAUSE_BLOCK_IO:
		if (!g->read && !g->written)
			return IDLE_FILES;
		return g->read >= g->written ? IDLE_READ : IDLE_WRITE;
	case CAUSE_NETWORK: return IDLE_NETWORK;
	case CAUSE_RECLAIM: return IDLE_RECLAIM;
	case CAUSE_ASLEEP: return IDLE_ASLEEP;
	case CAUSE_HOST_CODE: return IDLE_HOST_CODE;
	default: return IDLE_UNKNOWN;
	}
}

static void gap_judge(struct gap *g, const struct part *parts)
{
	uint64_t ns[IDLE_COUNT] = {0};
	double enough = AWAY_SHARE * (double)g->span.excess_ns;
	int best = IDLE_READ;

	for (size_t i = 0; i < g->parts; i++)
		ns[idle_of_cause(parts[i].cause, g)] += parts[i].ns;
	for (int i = IDLE_READ; i < IDLE_HOST_CODE; i++)
		if (ns[i] > ns[best])
			best = i;
	if ((double)ns[best] < enough && ns[IDLE_CPU] >= ns[IDLE_HOST_CODE])
		best = IDLE_CPU;
	if ((double)ns[best] >= enough)
		g->idle = (enum idle)best;
	else if ((double)ns[IDLE_HOST_CODE] >= RUN_SHARE * (double)g->span.excess_ns)
		g->idle = IDLE_HOST_CODE;
	else
		g->idle = IDLE_UNKNOWN;
}

static int gaps_explain(const struct recording *rec, struct gap_list *l)
{
	_cleanup_free_ struct span *spans = calloc(l->count + 1, sizeof(*spans));
	int r;

	if (!spans)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++)
		spans[i] = l->items[i].span;
	r = attribute_index_spans(rec, spans, l->count, &l->index);
	for (size_t i = 0; r == 0 && i < l->count; i++) {
		struct gap *g = &l->items[i];

		g->part = l->parts.count;
		r = attribute_pause(rec, &l->index, &g->span, i, &l->parts);
		if (r < 0)
			break;
		g->parts = l->parts.count - g->part;
		count_bytes(rec, &l->index, g);
		gap_judge(g, l->parts.items + g->part);
	}
	return r;
}

int gaps_find(const struct recording *rec, const struct step_table *steps, struct gap_list *ret)
{
	_cleanup_free_ struct call *calls = NULL;
	size_t n, kept = 0;

	*ret = (struct gap_list){0};
	if (calls_collect(rec, &calls, &n) < 0)
		return -ENOMEM;
	SORT_DEALT(calls, n, by_thread_and_time, offsetof(struct call, pid),
		offsetof(struct call, tid));
	ret->items = calloc(MIN(n, (size_t)GAPS_MAX) + 1, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	ret->count = gaps_cut(rec, steps, calls, n, ret->items);
	calls_order(calls, n);
	for (size_t i = 0; i < ret->count; i++)
		if (!is_busy(calls, n, &ret->items[i].span))
			ret->items[kept++] = ret->items[i];
	ret->count = kept;
	return gaps_explain(rec, ret);
}

void gaps_done(struct gap_list *l)
{
	free(l->items);
	part_list_done(&l->parts);
	attribute_index_done(&l->index);
	*l = (struct gap_list){0};
}
