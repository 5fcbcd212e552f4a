/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_find.c - see straggler_find.h.
 *
 * Arrival is the start of the host's call. Ranks of one node share a clock; across nodes clocks are
 * not compared: a collective ends for all ranks at once, so who waited least came last, and the
 * arrival is taken as minus the wait.
 *
 * Ranks that share what delays them (a socket, a disk) are late together, and the time between two
 * of them says nothing. So the late ones are those after the earliest wide distance between two
 * arrivals in the second half: wide is one of at least 30 % of the widest there. What they cost is
 * the time from the last of the others to the very last: had they come with those, the collective
 * would have begun so much earlier. It counts only as far as some other rank waited for it on the
 * host. Several collectives under way at once show the same lateness: the union of the
 * gaps on the late rank's clock counts it once.
 *
 * A gap is material from 200 us (beyond wake-up jitter) and 5 % of the mean interval of the
 * communicator's collectives. The same ranks are the culprits if they are late in at least 60 % of the material
 * ones, has at least half of the time, and that cannot well be chance: its share exceeds 1/ranks by
 * two standard deviations (five of five for two ranks). The first collective pays for set-up and is
 * left out. O(n log n). */
#include "agent/correlate/detect/straggler_find.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stat/periodicity.h"
#include "stat/robust.h"

#define GAP_MIN_NS    (200 * NS_PER_US)
#define GAP_PARTS     20 /* 5 % of the interval */
#define CULPRIT_SHARE 0.6
#define TIME_SHARE    0.5
#define MATERIAL_MIN  5
#define WIDE_SHARE    0.3

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

struct arrival {
	int64_t ns;
	const struct collective_row *row;
};

/* The latest arrivals of @m, the very last first; how many of them are in @ret. */
static int latest(
	const struct match_table *t, const struct match *m, struct arrival ret[STRAGGLERS_MAX + 1])
{
	int max = (int)MIN(m->count / 2, (size_t)STRAGGLERS_MAX) + 1, n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct collective_row *r = match_row(t, m, i);
		struct arrival a = {arrival_ns(m, r), r};
		int at = n;

		while (at > 0 && ret[at - 1].ns < a.ns)
			at--;
		if (at == max)
			continue;
		n = MIN(n + 1, max);
		memmove(&ret[at + 1], &ret[at], (size_t)(n - at - 1) * sizeof(*ret));
		ret[at] = a;
	}
	return n;
}

/* How many of the @n latest are late: those before the last wide distance. */
static int late_count(const struct arrival *a, int n)
{
	int64_t widest = 0;
	int late = 1;

	for (int i = 1; i < n; i++)
		widest = MAX(widest, a[i - 1].ns - a[i].ns);
	for (int i = 1; i < n; i++)
		if ((double)(a[i - 1].ns - a[i].ns) >= WIDE_SHARE * (double)widest)
			late = i;
	return late;
}

static bool is_among(const struct arrival *a, int n, const struct collective_row *row)
{
	for (int i = 0; i < n; i++)
		if (a[i].row == row)
			return true;
	return false;
}

static uint64_t set_of(const struct arrival *a, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += ((uint64_t)(uint32_t)a[i].row->c.rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 29 ^ (uint64_t)n;
}

bool straggler_last(const struct match_table *t, const struct match *m, struct lateness *ret)
{
	struct arrival a[STRAGGLERS_MAX + 2];
	uint64_t gap, longest = 0;
	bool waits_known = false;
	int n;

	*ret = (struct lateness){.match = m};
	for (size_t i = 0; !m->one_node && i < m->count; i++)
		if (match_row(t, m, i)->c.wait_ns < 0)
			return false;
	n = latest(t, m, a);
	ret->row = a[0].row;
	ret->late = late_count(a, n);
	ret->set = set_of(a, ret->late);
	gap = (uint64_t)(a[0].ns - a[MIN(ret->late, n - 1)].ns);
	for (size_t i = 0; i < m->count; i++) {
		const struct collective_row *r = match_row(t, m, i);

		if (r->c.wait_ns < 0 || is_among(a, ret->late, r))
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

static int by_set_and_time(const void *a, const void *b)
{
	const struct lateness *x = a, *y = b;

	if (x->set != y->set)
		return x->set < y->set ? -1 : 1;
	if (x->row->start.ns != y->row->start.ns)
		return x->row->start.ns < y->row->start.ns ? -1 : 1;
	return (x->row->c.seq > y->row->c.seq) - (x->row->c.seq < y->row->c.seq);
}

static int by_gap(const void *a, const void *b)
{
	const struct lateness *x = a, *y = b;

	if (x->gap_ns != y->gap_ns)
		return x->gap_ns > y->gap_ns ? -1 : 1;
	return by_set_and_time(a, b);
}

/* The ranks that are late most often: items[*first .. *first + *count). */
static void most_often(const struct crowd *w, size_t *first, size_t *count, double *time_share)
{
	uint64_t all = 0, own = 0;
	size_t next;

	*first = *count = 0;
	for (size_t i = 0; i < w->count; i = next) {
		uint64_t sum = 0;

		for (next = i; next < w->count && w->items[next].set == w->items[i].set; next++)
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

static int rows_by_rank(const void *a, const void *b)
{
	const struct collective_row *x = *(const struct collective_row *const *)a;
	const struct collective_row *y = *(const struct collective_row *const *)b;

	return (x->c.rank > y->c.rank) - (x->c.rank < y->c.rank);
}

static void name_late(const struct match_table *t, struct straggler *s)
{
	struct arrival a[STRAGGLERS_MAX + 2];

	latest(t, s->worst[0].match, a);
	s->late_count = s->worst[0].late;
	for (int i = 0; i < s->late_count; i++)
		s->late[i] = a[i].row;
	qsort(s->late, (size_t)s->late_count, sizeof(*s->late), rows_by_rank);
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
	qsort(items, w.count, sizeof(*items), by_set_and_time);
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
	if (r == 0)
		name_late(t, ret);
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
