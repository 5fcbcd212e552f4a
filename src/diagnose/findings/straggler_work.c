/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_work.c - which rank gives its GPU more to do than the others do. All hosts are in time then, and all GPUs
 * end together: only what ranks launch and copy tells.
 *
 * A rank whose steps have more launches, or copy more, since they are slow, while those of its peers do not, has the
 * late GPU, and so has the one that is sent more by the others, as the tokens of a favoured expert; where no step is slow, one that has more than all its peers. Load moves if steps are as long as the largest input of all ranks is large, and that is
 * another rank's in every step. */
#include "diagnose/findings/straggler_load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "stat/robust.h"

#define RANKS_MAX     WORK_RANKS_MAX
#define STEPS_LOOKED  1024 /* of each rank */
#define COUNTED_LEAST WORK_STEPS_LEAST
#define MORE_LAUNCHES 1.0 /* a step */
#define MORE_SHARE    0.01
#define LEVEL_SHARE   0.05 /* where there is nothing before to compare with */
#define MORE_BYTES    0.1
#define MORE_RECEIVED 0.25
#define CLEARLY       4 /* times what any peer has more */
#define MOVES_STEPS   20
#define ABOVE         1.01 /* times the median: an input that is the largest */
#define MOVES_FIT     0.5  /* correlation of the largest input and the length of steps */
#define MOVES_SHARE   0.03
#define MOVES_TOP                                                                                  \
	0.6 /* of the steps, in which one rank has the largest input: more is its own load */

size_t work_step_of(const struct step_account *a, int64_t ns)
{
	size_t after = LOWER_BOUND(i, a->mark_count, a->marks[i].start.ns <= ns);

	return after && ns < a->marks[after - 1].start.ns + (int64_t)a->marks[after - 1].dur_ns
		       ? after - 1
		       : SIZE_MAX;
}

/* Launches of each step, as far as they were counted. */
static void sum_launches(const struct recording *rec, const struct step_account *a, uint64_t *sums)
{
	memset(sums, 0, a->mark_count * sizeof(*sums));
	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *r = &rec->ledger[i];
		size_t at = r->pid == a->pid && r->launches
				    ? work_step_of(a, r->start.ns + (int64_t)(r->dur_ns / 2))
				    : SIZE_MAX;

		if (at != SIZE_MAX)
			sums[at] += r->launches;
	}
}

/* Of steps that are slow, or are not, those left out that have none; 0: too few have. Counting begins and ends within
 * steps, which then have a part of their launches: whole ones are in the upper part. */
static double usual_in_step(const struct step_account *a, bool is_slow, const uint64_t *values)
{
	uint64_t list[STEPS_LOOKED];
	size_t n = 0;

	for (size_t i = 0; i < a->mark_count && n < STEPS_LOOKED; i++) {
		uint64_t value = values ? values[i] : a->marks[i].copy_bytes;

		if (a->marks[i].is_slow == is_slow && value)
			list[n++] = value;
	}
	if (n < COUNTED_LEAST)
		return 0;
	robust_sort(list, n);
	return (double)list[values ? n * 4 / 5 : n / 2];
}

/* What the Recvs of a step bring. */
static void sum_received(const struct straggler_job *j, struct work_rank *r)
{
	for (size_t i = 0; i < j->call_count; i++) {
		const struct push_call *c = &j->calls[i].c;
		size_t at = j->calls[i].worker == r->worker && c->op == NCCL_RECV
				    ? work_step_of(r->a, c->enter_ns)
				    : SIZE_MAX;

		if (at != SIZE_MAX)
			r->received[r->a->marks[at].is_slow] += (double)c->bytes;
	}
	r->received[0] /= MAX(r->a->ordinary_steps, 1U);
	r->received[1] /= MAX(r->a->slow_steps, 1U);
}

static int fill_rank(
	const struct recording *rec, const struct straggler_job *j, struct work_rank *r)
{
	_cleanup_free_ uint64_t *sums = calloc(r->a->mark_count + 1, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	sum_launches(rec, r->a, sums);
	sum_received(j, r);
	for (int slow = 0; slow < 2; slow++) {
		r->launches[slow] = usual_in_step(r->a, slow, sums);
		r->bytes[slow] = usual_in_step(r->a, slow, NULL);
	}
	return 0;
}

static size_t list_ranks(
	const struct step_report *accounts, const struct straggler_job *j, struct work_rank *ret)
{
	size_t n = 0;

	for (uint32_t w = 0; w < j->worker_count; w++)
		for (size_t i = 0; accounts && i < accounts->count && n < RANKS_MAX; i++) {
			const struct step_account *a = &accounts->items[i];

			if (a->pid != j->workers[w].pid || a->origin == STEP_BY_TIME)
				continue;
			ret[n++] = (struct work_rank){.a = a, .worker = w};
			break;
		}
	return n;
}

/* What all ranks lost to longer waits for their GPUs: the median. */
static void find_lost(const struct work_rank *ranks, size_t n, struct straggler_work *ret)
{
	uint64_t lost[RANKS_MAX];

	for (size_t i = 0; i < n; i++) {
		const struct step_account *a = ranks[i].a;
		uint64_t grown = a->lost_ns && a->slow_ns[ACCOUNT_GPU] > a->ordinary_ns[ACCOUNT_GPU]
					 ? a->slow_ns[ACCOUNT_GPU] - a->ordinary_ns[ACCOUNT_GPU]
					 : 0;

		lost[i] = grown * a->slow_steps;
	}
	ret->lost_ns = robust_median_of(lost, n);
}

size_t work_outlier(const double *values, size_t n, double least)
{
	double next = 0;
	size_t top = 0;

	for (size_t i = 1; i < n; i++)
		top = values[i] > values[top] ? i : top;
	for (size_t i = 0; i < n; i++)
		next = i == top ? next : MAX(next, fabs(values[i]));
	return values[top] >= least && values[top] >= CLEARLY * next ? top : n;
}

static double usual_of(const struct work_rank *ranks, size_t n, size_t but, bool is_bytes)
{
	uint64_t list[RANKS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (i != but)
			list[count++] =
				(uint64_t)(is_bytes ? ranks[i].bytes[0] : ranks[i].launches[0]);
	return (double)robust_median_of(list, count);
}

/* How much more of it each rank has in slow steps than in ordinary ones, or than its peers; false: not known. */
static bool differences(
	const struct work_rank *ranks, size_t n, bool has_slow, bool is_bytes, double *ret)
{
	for (size_t i = 0; i < n; i++) {
		const double *v = is_bytes ? ranks[i].bytes : ranks[i].launches;

		if (v[0] <= 0 || (has_slow && v[1] <= 0))
			return false;
		ret[i] = has_slow ? v[1] - v[0] : v[0] - usual_of(ranks, n, i, is_bytes);
	}
	return true;
}

/* Who is sent more in slow steps than in ordinary ones; the others are sent less then. */
static size_t find_receiver(const struct work_rank *ranks, size_t n, struct straggler_work *ret)
{
	double more[RANKS_MAX], before = 0;
	size_t at;

	for (size_t i = 0; i < n; i++) {
		more[i] = MAX(ranks[i].received[1] - ranks[i].received[0], 0.0);
		before += ranks[i].received[0] / (double)n;
	}
	at = before > 0 ? work_outlier(more, n, MORE_RECEIVED * before) : n;
	if (at < n) {
		ret->received = ranks[at].received[1];
		ret->usual_received = ranks[at].received[0];
	}
	return at;
}

static void find_late(const struct work_rank *ranks, size_t n, struct straggler_work *ret)
{
	bool has_slow = ret->lost_ns > 0;
	double more[RANKS_MAX];
	size_t at = n;

	if (differences(ranks, n, has_slow, false, more)) {
		double usual = usual_of(ranks, n, n, false);

		at = work_outlier(
			more, n, MAX(MORE_LAUNCHES, (has_slow ? MORE_SHARE : LEVEL_SHARE) * usual));
		if (at < n) {
			ret->launches = ranks[at].launches[has_slow];
			ret->usual = ret->launches - more[at];
		}
	}
	if (at == n && differences(ranks, n, has_slow, true, more)) {
		at = work_outlier(more, n, MORE_BYTES * usual_of(ranks, n, n, true));
		if (at < n) {
			ret->bytes = ranks[at].bytes[has_slow];
			ret->usual_bytes = ret->bytes - more[at];
		}
	}
	if (at == n && has_slow)
		at = find_receiver(ranks, n, ret);
	if (at == n)
		return;
	ret->late = ranks[at].worker;
	ret->steps = has_slow ? ranks[at].a->slow_steps : ranks[at].a->ordinary_steps;
	ret->since_ns = has_slow ? ranks[at].a->slow_first.ns : 0;
}

struct sums {
	double n, x, y, xx, xy, yy, above; /* above: of the largest input over the median */
};

/* Bytes that all ranks copied in the step of the first one that is @k-th; false: not all are known. */
static bool bytes_in(const struct work_rank *ranks, size_t n, size_t k, uint64_t *ret)
{
	const struct step_mark *m = &ranks[0].a->marks[k];

	for (size_t i = 0; i < n; i++) {
		size_t at = work_step_of(ranks[i].a, m->start.ns + (int64_t)m->dur_ns / 2);

		ret[i] = at == SIZE_MAX ? 0 : ranks[i].a->marks[at].copy_bytes;
		if (!ret[i])
			return false;
	}
	return true;
}

/* How well the largest input of a step goes with the length of the @lag-th after it: where a step is counted from its
 * optimizer on, the GPU works on an input in the next one. */
static double fit_of(
	const struct work_rank *ranks, size_t n, size_t lag, struct straggler_work *ret)
{
	const struct step_account *a = ranks[0].a;
	uint32_t top[RANKS_MAX] = {0}, most = 0;
	struct sums s = {0};
	double scale, slope;

	for (size_t k = 0; k + lag < a->mark_count; k++) {
		uint64_t bytes[RANKS_MAX], middle;
		double x, y = (double)a->marks[k + lag].dur_ns;
		size_t largest = 0;

		if (!bytes_in(ranks, n, k, bytes))
			continue;
		for (size_t i = 1; i < n; i++)
			largest = bytes[i] > bytes[largest] ? i : largest;
		x = (double)bytes[largest];
		robust_sort(bytes, n);
		middle = bytes[(n - 1) / 2];
		top[largest] += x > ABOVE * (double)middle;
		s = (struct sums){s.n + 1, s.x + x, s.y + y, s.xx + x * x, s.xy + x * y,
			s.yy + y * y, s.above + x - (double)middle};
	}
	for (size_t i = 0; i < n; i++)
		most = MAX(most, top[i]);
	scale = s.n * s.xx - s.x * s.x;
	if (s.n < MOVES_STEPS || most > MOVES_TOP * s.n || scale <= 0 || s.n * s.yy <= s.y * s.y)
		return 0;
	slope = (s.n * s.xy - s.x * s.y) / scale;
	ret->moved_ns = (uint64_t)MAX(slope * s.above, 0.0);
	ret->moved_share = (double)ret->moved_ns / s.y;
	return (s.n * s.xy - s.x * s.y) / sqrt(scale * (s.n * s.yy - s.y * s.y));
}

static void find_moves(const struct work_rank *ranks, size_t n, struct straggler_work *ret)
{
	for (size_t lag = 0; !ret->moves && lag < 2; lag++)
		ret->moves =
			fit_of(ranks, n, lag, ret) >= MOVES_FIT && ret->moved_share >= MOVES_SHARE;
}

int straggler_work_find(const struct recording *rec, const struct step_report *accounts,
	const struct straggler_job *j, struct straggler_work *ret)
{
	struct work_rank ranks[RANKS_MAX];
	size_t n = list_ranks(accounts, j, ranks);
	int r = 0;

	*ret = (struct straggler_work){.late = UINT32_MAX};
	if (n < 2 || n < j->worker_count)
		return 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = fill_rank(rec, j, &ranks[i]);
	if (r < 0)
		return r;
	find_lost(ranks, n, ret);
	ret->share = (double)ret->lost_ns /
		     (double)MAX(ranks[0].a->last.ns - ranks[0].a->first.ns, INT64_C(1));
	find_moves(ranks, n, ret);
	r = work_find_added(rec, j, ranks, n, ret);
	if (ret->late == UINT32_MAX && !ret->moves && !ret->extra.comm && j->blame.stages == 1)
		find_late(ranks, n, ret);
	return r;
}
