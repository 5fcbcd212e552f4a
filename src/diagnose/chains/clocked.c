/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/clocked.h"

#include "diagnose/thresholds.h"
#include "base/macros.h"

#define CLOCKED_UNITS  16 /* together: where one ends and the next begins does not matter */
#define CLOCKED_GROUPS 8

struct spread { /* of values that come one by one */
	double sum, squares;
	int count;
};

static void spread_add(struct spread *s, double value)
{
	s->sum += value;
	s->squares += value * value;
	s->count++;
}

static double spread_variance(const struct spread *s)
{
	double mean = s->sum / MAX(s->count, 1);

	return s->squares / MAX(s->count, 1) - mean * mean;
}

bool units_are_clocked(const struct step_account *a)
{
	struct spread lengths = {0}, works = {0};
	double length = 0, work = 0, jitter;
	uint32_t units = 0;

	for (size_t i = 0; i < a->bar_count; i++) {
		const struct account_bar *b = &a->bars[i];
		double waits = (double)b->ns[ACCOUNT_ASLEEP] + (double)b->ns[ACCOUNT_NETWORK] +
			       (double)b->ns[ACCOUNT_LOCK];

		length += (double)b->dur_ns / NS_PER_US;
		work += ((double)b->dur_ns - waits) / NS_PER_US;
		units += b->steps;
		if (units < CLOCKED_UNITS)
			continue;
		spread_add(&lengths, length / units);
		spread_add(&works, work / units);
		length = work = 0;
		units = 0;
	}
	jitter = THRESHOLD(CLOCK_JITTER) * lengths.sum / MAX(lengths.count, 1);
	return works.count >= CLOCKED_GROUPS && spread_variance(&lengths) < jitter * jitter &&
	       spread_variance(&lengths) < THRESHOLD(CHAIN_MOST) * spread_variance(&works);
}
