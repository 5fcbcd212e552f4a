/* SPDX-License-Identifier: Apache-2.0 */
/* call_rhythm.c - see call_rhythm.h. Of all distances at which calls are of the same kind again, the shortest that is about as
 * good as the best: twice a step is as good as a step, and layers that are alike are not. The newest calls tell it; how long
 * that takes is the median of all. */
#include "blame/call_rhythm.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/hash.h"
#include "base/macros.h"
#include "stat/robust.h"

#define CALLS_MAX  2048
#define RANKS      4    /* that are asked */
#define PERIODS    4    /* that must have been seen */
#define SAME_LEAST 0.85 /* of the calls */
#define ABOUT_EQUAL                                                                                \
	0.10 /* of them, by which two distances may differ: evaluations come now and then */

struct beat {
	int64_t at_ns;
	uint64_t kind;
};

ORDER(by_time, struct beat, ASCENDING(at_ns))

static size_t calls_of(const struct blame_call *calls, size_t count, uint32_t worker)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += calls[i].worker == worker;
	return n;
}

/* The @n calls of @worker, in order. */
static void gather(
	const struct blame_call *calls, size_t count, uint32_t worker, struct beat *beats, size_t n)
{
	for (size_t i = count; i-- > 0 && n;) {
		const struct push_call *c = &calls[i].c;

		if (calls[i].worker != worker)
			continue;
		beats[--n] = (struct beat){
			c->enter_ns, hash_number(hash_number(hash_number(c->comm) ^ c->bytes) ^
						 ((uint64_t)(uint32_t)c->peer << 16 | c->op))};
	}
}

/* The share of calls that are as the one @apart before. */
static double same(const struct beat *beats, size_t n, size_t apart)
{
	size_t alike = 0;

	for (size_t i = apart; i < n; i++)
		alike += beats[i].kind == beats[i - apart].kind;
	return (double)alike / (double)(n - apart);
}

static size_t period_of(const struct beat *beats, size_t n, double shares[CALLS_MAX / PERIODS + 1])
{
	double best = 0;
	size_t p = 1;

	for (size_t i = 1; i <= n / PERIODS; i++) {
		shares[i] = same(beats, n, i);
		best = MAX(best, shares[i]);
	}
	if (best < SAME_LEAST)
		return 0;
	while (shares[p] < best - ABOUT_EQUAL)
		p++;
	return p;
}

int call_rhythm_step(
	const struct blame_call *calls, size_t count, uint32_t worker, uint64_t *ret_step_ns)
{
	size_t n = calls_of(calls, count, worker), newest = MIN(n, (size_t)CALLS_MAX), p, m = 0;
	_cleanup_free_ struct beat *beats = calloc(n + 1, sizeof(*beats));
	_cleanup_free_ double *shares = calloc(CALLS_MAX / PERIODS + 1, sizeof(*shares));
	_cleanup_free_ uint64_t *lengths = calloc(n + 1, sizeof(*lengths));

	*ret_step_ns = 0;
	if (!beats || !shares || !lengths)
		return -ENOMEM;
	gather(calls, count, worker, beats, n);
	qsort(beats, n, sizeof(*beats), by_time);
	p = n >= PERIODS ? period_of(beats + n - newest, newest, shares) : 0;
	if (p < 2)
		return 0;
	for (size_t i = p; i < n; i++)
		lengths[m++] = (uint64_t)(beats[i].at_ns - beats[i - p].at_ns);
	robust_sort(lengths, m);
	*ret_step_ns = robust_median(lengths, m);
	return 0;
}

int call_rhythm_set(
	struct blame_worker *workers, size_t n, const struct blame_call *calls, size_t count)
{
	uint32_t asked[RANKS];
	uint64_t step_ns = 0;
	size_t m = 0;

	for (size_t i = count; i-- > 0 && m < RANKS;) {
		uint64_t told;
		size_t k = 0;

		while (k < m && asked[k] != calls[i].worker)
			k++;
		if (k < m)
			continue;
		asked[m++] = calls[i].worker;
		if (call_rhythm_step(calls, count, calls[i].worker, &told) < 0)
			return -ENOMEM;
		step_ns = MAX(step_ns, told);
	}
	for (size_t i = 0; i < n; i++)
		workers[i].step_ns = step_ns;
	return 0;
}
