/* SPDX-License-Identifier: Apache-2.0 */
/* cost_felt.c - see cost_felt.h. Invariant: 0 <= low <= share <= high. */
#include "record/trace/cost_felt.h"

#include <math.h>

void cost_load_add(struct cost_load *l, const struct cost_load *more)
{
	l->seconds += more->seconds;
	l->launches += more->launches;
	l->waits += more->waits;
	l->waited_ns += more->waited_ns;
}

struct cost_felt cost_felt_guess(double probes, const struct cost_load *l)
{
	double waited = l->seconds > 0 ? l->waited_ns / (l->seconds * (double)NS_PER_S) : 0;
	double first = l->launches > l->waits ? l->waits / l->launches : 1;
	double low = fmax(probes - waited, probes * first);

	if (waited <= 0)
		low = probes;
	return (struct cost_felt){.share = low, .low = low, .high = probes};
}

/* What a hit does to caches and branch predictors is not in its own time: at most as much again. */
static const double ACCOUNT_AT_MOST = 2;

static double clamp(double x, double low, double high)
{
	return fmin(fmax(x, low), high);
}

struct cost_felt cost_felt_join(
	double account, const struct cost_found *found, double part, const struct cost_felt *others)
{
	const struct paired *cpu = &found->cpu, *clock = &found->clock;
	double low = fmax(clock->low, 0), high = fmax(clock->high, 0);
	double share = clamp(account, fmax(cpu->low, 0), fmax(cpu->high, 0));

	if (cpu->high >= low)
		high = fmin(high, cpu->high);
	if (account * ACCOUNT_AT_MOST >= fmax(low, cpu->low))
		high = fmin(high, account * ACCOUNT_AT_MOST);
	return (struct cost_felt){.share = clamp(share, low, high) * part + others->share,
		.low = low * part + others->low,
		.high = high * part + others->high};
}
