/* SPDX-License-Identifier: Apache-2.0 */
/* governor.c - see governor.h. The weight doubles at once when the budget is exceeded, by as much
 * as needed, and halves only when half of it would have been enough with a quarter to spare, so
 * that it does not swing. */
#include "agent/trace/governor.h"

#include <math.h>

#define CALM_SHARE 0.75
#define ROOM_SHARE 0.25 /* of the budget: launches have that at least, whatever the rest costs */
#define FACTOR_MIN 0.5  /* a trial may be wrong: it does not rule alone */
#define FACTOR_MAX 8

void governor_init(struct governor *g, double budget, double hit_ns, bool can_switch)
{
	*g = (struct governor){.budget = budget,
		.hit_ns = hit_ns,
		.weight = 1,
		.launch_factor = 1,
		.can_switch = can_switch};
}

/* What launches would cost at @weight, if they came at the rate seen. */
static double cost_at(const struct governor *g, unsigned weight)
{
	return g->launch_rate * g->launch_factor / weight * g->hit_ns / (double)NS_PER_S;
}

/* What they may cost. Sampling launches does not make the rest cheaper: where that alone is over the
 * budget (a compiler's start, deep stacks), the few launches of such a time are still seen. */
static double room(const struct governor *g)
{
	return fmax(g->budget - g->others, ROOM_SHARE * g->budget);
}

void governor_period(struct governor *g, uint64_t launch_hits, uint64_t other_hits, double seconds)
{
	unsigned w = g->weight;

	if (seconds <= 0)
		return;
	g->launch_rate = (double)launch_hits * g->weight / seconds;
	g->others = (double)other_hits / seconds * g->hit_ns / (double)NS_PER_S;
	g->overhead = (double)(launch_hits + other_hits) * g->hit_ns / (seconds * (double)NS_PER_S);
	g->spent_ns += (double)(launch_hits + other_hits) * g->hit_ns;
	g->seconds += seconds;
	if (g->budget <= 0 || !g->can_switch)
		return;
	while (w < GOVERNOR_WEIGHT_MAX && cost_at(g, w) > room(g))
		w *= 2;
	while (w > 1 && w == g->weight && cost_at(g, w / 2) < CALM_SHARE * room(g))
		w /= 2;
	g->weight = w;
}

void governor_trial(struct governor *g, uint64_t hits, double seconds)
{
	if (seconds <= 0)
		return;
	g->overhead = (double)hits * g->hit_ns / (seconds * (double)NS_PER_S);
	g->spent_ns += (double)hits * g->hit_ns;
	g->seconds += seconds;
}

void governor_learn(struct governor *g, double low, double high)
{
	double account = g->launch_rate * g->hit_ns / (double)NS_PER_S, factor;

	if (account <= 0)
		return;
	factor = fmin(fmax(account, low), high) / account;
	g->launch_factor = fmin(fmax(factor, FACTOR_MIN), FACTOR_MAX);
}

double governor_mean(const struct governor *g)
{
	return g->seconds > 0 ? g->spent_ns / (g->seconds * (double)NS_PER_S) : 0;
}

bool governor_wants_on(const struct governor *g, wall_time now)
{
	int64_t period = (int64_t)GOVERNOR_PERIOD_NS;

	return now.ns % period < period / g->weight;
}
