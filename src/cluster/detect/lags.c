/* SPDX-License-Identifier: Apache-2.0 */
/* lags.c - see lags.h.
 *
 * A rank counts as last if the clocks cannot tell it from the one that came last and it came later than
 * the median of the others by more than the clocks' error: of two that are late together both count. */
#include "cluster/detect/lags.h"

#include "base/search.h"
#include "base/macros.h"
#include "cluster/detect/calls_core.h"
#include "stat/robust.h"

#define TOGETHER      20 /* who came this part of the lag before the last was as late */
#define LATE_NS       UINT64_C(1000000) /* less is not called late */
#define LATE_SHARE    0.02              /* of a second, for one worker */
#define LATE_ALL      0.10              /* likewise for all together: load that moves */
#define EPOCH_NS      INT64_C(1000000000)
#define LATE_HOLDS_NS (4 * EPOCH_NS)
#define SUDDEN_FACTOR 1.5 /* longer than the longest lag lately */
#define SUDDEN_NS     5e6 /* likewise */
#define RECORD_NS     (15 * EPOCH_NS)
#define RECORD_STEPS  25 /* likewise, if that is longer */
#define PARTIAL_STEPS 2
#define PARTIAL_NS    (10 * EPOCH_NS) /* ranks that nobody has told of by then have no agent */

void lags_free(struct lags *l)
{
	free(l->nodes);
	free(l->touched);
	free(l->arrivals);
	free(l->sorted);
	free(l);
}

/* How far apart two ordinary nodes of it may seem to be. */
static uint64_t ordinary_error(struct lags *l)
{
	if (l->touched_count < 2) /* ranks of one node have one clock */
		return 0;
	for (size_t i = 0; i < l->touched_count; i++)
		l->sorted[i] = l->nodes[l->touched[i]].error_ns;
	robust_sort(l->sorted, l->touched_count);
	return robust_median(l->sorted, l->touched_count);
}

/* Adds @ns to the present second of a pair of seconds that was begun at *@epoch. */
static uint64_t add_recent(uint64_t sums[2], uint64_t *epoch, uint64_t now, uint64_t ns)
{
	if (*epoch != now) {
		sums[1] = *epoch + 1 == now ? sums[0] : 0;
		sums[0] = 0;
		*epoch = now;
	}
	sums[0] += ns;
	return sums[0] + sums[1];
}

/* Far longer than any of its like in the last one to two epochs: somebody is late as nobody was. */
static void note_sudden(struct calls *c, struct lag_record *r, uint64_t lag_ns)
{
	int64_t epoch = c->now_ns / calls_lasting(c, RECORD_NS, RECORD_STEPS);

	if (epoch != r->epoch) {
		r->longest_ns[1] = epoch == r->epoch + 1 ? r->longest_ns[0] : 0;
		r->longest_ns[0] = 0;
		r->epoch = epoch;
	}
	if ((double)lag_ns >
		SUDDEN_FACTOR * (double)MAX(r->longest_ns[0], r->longest_ns[1]) + SUDDEN_NS)
		c->lags->sudden_ns = c->now_ns;
	r->longest_ns[0] = MAX(r->longest_ns[0], lag_ns);
}

/* @w NULL: somebody. */
static void note_late(struct calls *c, struct worker *w, uint64_t lag_ns, int64_t at_ns)
{
	uint64_t epoch = (uint64_t)(c->now_ns / EPOCH_NS);
	uint64_t own = 0, all;

	if (lag_ns <= LATE_NS)
		return;
	if (w) {
		if (w->late_since_ns == 0 || at_ns - w->late_ns > calls_window(c))
			w->late_since_ns = at_ns;
		w->late_ns = at_ns;
		own = add_recent(w->late_by_ns, &w->late_epoch, epoch, lag_ns);
	}
	all = add_recent(c->lags->all_late_by_ns, &c->lags->epoch, epoch, lag_ns);
	if ((double)own > LATE_SHARE * EPOCH_NS || (double)all > LATE_ALL * EPOCH_NS)
		c->lags->late_until_ns = c->now_ns + LATE_HOLDS_NS;
}

/* What the collective took when the last had come, by the last one's clock. */
static void note_took(struct calls *c, const struct collective *x)
{
	const struct arrival *a = &x->arrivals[x->last_slot];
	uint64_t epoch = (uint64_t)(c->now_ns / EPOCH_NS), sum;
	int64_t took = a->leave_ns - a->enter_ns;

	if (a->leave_ns <= 0 || took <= (int64_t)LATE_NS)
		return;
	sum = add_recent(x->comm->took_ns, &x->comm->took_epoch, epoch, (uint64_t)took);
	if ((double)sum > LATE_SHARE * EPOCH_NS)
		c->lags->slow_until_ns = c->now_ns + LATE_HOLDS_NS;
}

/* The last to come; of several at the same moment, the lowest rank. */
static uint32_t find_last(const struct lags *l, const struct collective *x)
{
	uint32_t last = UINT32_MAX;

	for (uint32_t i = 0; i < x->room; i++) {
		if (l->arrivals[i] == INT64_MIN)
			continue;
		if (last == UINT32_MAX || l->arrivals[i] > l->arrivals[last] ||
			(l->arrivals[i] == l->arrivals[last] &&
				x->comm->members[i].rank < x->comm->members[last].rank))
			last = i;
	}
	return last;
}

static int64_t median_of_others(struct lags *l, const struct collective *x, uint32_t last)
{
	int64_t *others = (int64_t *)l->sorted;
	size_t n = 0;

	for (uint32_t i = 0; i < x->room; i++)
		if (i != last && l->arrivals[i] != INT64_MIN)
			others[n++] = l->arrivals[i];
	return n ? select_kth(others, n, (n - 1) / 2, x->seq) : l->arrivals[last];
}

/* Whether the rank in @slot counts as last, with @error_ns of ordinary nodes. */
static bool is_last(const struct lags *l, const struct collective *x, uint32_t slot,
	uint64_t error_ns, uint64_t lag_ns)
{
	uint32_t node = x->comm->members[slot].node, last = x->comm->members[x->last_slot].node;
	uint64_t before = (uint64_t)(x->last_ns - l->arrivals[slot]);
	uint64_t apart = x->lag_ns / TOGETHER;

	if (node != last)
		apart = MAX(apart, capped_sum(l->nodes[node].error_ns, l->nodes[last].error_ns));
	if (before > apart)
		return false;
	return l->touched_count < 2 || lag_ns > capped_sum(l->nodes[node].error_ns, error_ns);
}

static uint64_t waited(const struct collective *x, uint32_t slot, int64_t arrival_ns)
{
	const struct arrival *a = &x->arrivals[slot];
	uint64_t ns = (uint64_t)(x->last_ns - arrival_ns);

	if (a->leave_ns > 0 && a->wait_ns != UINT64_MAX)
		ns = MIN(ns, (uint64_t)(a->leave_ns - a->enter_ns));
	return ns;
}

static int count_rank(
	struct calls *c, struct collective *x, uint32_t slot, int64_t median, uint64_t error_ns)
{
	struct worker *w = c->workers.items[x->comm->members[slot].worker];
	int64_t arrival = c->lags->arrivals[slot], lag = arrival - median;
	uint64_t ns = waited(x, slot, arrival);

	w->calls++;
	w->waited_ns += ns;
	x->waited_ns += ns;
	if (lag <= 0 || !is_last(c->lags, x, slot, error_ns, (uint64_t)lag))
		return 0;
	note_late(c, w, (uint64_t)lag, arrival);
	return workers_add_lag(&c->workers, w, (uint64_t)lag);
}

/* A receive that waits for its send is ordinary in a pipeline and shows a slow stage too: which it is,
 * blame tells. */
static void count_pair(struct calls *c, const struct collective *x)
{
	const int64_t *at = c->lags->arrivals;

	if (x->have != 2)
		return;
	note_late(c, NULL, (uint64_t)llabs(at[0] - at[1]), x->last_ns);
	note_sudden(c, &c->lags->messages, (uint64_t)llabs(at[0] - at[1]));
}

/* Who was last, and what that meant for each. */
static int count(struct calls *c, struct collective *x)
{
	struct lags *l = c->lags;
	bool was_counted = x->is_counted;
	uint64_t error;
	int64_t median;
	int r = lags_align(c, x);

	if (r < 0)
		return r;
	x->last_slot = find_last(l, x);
	x->last_ns = l->arrivals[x->last_slot];
	if (comms_is_pair(x->comm))
		count_pair(c, x);
	if (comms_is_pair(x->comm) || x->have < 2)
		return 0;
	error = ordinary_error(l);
	median = median_of_others(l, x, x->last_slot);
	x->lag_ns = (uint64_t)(x->last_ns - median);
	x->is_counted = true;
	if (was_counted)
		return 0;
	note_sudden(c, &l->collectives, x->lag_ns);
	note_took(c, x);
	for (uint32_t i = 0; i < x->room; i++) {
		if (l->arrivals[i] == INT64_MIN)
			continue;
		r = count_rank(c, x, i, median, error);
		if (r < 0)
			return r;
	}
	return 0;
}

static int settle(struct calls *c, struct collective *x)
{
	struct comm *m = x->comm;
	int r;

	x->state = COLLECTIVE_DONE;
	m->first_seq = m->matched == 0 ? x->seq : MIN(m->first_seq, x->seq);
	m->last_seq = MAX(m->last_seq, x->seq);
	m->matched++;
	c->lags->settled++;
	r = count(c, x);
	calls_note_pace(c, m, x->last_ns);
	return r;
}

static int64_t newest_enter(const struct collective *x)
{
	int64_t newest = INT64_MIN;

	for (uint32_t i = 0; i < x->room; i++)
		newest = MAX(newest, x->arrivals[i].enter_ns);
	return newest;
}

ORDER_OF_POINTERS(compare_ready, struct collective,
	ASCENDING(last_ns) ?: ASCENDING(comm->comm) ?: ASCENDING(seq))

int lags_fold(struct calls *c)
{
	struct comms *m = &c->comms;
	struct lags *l = c->lags;
	struct collective *x;
	size_t n = m->ready_count;
	int r = 0, one;

	for (size_t i = 0; i < n; i++)
		m->ready[i]->last_ns = newest_enter(m->ready[i]);
	if (n > 0)
		SORT(m->ready, n, compare_ready);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = lags_teach(c, m->ready[i]);
	if (n > 0 || c->now_ns - l->solved_ns >= EPOCH_NS) {
		clocks_solve(c->clocks);
		l->solved_ns = c->now_ns;
	}
	for (size_t i = 0; i < n; i++) {
		one = settle(c, m->ready[i]);
		r = r < 0 ? r : one;
	}
	m->ready_count = m->ready_calls = 0;
	while ((x = comms_next_partial(
			m, c->now_ns - calls_lasting(c, PARTIAL_NS, PARTIAL_STEPS)))) {
		one = lags_teach(c, x);
		one = one < 0 ? one : count(c, x);
		r = r < 0 ? r : one;
	}
	return r;
}
