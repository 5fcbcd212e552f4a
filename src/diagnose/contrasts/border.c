/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/contrasts/border.h"

#include <math.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"

/* The first step that is slow; @n: none is, or ordinary ones come later. */
static size_t first_slow(const struct step_facts *steps, size_t n)
{
	size_t first = n;

	for (size_t i = 0; i < n; i++)
		if (steps[i].class == STEP_SLOW)
			first = MIN(first, i);
		else if (steps[i].class == STEP_ORDINARY && first < n)
			return n;
	return first;
}

/* The length between those of the two classes, by their means; 0: they are not far apart. */
static uint64_t limit_of(const struct step_facts *steps, size_t n, const struct classification *c)
{
	double ordinary = 0, slow = 0;

	for (size_t i = 0; i < n; i++)
		if (steps[i].class != STEP_OTHER)
			*(steps[i].class == STEP_SLOW ? &slow : &ordinary) +=
				(double)steps[i].dur_ns;
	ordinary /= (double)MAX(c->ordinary, (size_t)1);
	slow /= (double)MAX(c->slow, (size_t)1);
	return slow >= THRESHOLD(HALF_MORE) * ordinary ? (uint64_t)sqrt(slow * ordinary) : 0;
}

static size_t first_long(const struct step_facts *steps, size_t n, size_t from, uint64_t limit)
{
	size_t run = 0, in_a_row = (size_t)THRESHOLD(AGAIN);

	for (size_t i = from; i < n; i++) {
		if (steps[i].class != STEP_SLOW)
			continue;
		run = steps[i].dur_ns >= limit ? run + 1 : 0;
		if (run == in_a_row)
			return i + 1 - in_a_row;
	}
	return from;
}

void border_settle(struct step_facts *steps, size_t n, struct classification *found)
{
	size_t from = first_slow(steps, n), to;
	uint64_t limit = from < n && found->group == 1 ? limit_of(steps, n, found) : 0;
	double ordinary = 0, slow = 0;

	if (!limit || !found->ordinary)
		return;
	to = first_long(steps, n, from, limit);
	for (size_t i = from; i < to; i++)
		if (steps[i].class == STEP_SLOW && steps[i].dur_ns < limit) {
			steps[i].class = STEP_ORDINARY;
			found->ordinary++;
			found->slow--;
		}
	for (size_t i = 0; i < n; i++)
		if (steps[i].class != STEP_OTHER)
			*(steps[i].class == STEP_SLOW ? &slow : &ordinary) +=
				(double)steps[i].dur_ns;
	found->lost_ns =
		(uint64_t)MAX(slow - ordinary / (double)found->ordinary * (double)found->slow, 0.0);
}
