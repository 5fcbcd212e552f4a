/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_find.c - see straggler_find.h.
 *
 * Arrival is the start of the host's call. Ranks of one node share a clock; across nodes clocks are
 * not compared: a collective ends for all ranks at once, so who waited least came last, and the
 * arrival is taken as minus the wait.
 *
 * What a late rank costs is the time after the one before it: had it come with that one, the
 * collective would have begun so much earlier. It counts only as far as some other rank waited for
 * it on the host. Several collectives under way at once show the same lateness: the union of the
 * gaps on the late rank's clock counts it once.
 *
 * A gap is material from 200 us (beyond wake-up jitter) and 5 % of the mean interval of the
 * communicator's collectives. A rank is the culprit if it is last in at least 60 % of the material
 * ones, has at least half of the time, and that cannot well be chance: its share exceeds 1/ranks by
 * two standard deviations (five of five for two ranks). The first collective pays for set-up and is
 * left out. O(n log n). */
#include "agent/correlate/detect/straggler_find.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stat/periodicity.h"
#include "stat/robust.h"

#define GAP_MIN_NS    (200 * NS_PER_US)
#define GAP_PARTS     20 /* 5 % of the interval */
#define CULPRIT_SHARE 0.6
#define TIME_SHARE    0.5
#define MATERIAL_MIN  5

struct crowd { /* the material lates of one communicator */
	struct lateness *items;
	size_t count, compared;
	int ranks, nranks;
	int64_t first_ns, last_ns;
	bool by_waits;
};

static int64_t arrival_ns(const struct match *m, const struct collective_row *r)
{
	return m->one_node ? r->start.ns : -r->c.wait_ns;
}

bool straggler_last(const struct match_table *t, const struct match *m, struct lateness *ret)
{
	int64_t last = INT64_MIN, second = INT64_MIN;
	uint64_t gap, longest = 0;
	bool waits_known = false;

	*ret = (struct lateness){0};
	for (size_t i = 0; i < m->count; i++) {
		const struct collective_row *r = match_row(t, m, i);
		int64_t at = arrival_ns(m, r);

		if (!m->one_node && r->c.wait_ns < 0)
			return false;
		if (at > last) {
			second = last;
			last = at;
			ret->row = r;
		} else {
			second = MAX(second, at);
		}
	}
	gap = (uint64_t)(last - second);
	for (size_t i = 0; i < m->count; i++) {
		const struct collective_row *r = match_row(t, m, i);

		if (r == ret->row || r->c.wait_ns < 0)
			continue;
		waits_known = true;
		longest = MAX(longest, (uint64_t)r->c.wait_ns);
		ret->lost_ns += MIN(gap, (uint64_t)r->c.wait_ns);
		ret->wait_ns += (uint64_t)r->c.wait_ns;
	}
	ret->gap_ns = waits_known ? MIN(gap, longest) : gap;
	return true;
}

static int crowd_collect(const struct match_table *t, const struct match_comm *c, struct crowd *ret)
{
	uint64_t least;
	size_t n = 0;

	*ret = (struct crowd){.nranks = -1, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	ret->items = calloc(c->count + 1, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = c->first + 1; i < c->first + c->count; i++) {
		const struct match *m = &t->matches[i];
		struct lateness *l = &ret->items[ret->compared];

		if (m->count < 2 || !straggler_last(t, m, l))
			continue;
		ret->compared++;
		ret->ranks = MAX(ret->ranks, (int)MIN(m->count, (size_t)INT32_MAX));
		ret->nranks = MAX(ret->nranks, l->row->c.nranks);
		ret->by_waits = ret->by_waits || !m->one_node;
		ret->first_ns = MIN(ret->first_ns, l->row->start.ns);
		ret->last_ns = MAX(ret->last_ns, l->row->start.ns);
	}
	if (!ret->compared)
		return 0;
	least = MAX(
		GAP_MIN_NS, (uint64_t)(ret->last_ns - ret->first_ns) / ret->compared / GAP_PARTS);
	for (size_t i = 0; i < ret->compared; i++)
		if (ret->items[i].gap_ns >= least)
			ret->items[n++] = ret->items[i];
	ret->count = n;
	return 0;
}

static int by_rank_and_time(const void *a, const void *b)
{
	const struct lateness *x = a, *y = b;

	if (x->row->c.rank != y->row->c.rank)
		return x->row->c.rank < y->row->c.rank ? -1 : 1;
	if (x->row->start.ns != y->row->start.ns)
		return x->row->start.ns < y->row->start.ns ? -1 : 1;
	return (x->row->c.seq > y->row->c.seq) - (x->row->c.seq < y->row->c.seq);
}

static int by_gap(const void *a, const void *b)
{
	const struct lateness *x = a, *y = b;

	if (x->gap_ns != y->gap_ns)
		return x->gap_ns > y->gap_ns ? -1 : 1;
	return by_rank_and_time(a, b);
}

/* The rank that is last most often: items[*first .. *first + *count). */
static void most_often(const struct crowd *w, size_t *first, size_t *count, double *time_share)
{
	uint64_t all = 0, own = 0;
	size_t next;

	*first = *count = 0;
	for (size_t i = 0; i < w->count; i = next) {
		uint64_t sum = 0;

		for (next = i;
			next < w->count && w->items[next].row->c.rank == w->items[i].row->c.rank;
			next++)
			sum += w->items[next].gap_ns;
		all += sum;
		if (next - i > *count) {
			*first = i;
			*count = next - i;
			own = sum;
		}
	}
	*time_share = all ? (double)own / (double)all : 0;
}

static bool is_consistent(const struct crowd *w, size_t count, double time_share)
{
	double n = (double)w->count, fair = 1.0 / MAX(w->ranks, 2);
	double share = (double)count / MAX(n, 1);

	return w->count >= MATERIAL_MIN && share >= CULPRIT_SHARE && time_share >= TIME_SHARE &&
	       share >= fair + 2 * sqrt(fair * (1 - fair) / n);
}

/* Gaps on the late rank's own clock, joined where they overlap. */
static int make_windows(struct straggler *s)
{
	s->windows = calloc(s->last, sizeof(*s->windows));
	if (!s->windows)
		return -ENOMEM;
	for (size_t i = 0; i < s->last; i++) {
		const struct lateness *l = &s->worst[i];
		int64_t start =
			l->row->start.ns - (int64_t)MIN(l->gap_ns, (uint64_t)l->row->start.ns);
		struct window *w = s->window_count ? &s->windows[s->window_count - 1] : NULL;

		if (w && start <= w->end_ns) {
			w->end_ns = MAX(w->end_ns, l->row->start.ns);
			continue;
		}
		s->windows[s->window_count++] =
			(struct window){start, l->row->start.ns, l->row->tid};
	}
	for (size_t i = 0; i < s->window_count; i++)
		s->job_ns += (uint64_t)(s->windows[i].end_ns - s->windows[i].start_ns);
	return 0;
}

/* At which distances, in collectives, it is late: worst[] is still in order of time. */
static int find_period(struct straggler *s)
{
	_cleanup_free_ uint64_t *at = calloc(s->last, sizeof(*at));
	struct periodicity p;
	size_t n = 0;

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < s->last; i++)
		if (!n || s->worst[i].row->c.seq > at[n - 1])
			at[n++] = s->worst[i].row->c.seq;
	if (!periodicity_find(at, n, &p) || p.period < 1.5 || p.period > UINT32_MAX)
		return 0; /* every one, or now and then */
	s->period = (uint32_t)(p.period + 0.5);
	s->period_share = p.confidence;
	return 0;
}

/* @worst: the culprit's items in order of time; sorted by gap at the end. */
static int measure(struct straggler *s)
{
	_cleanup_free_ uint64_t *gaps = calloc(s->last, sizeof(*gaps));

	if (!gaps || make_windows(s) < 0 || find_period(s) < 0)
		return -ENOMEM;
	s->first_ns = s->worst[0].row->start.ns;
	s->last_ns = s->worst[s->last - 1].row->start.ns;
	for (size_t i = 0; i < s->last; i++) {
		gaps[i] = s->worst[i].gap_ns;
		s->lost_ns += s->worst[i].lost_ns;
		s->wait_ns += s->worst[i].wait_ns;
	}
	robust_sort(gaps, s->last);
	s->gap_p50_ns = robust_median(gaps, s->last);
	qsort(s->worst, s->last, sizeof(*s->worst), by_gap);
	s->row = s->worst[0].row;
	return 0;
}

int straggler_find(const struct match_table *t, const struct match_comm *c, struct straggler *ret)
{
	struct crowd w;
	size_t first, count;
	double time_share;
	int r = crowd_collect(t, c, &w);
	_cleanup_free_ struct lateness *items = w.items;

	if (r < 0)
		return r;
	qsort(items, w.count, sizeof(*items), by_rank_and_time);
	most_often(&w, &first, &count, &time_share);
	if (!count || !is_consistent(&w, count, time_share))
		return 0;
	*ret = (struct straggler){.collectives = w.compared,
		.material = w.count,
		.last = count,
		.ranks = w.ranks,
		.nranks = w.nranks,
		.by_waits = w.by_waits,
		.span_ns = (uint64_t)MAX(w.last_ns - w.first_ns, INT64_C(1))};
	ret->worst = calloc(count, sizeof(*ret->worst));
	r = ret->worst ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		ret->worst[i] = items[first + i];
	if (r == 0)
		r = measure(ret);
	if (r < 0)
		straggler_done(ret);
	return r < 0 ? r : 1;
}

void straggler_done(struct straggler *s)
{
	free(s->worst);
	free(s->windows);
	*s = (struct straggler){0};
}
