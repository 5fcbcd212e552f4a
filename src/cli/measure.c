/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - figures of a demo, computed from rows and aggregates. See demo_scenario.h.
 *
 * Pure. What is ordinary for an op of a process comes from its aggregates, which hold every call,
 * else from its rows. Calls of the runtime only: those of the driver inside them are the same time.
 */
#include "cli/demo_scenario.h"

#include <math.h>

#include "base/text.h"
#include "stat/periodicity.h"
#include "stat/robust.h"
#include "wire/names.h"

#define CALLS_MIN    10   /* fewer say nothing about what is ordinary */
#define SLOW_FACTOR  8    /* of the median: far outside what jitter does */
#define FIRST_FACTOR 3.0  /* below that, a first call is a call like others */
#define ROWS_ENOUGH  0.9  /* of all calls: their rows count them */
#define ALIKE        1.25 /* slow calls of one kind are so near to each other */
#define SLOW_MAX     4096 /* slow calls of an op that are looked at for a period */

struct usual { /* an op of a process, all its calls */
	uint32_t pid;
	uint16_t op;
	struct sketch sketch;
};

static bool is_call(const struct event *e)
{
	return e->source == SOURCE_CUDA && !(e->flags & WIRE_NESTED);
}

static struct usual usual_of(const struct recording *rec, uint32_t pid, uint16_t op)
{
	struct usual u = {.pid = pid, .op = op};

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];

		if (a->pid == pid && a->op == op && a->source == SOURCE_CUDA &&
			!(a->flags & WIRE_NESTED))
			sketch_merge(&u.sketch, &a->sketch);
	}
	for (size_t i = 0; !rec->aggregate_count && i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (is_call(e) && e->pid == pid && e->op == op)
			sketch_add(&u.sketch, e->dur_ns, e->weight ? e->weight : 1);
	}
	return u;
}

static bool calls_span(const struct recording *rec, int64_t *ret_first, int64_t *ret_last)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!is_call(e))
			continue;
		first = e->start.ns < first ? e->start.ns : first;
		last = event_end_ns(e) > last ? event_end_ns(e) : last;
	}
	*ret_first = first;
	*ret_last = last;
	return first < last;
}

static uint64_t switches_of(const struct recording *rec, uint32_t pid)
{
	uint64_t n = 0;

	for (size_t i = 0; i < rec->event_count; i++)
		n += rec->events[i].source == SOURCE_HOST &&
		     rec->events[i].op == HOST_SCHED_SWITCH && rec->events[i].pid == pid;
	return n;
}

/* The first other program that an incident of the process names. */
static const char *neighbour_of(const struct incident *list, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++)
		for (int c = 0; c < list[i].cause_count && list[i].pid == pid; c++)
			if (list[i].causes[c].culprit[0] && list[i].causes[c].culprit_pid != pid)
				return list[i].causes[c].culprit;
	return NULL;
}

static bool put_slowdown(
	struct buf *out, const struct recording *rec, const struct incident *list, size_t count)
{
	const struct incident *worst = NULL;
	const char *neighbour;

	for (size_t i = 0; i < count; i++) {
		const struct incident *k = &list[i];

		if (k->slow_p50_ns > k->baseline_ns && k->baseline_ns &&
			(!worst || k->excess_ns > worst->excess_ns))
			worst = k;
	}
	if (!worst)
		return false;
	buf_printf(out, "%s take %s instead of %s", worst->unit, TEXT_DURATION(worst->slow_p50_ns),
		TEXT_DURATION(worst->baseline_ns));
	neighbour = neighbour_of(list, count, worst->pid);
	if (neighbour)
		buf_printf(out, " beside %s, %s", neighbour,
			TEXT_PLURAL(switches_of(rec, worst->pid), "context switches"));
	return true;
}

/* Rows are in order of time: the first of an op is the first that anybody made. */
static bool put_first_calls(struct buf *out, const struct recording *rec)
{
	const struct event *worst = NULL;
	double worst_ratio = FIRST_FACTOR;
	uint64_t worst_usual = 0;
	bool seen[WIRE_OP_MAX] = {0};

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		struct usual u;
		uint64_t median;

		if (!is_call(e) || e->op >= WIRE_OP_MAX || seen[e->op])
			continue;
		seen[e->op] = true;
		u = usual_of(rec, e->pid, e->op);
		median = sketch_quantile(&u.sketch, 0.5);
		if (u.sketch.count < CALLS_MIN || !median ||
			(double)e->dur_ns / (double)median <= worst_ratio)
			continue;
		worst = e;
		worst_usual = median;
		worst_ratio = (double)e->dur_ns / (double)median;
	}
	if (!worst)
		return false;
	buf_printf(out, "the first %s took %s, %sx a later one (%s)",
		WIRE_OP_NAME(SOURCE_CUDA, worst->op), TEXT_DURATION(worst->dur_ns),
		TEXT_RATIO(worst_ratio), TEXT_DURATION(worst_usual));
	return true;
}

static bool is_copy(uint16_t op)
{
	switch (op) {
	case CUDA_MEMCPY:
	case CUDA_MEMCPY_ASYNC:
	case CUDA_MEMCPY_2D:
	case CUDA_MEMCPY_2D_ASYNC:
	case CUDA_MEMCPY_PEER:
	case CUDA_MEMCPY_PEER_ASYNC:
	case CUDA_MEMCPY_3D:
	case CUDA_MEMCPY_3D_ASYNC: return true;
	default: return false;
	}
}

static bool put_copies(struct buf *out, const struct recording *rec)
{
	uint64_t ns = 0, bytes = 0, calls = 0;
	int64_t first, last;

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];

		if (a->source != SOURCE_CUDA || (a->flags & WIRE_NESTED) || !is_copy(a->op))
			continue;
		ns += a->sketch.sum;
		calls += a->sketch.count;
		bytes += a->sum_arg0;
	}
	if (!calls || !calls_span(rec, &first, &last))
		return false;
	buf_printf(out, "%s of wall time (%s) in %s of %s together",
		TEXT_PERCENT(fmin(1, (double)ns / (double)(last - first))),
		TEXT_DURATION((uint64_t)(last - first)), TEXT_PLURAL(calls, "copies"),
		TEXT_SIZE(bytes));
	return true;
}

/* Slow calls of an op: where they stand, ascending strictly, and how long they lasted. */
struct slow_calls {
	uint64_t at_us[SLOW_MAX], at_call[SLOW_MAX], dur_ns[SLOW_MAX];
	size_t count;
	uint64_t calls; /* that rows stand for */
};

/* What comes back is of one kind: slow calls far from their median are chance, and go. */
static uint64_t slow_keep_alike(struct slow_calls *slow)
{
	_cleanup_free_ uint64_t *sorted = calloc(SLOW_MAX, sizeof(*sorted));
	uint64_t median;
	size_t n = 0;

	if (!sorted)
		return 0;
	memcpy(sorted, slow->dur_ns, slow->count * sizeof(*sorted));
	robust_sort(sorted, slow->count);
	median = robust_median(sorted, slow->count);
	for (size_t i = 0; i < slow->count; i++) {
		double ratio = (double)slow->dur_ns[i] / (double)median;

		if (ratio < 1 / ALIKE || ratio > ALIKE)
			continue;
		slow->at_us[n] = slow->at_us[i];
		slow->at_call[n++] = slow->at_call[i];
	}
	slow->count = n;
	return median;
}

/* In calls where rows stand for all of them; else in time, and in calls by their mean rate. */
static bool period_find(const struct recording *rec, const struct usual *u,
	const struct slow_calls *slow, double *ret_calls)
{
	struct periodicity p;
	int64_t first, last;

	if (!calls_span(rec, &first, &last))
		return false;
	if ((double)slow->calls >= ROWS_ENOUGH * (double)u->sketch.count) {
		if (!periodicity_find(slow->at_call, slow->count, &p))
			return false;
		*ret_calls = p.period;
		return true;
	}
	if (!periodicity_find(slow->at_us, slow->count, &p))
		return false;
	*ret_calls = p.period * 1000 * (double)u->sketch.count / (double)(last - first);
	return true;
}

static bool put_period_of(struct buf *out, const struct recording *rec, const struct usual *u)
{
	_cleanup_free_ struct slow_calls *slow = calloc(1, sizeof(*slow));
	uint64_t median = sketch_quantile(&u->sketch, 0.5), slow_ns;
	double calls;
	uint64_t limit;

	if (!slow || u->sketch.count < CALLS_MIN || !median)
		return false;
	limit = SLOW_FACTOR * sketch_quantile(&u->sketch, 0.5);
	for (size_t i = 0; i < rec->event_count && slow->count < SLOW_MAX; i++) {
		const struct event *e = &rec->events[i];
		uint64_t us = (uint64_t)e->start.ns / 1000;
		size_t n = slow->count;

		if (!is_call(e) || e->pid != u->pid || e->op != u->op)
			continue;
		slow->calls += e->weight ? e->weight : 1;
		if (slow->calls == 1 || e->dur_ns <= limit || (n && us <= slow->at_us[n - 1]))
			continue; /* the first call is slow for another reason */
		slow->at_us[n] = us;
		slow->at_call[n] = slow->calls;
		slow->dur_ns[n] = e->dur_ns;
		slow->count++;
	}
	slow_ns = slow_keep_alike(slow);
	if (!period_find(rec, u, slow, &calls))
		return false;
	buf_printf(out, "%s %sx slower (%s -> %s)", WIRE_OP_NAME(SOURCE_CUDA, u->op),
		TEXT_RATIO((double)slow_ns / (double)median), TEXT_DURATION(median),
		TEXT_DURATION(slow_ns));
	buf_printf(out, " every %.0f calls", calls);
	return true;
}

/* Of the ops of the first process with calls. */
static bool put_period(struct buf *out, const struct recording *rec)
{
	const struct event *e = rec->events, *end = e + rec->event_count;

	while (e < end && !is_call(e))
		e++;
	for (uint16_t op = 1; e < end && op < WIRE_OP_MAX; op++) {
		struct usual u = usual_of(rec, e->pid, op);

		if (put_period_of(out, rec, &u))
			return true;
	}
	return false;
}

bool measure_put(struct buf *out, enum measure m, const struct recording *rec,
	const struct incident *list, size_t count)
{
	switch (m) {
	case MEASURE_SLOWDOWN: return put_slowdown(out, rec, list, count);
	case MEASURE_FIRST_CALLS: return put_first_calls(out, rec);
	case MEASURE_COPIES: return put_copies(out, rec);
	case MEASURE_PERIOD: return put_period(out, rec);
	}
	return false;
}
