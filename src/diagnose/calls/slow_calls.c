/* SPDX-License-Identifier: Apache-2.0 */
/* slow_calls.c - slow calls by the baselines of baseline.c, and the stretches they form.
 *
 * Slow: dur > max(1.2 x baseline, baseline + 200 us). A job whose every wait takes 1.5 times as
 * long has lost a third of its speed, so the ratio must be small; whether something is to blame is
 * decided by overlap, not here. A baseline from stored rows alone (no aggregates) is not good
 * enough for that: there it takes 3 x, the published tail ratio. 200 us is above what an interrupt
 * or a page fault costs, so microsecond calls do not count as slow for ordinary jitter. The first
 * call of each op is left out, and so are calls of other threads that began before it ended: they
 * pay for the context or wait for it (for 10 s at most: a hang is no context).
 *
 * A stretch ends where the next slow call starts more than 30 s after the last one ended. It is
 * material with at least 3 slow calls and an excess that somebody would notice:
 *   at least 1 % of the time the process was observed and 20 ms (2 s x 1 %: a recording of less
 *   than two seconds is not judged by single hiccups); or, so that a burst inside a long recording
 *   shows, at least 500 ms and 10 % of the stretch itself.
 *
 * The excess of a stretch is wall time: of each slow call what is beyond its baseline, its end, and
 * where several threads have that at once it counts once. Eight threads that wait for eight seconds
 * have lost eight seconds.
 *
 * Order of the input does not matter. O(n + slow log slow); memory is that of the slow calls. */
#include "diagnose/calls/slow_calls.h"
#include "wire/op_kind.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

#define SLOW_RATIO          1.2
#define SLOW_RATIO_ROWS     3 /* for a baseline from stored rows */
#define SLOW_EXCESS_NS      (200 * NS_PER_US)
#define EPISODE_PAUSE_NS    ((int64_t)(30 * NS_PER_S))
#define MATERIAL_CALLS      3
#define MATERIAL_NS         (20 * NS_PER_MS)
#define MATERIAL_SPAN_PARTS 100 /* 1 % of the process's time */
#define BURST_NS            (500 * NS_PER_MS)
#define BURST_SPAN_PARTS    10 /* 10 % of the stretch */

/* A nested driver call is part of a runtime call that is judged itself. */
static bool is_counted_elsewhere(const struct detection *d, const struct op_group *g)
{
	return g->source == 0 || (g->nested && d->ops.groups[g->process].has_runtime);
}

uint64_t detect_span_ns(const struct detection *d, const struct op_group *g)
{
	const struct op_group *p = &d->ops.groups[g->process];

	return p->last_ns > p->first_ns ? (uint64_t)(p->last_ns - p->first_ns) : 1;
}

static bool is_slow(const struct op_group *g, const struct event *e)
{
	double ratio = g->from_aggregates ? SLOW_RATIO : SLOW_RATIO_ROWS;

	return e->dur_ns > g->baseline_ns && e->dur_ns - g->baseline_ns > SLOW_EXCESS_NS &&
	       (double)e->dur_ns >= ratio * (double)g->baseline_ns && e->start.ns >= g->warm_ns;
}

static int collect_slow(struct detection *d, const struct recording *rec)
{
	uint32_t at;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!op_kind_is_cuda(e->source) || !baseline_is_sane(e) ||
			e->dur_ns <= SLOW_EXCESS_NS)
			continue;
		if (baseline_find(&d->ops, e->pid, e->source, e->flags, e->op, &at) < 0)
			return -ENOMEM;
		if (is_counted_elsewhere(d, &d->ops.groups[at]) || !is_slow(&d->ops.groups[at], e))
			continue;
		if (ARRAY_RESERVE(d->slow, d->slow_room, d->slow_count + 1, rec->event_count) < 0)
			return -ENOMEM;
		d->slow[d->slow_count++] = (struct slow_call){.start_ns = e->start.ns,
			.end_ns = event_end_ns(e),
			.event = i,
			.tid = e->tid,
			.group = at,
			.excess_ns = e->dur_ns - d->ops.groups[at].baseline_ns};
	}
	return 0;
}

static int by_thread_outer_first(const void *a, const void *b)
{
	const struct slow_call *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static int by_group_and_time(const void *a, const void *b)
{
	const struct slow_call *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static int by_group_and_thread(const void *a, const void *b)
{
	const struct slow_call *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return by_thread_outer_first(a, b);
}

/* A thread is in one call of an op at a time: rows that say otherwise are nonsense, and would make
 * attribution count the same switches again for each of them. */
static void drop_overlapping(struct detection *d)
{
	size_t kept = 0;

	if (!d->slow_count)
		return;
	qsort(d->slow, d->slow_count, sizeof(*d->slow), by_group_and_thread);
	for (size_t i = 0; i < d->slow_count; i++) {
		const struct slow_call *c = &d->slow[i], *last = &d->slow[kept ? kept - 1 : 0];

		if (kept && last->group == c->group && last->tid == c->tid &&
			c->start_ns < last->end_ns)
			d->ignored++;
		else
			d->slow[kept++] = *c;
	}
	d->slow_count = kept;
}

/* Published files do not mark nested calls: a slow driver call that lies inside a slow runtime call
 * of its thread is that call seen again. */
static void drop_contained(struct detection *d)
{
	size_t kept = 0;
	uint32_t tid = 0;
	int64_t runtime_end = INT64_MIN;

	if (!d->slow_count)
		return;
	qsort(d->slow, d->slow_count, sizeof(*d->slow), by_thread_outer_first);
	for (size_t i = 0; i < d->slow_count; i++) {
		const struct slow_call *c = &d->slow[i];

		if (i == 0 || c->tid != tid)
			runtime_end = INT64_MIN;
		tid = c->tid;
		if (d->ops.groups[c->group].source == SOURCE_CUDA)
			runtime_end = MAX(runtime_end, c->end_ns);
		else if (c->end_ns <= runtime_end)
			continue;
		d->slow[kept++] = *c;
	}
	d->slow_count = kept;
	qsort(d->slow, d->slow_count, sizeof(*d->slow), by_group_and_time);
}

static bool is_material(const struct detection *d, const struct slow_episode *s, int64_t last_ns)
{
	uint64_t whole = detect_span_ns(d, &d->ops.groups[s->group]);
	uint64_t own = (uint64_t)(last_ns - d->slow[s->first].start_ns);

	if (s->count < MATERIAL_CALLS)
		return false;
	return (s->excess_ns >= MATERIAL_NS && s->excess_ns >= whole / MATERIAL_SPAN_PARTS) ||
	       (s->excess_ns >= BURST_NS && s->excess_ns >= own / BURST_SPAN_PARTS);
}

static int by_excess(const void *a, const void *b)
{
	const struct slow_episode *x = a, *y = b;

	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int collect_stretches(struct detection *d)
{
	size_t next;

	d->slow_episodees = calloc(d->slow_count / MATERIAL_CALLS + 1, sizeof(*d->slow_episodees));
	if (!d->slow_episodees)
		return -ENOMEM;
	for (size_t i = 0; i < d->slow_count; i = next) {
		struct slow_episode s = {.first = i, .group = d->slow[i].group};
		int64_t last = d->slow[i].end_ns, lost_until = INT64_MIN;

		for (next = i; next < d->slow_count && d->slow[next].group == s.group &&
			       d->slow[next].start_ns - last <= EPISODE_PAUSE_NS;
			next++) {
			const struct slow_call *c = &d->slow[next];
			int64_t lost_from = MAX(c->end_ns - (int64_t)c->excess_ns, lost_until);
			uint64_t sum = s.sum_ns + c->excess_ns;

			s.sum_ns = MAX(sum, s.sum_ns); /* 2^14 calls of 2^50 ns would wrap */
			if (c->end_ns > lost_from)
				s.excess_ns += (uint64_t)(c->end_ns - lost_from);
			lost_until = MAX(lost_until, c->end_ns);
			last = MAX(last, c->end_ns);
		}
		s.count = next - i;
		if (is_material(d, &s, last))
			d->slow_episodees[d->episode_count++] = s;
	}
	qsort(d->slow_episodees, d->episode_count, sizeof(*d->slow_episodees), by_excess);
	return 0;
}

int detect_run(const struct recording *rec, struct detection *ret)
{
	int r;

	*ret = (struct detection){0};
	r = baseline_run(rec, &ret->ops);
	if (r == 0)
		r = collect_slow(ret, rec);
	if (r < 0)
		return r;
	ret->ignored = ret->ops.ignored;
	drop_overlapping(ret);
	drop_contained(ret);
	return collect_stretches(ret);
}

void detect_done(struct detection *d)
{
	baseline_done(&d->ops);
	free(d->slow);
	free(d->slow_episodees);
	*d = (struct detection){0};
}
