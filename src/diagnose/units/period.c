/* SPDX-License-Identifier: Apache-2.0 */
/* period.c - see period.h. */
#include "diagnose/units/period.h"

#include <stdlib.h>

#define FAR_STEPS 1 /* a stall at the edge of a step shows in its neighbour too */

static int by_number(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

bool period_of_steps(const struct step_list *steps, size_t *at, size_t n, struct periodicity *ret)
{
	_cleanup_free_ uint64_t *positions = calloc(n + 1, sizeof(*positions));
	size_t count = 0, last = 0;

	if (!positions || !n)
		return false;
	qsort(at, n, sizeof(*at), by_number);
	for (size_t i = 0; i < n && at[i] < steps->count; i++) {
		if (!count || at[i] > last + FAR_STEPS)
			positions[count++] = at[i];
		last = at[i];
	}
	if (!periodicity_find(positions, count, ret))
		return false;
	ret->confidence *= steps->confidence;
	return true;
}
