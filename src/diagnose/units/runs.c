/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/units/runs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "stat/robust.h"

#define PLACES_MAX 64
#define RUNS_MIN   12
#define NEAR       1.5 /* times the usual distance, or the usual one times that of another */
#define SAME_SHARE 0.7 /* of the distances, and of the time without the longest break */

/* The places that have enough runs: each line of what sets a program up has one. @scratch has room for @n. */
static size_t places_of(
	const struct run_mark *marks, size_t n, uint64_t *scratch, uint64_t places[PLACES_MAX])
{
	size_t count = 0, runs = 0, next;
	uint64_t last = 0;

	for (size_t i = 0; i < n; i++) {
		if (marks[i].place && marks[i].place != last)
			scratch[runs++] = marks[i].place;
		last = marks[i].place ? marks[i].place : last;
	}
	robust_sort(scratch, runs);
	for (size_t i = 0; i < runs && count < PLACES_MAX; i = next) {
		for (next = i; next < runs && scratch[next] == scratch[i];)
			next++;
		if (next - i >= RUNS_MIN)
			places[count++] = scratch[i];
	}
	return count;
}

/* The moments at which runs of @place begin; marks without a place end none. */
static size_t begins_of(const struct run_mark *marks, size_t n, uint64_t place, int64_t *ret)
{
	uint64_t last = 0;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (marks[i].place == place && last != place)
			ret[count++] = marks[i].ns;
		last = marks[i].place ? marks[i].place : last;
	}
	return count;
}

/* The usual distance of @n moments, if nearly all are as far apart; else 0. */
static int64_t distance_of(const int64_t *at, size_t n, uint64_t *scratch)
{
	uint64_t usual, longest = 0, all = 0, same_ns = 0;
	size_t same = 0;

	if (n < RUNS_MIN)
		return 0;
	for (size_t i = 1; i < n; i++)
		scratch[i - 1] = (uint64_t)(at[i] - at[i - 1]);
	usual = robust_median_of(scratch, n - 1);
	for (size_t i = 0; i + 1 < n; i++) {
		bool is_near = (double)scratch[i] <= NEAR * (double)usual &&
			       (double)usual <= NEAR * (double)scratch[i];

		same += is_near;
		same_ns += is_near ? scratch[i] : 0;
		all += scratch[i];
		longest = is_near ? longest : MAX(longest, scratch[i]);
	}
	return (double)same >= SAME_SHARE * (double)(n - 1) &&
			       (double)same_ns >= SAME_SHARE * (double)(all - longest)
		       ? (int64_t)usual
		       : 0;
}

int runs_find(
	const struct run_mark *marks, size_t n, int64_t least_ns, int64_t *ret, size_t *ret_count)
{
	_cleanup_free_ int64_t *at = calloc(n + 1, sizeof(*at));
	_cleanup_free_ uint64_t *scratch = calloc(n + 1, sizeof(*scratch));
	uint64_t places[PLACES_MAX];
	size_t count;
	int64_t best = 0;

	*ret_count = 0;
	if (!at || !scratch)
		return -ENOMEM;
	count = places_of(marks, n, scratch, places);
	for (size_t i = 0; i < count; i++) {
		size_t begins = begins_of(marks, n, places[i], at);
		int64_t distance = distance_of(at, begins, scratch);

		if (distance < least_ns || !distance || (best && distance >= best))
			continue;
		best = distance;
		memcpy(ret, at, begins * sizeof(*at));
		*ret_count = begins;
	}
	return 0;
}
