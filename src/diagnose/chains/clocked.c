/* SPDX-License-Identifier: Apache-2.0 */
/* clocked.c - see clocked.h. That lengths vary less than work does is not enough: what is work and what is waiting may be
 * told apart differently from unit to unit. A clock does not care how much is done, so lengths do not follow work; and
 * it is even. */
#include "diagnose/chains/clocked.h"

#include <math.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"

#define CLOCKED_UNITS  16 /* together: where one ends and the next begins does not matter */
#define CLOCKED_GROUPS 8

struct pairs { /* of the length and the work of a unit, which come one by one */
	double lengths, works, length_squares, work_squares, products;
	int count;
};

static void pairs_add(struct pairs *p, double length, double work)
{
	p->lengths += length;
	p->works += work;
	p->length_squares += length * length;
	p->work_squares += work * work;
	p->products += length * work;
	p->count++;
}

static bool lengths_ignore_work(const struct pairs *p)
{
	double n = p->count;
	double of_lengths = p->length_squares / n - p->lengths / n * (p->lengths / n);
	double of_works = p->work_squares / n - p->works / n * (p->works / n);
	double of_both = p->products / n - p->lengths / n * (p->works / n);
	double jitter = THRESHOLD(CLOCK_JITTER) * p->lengths / n;

	return of_lengths < jitter * jitter && of_lengths < THRESHOLD(CHAIN_MOST) * of_works &&
	       of_both < THRESHOLD(CHAIN_MOST) * sqrt(MAX(of_lengths, 0.0) * of_works);
}

bool units_are_clocked(const struct step_account *a)
{
	struct pairs all = {0};
	double length = 0, work = 0;
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
		pairs_add(&all, length / units, work / units);
		length = work = 0;
		units = 0;
	}
	return all.count >= CLOCKED_GROUPS && lengths_ignore_work(&all);
}
