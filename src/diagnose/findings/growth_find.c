/* SPDX-License-Identifier: Apache-2.0 */
/* growth_find.c - see growth_find.h.
 *
 * The growth is the longest stretch up to the last reading in which memory follows a straight line:
 *   no reading is further from the line between its ends than 20 % of the growth (one jump, a few
 *   jumps, doubling and a level that is reached are all further away),
 *   its last fifth, two readings at least, has half of its share (a pool that approaches its level
 *   has not),
 *   at least 5 readings are above the one before, 10 where memory never stood still before: until
 *   then it may be the warm-up,
 *   it is 1 GiB or 5 % of the GPU's memory, whichever is less, and at least half of it is above what
 *   was in use at any time before (the teeth of a saw are not).
 * Readings that stood still at the start are left out of the stretch. Where readings are missing for
 * 10 s, what happened is not known: only what is after that counts, and it must reach to_ns.
 *
 * The last half hour is looked at: O(n^2) of 1800 readings at worst, since most beginnings are given
 * up at their first readings. */
#include "diagnose/findings/growth_find.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/macros.h"

#define READINGS_MAX   1800
#define BEND_MAX       0.2
#define END_SHARE      0.2
#define END_READINGS   2
#define STILL_GROWING  0.5
#define RISES_MIN      5
#define RISES_UNLEVEL  10
#define LEVEL_READINGS 3
#define FLAT_SHARE     0.25 /* of the mean rate: as good as none */
#define NEW_SHARE      0.5
#define LEAST_BYTES    ((double)(UINT64_C(1) << 30))
#define LEAST_SHARE    0.05
#define HOLE_S         10.0

struct reading {
	double s; /* since from_ns */
	double used;
	const struct gpu_sample *sample;
};

static double least_of(const struct gpu_sample *g)
{
	return g->mem_total_bytes > 0 ? MIN(LEAST_BYTES, LEAST_SHARE * (double)g->mem_total_bytes)
				      : LEAST_BYTES;
}

bool growth_is_possible(const struct recording *rec)
{
	int64_t low = INT64_MAX, high = -1;
	double least = LEAST_BYTES;

	for (size_t i = 0; i < rec->gpu_count; i++) {
		if (rec->gpus[i].mem_used_bytes < 0)
			continue;
		low = MIN(low, rec->gpus[i].mem_used_bytes);
		high = MAX(high, rec->gpus[i].mem_used_bytes);
		least = MIN(least, least_of(&rec->gpus[i]));
	}
	return high >= 0 && (double)high - (double)low >= least;
}

/* The newest readings of @gpu in the time, in its order. */
static size_t take_readings(const struct recording *rec, int64_t gpu, int64_t from_ns,
	int64_t to_ns, struct reading *ret)
{
	size_t n = 0;

	for (size_t i = rec->gpu_count; i-- > 0 && n < READINGS_MAX;) {
		const struct gpu_sample *g = &rec->gpus[i];

		if (g->index == gpu && g->mem_used_bytes >= 0 && g->time.ns >= from_ns &&
			g->time.ns <= to_ns)
			ret[READINGS_MAX - ++n] = (struct reading){
				(double)(g->time.ns - from_ns) / 1e9, (double)g->mem_used_bytes, g};
	}
	return n;
}

static double rate_of(const struct reading *a, const struct reading *b)
{
	return (b->used - a->used) / MAX(b->s - a->s, 1e-3);
}

/* More than BEND_MAX: not a straight line. */
static double bend_of(const struct reading *r, size_t n)
{
	double rate = rate_of(&r[0], &r[n - 1]), growth = r[n - 1].used - r[0].used, bend = 0;

	for (size_t i = 1; i < n && bend <= BEND_MAX; i++)
		bend = MAX(bend, fabs(r[i].used - r[0].used - rate * (r[i].s - r[0].s)) / growth);
	return bend;
}

static bool is_still_growing(const struct reading *r, size_t n)
{
	const struct reading *last = &r[n - 1], *since = &r[n - MIN(n, (size_t)END_READINGS + 1)];

	while (since > r && last->s - since->s < END_SHARE * (last->s - r[0].s))
		since--;
	return rate_of(since, last) >= STILL_GROWING * rate_of(&r[0], last);
}

static size_t rises_of(const struct reading *r, size_t n)
{
	size_t rises = 0;

	for (size_t i = 1; i < n; i++)
		rises += r[i].used > r[i - 1].used;
	return rises;
}

/* Whether memory stood still in the readings before @at, against growth by @rate. */
static bool is_level_before(const struct reading *r, size_t at, double rate)
{
	return at >= LEVEL_READINGS &&
	       fabs(rate_of(&r[at - LEVEL_READINGS], &r[at])) <= FLAT_SHARE * rate;
}

/* Judges the stretch of @r from @at to the last of @n. */
static bool grows_from(const struct reading *r, size_t at, size_t n, struct memory_growth *ret)
{
	const struct reading *last = &r[n - 1];
	double bend, peak = 0;
	size_t rises;
	bool level;

	if (last->used - r[at].used < least_of(last->sample) || bend_of(&r[at], n - at) > BEND_MAX)
		return false;
	while (at + 2 < n && rate_of(&r[at], &r[at + 1]) <= FLAT_SHARE * rate_of(&r[at], last))
		at++;
	for (size_t i = 0; i <= at; i++)
		peak = MAX(peak, r[i].used);
	bend = bend_of(&r[at], n - at);
	rises = rises_of(&r[at], n - at);
	level = is_level_before(r, at, rate_of(&r[at], last));
	if (rises < (level ? RISES_MIN : RISES_UNLEVEL) || bend > BEND_MAX ||
		!is_still_growing(&r[at], n - at) ||
		last->used - r[at].used < least_of(last->sample) ||
		last->used - peak < NEW_SHARE * (last->used - r[at].used))
		return false;
	*ret = (struct memory_growth){.first_ns = r[at].sample->time.ns,
		.last_ns = last->sample->time.ns,
		.start_bytes = (uint64_t)r[at].used,
		.bytes = (uint64_t)(last->used - r[at].used),
		.free_bytes = last->sample->mem_free_bytes,
		.rises = rises,
		.bend = bend,
		.after_level = level};
	return true;
}

int growth_find(const struct recording *rec, int64_t gpu, int64_t from_ns, int64_t to_ns,
	struct memory_growth *ret)
{
	_cleanup_free_ struct reading *all = calloc(READINGS_MAX, sizeof(*all));
	const struct reading *r;
	size_t n, first = 0;

	if (!all)
		return -ENOMEM;
	n = take_readings(rec, gpu, from_ns, to_ns, all);
	r = all + READINGS_MAX - n;
	if (n < 2 || (double)(to_ns - r[n - 1].sample->time.ns) / 1e9 > HOLE_S)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (r[i].s - r[i - 1].s > HOLE_S)
			first = i;
	for (size_t at = first; at + RISES_MIN < n; at++)
		if (grows_from(r, at, n, ret))
			return 1;
	return 0;
}
