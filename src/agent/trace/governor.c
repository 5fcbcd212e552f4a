/* SPDX-License-Identifier: Apache-2.0 */
/* governor.c - see governor.h. The weight doubles at once when the budget is exceeded, by as much
 * as needed, and halves only when half of it would have been enough with a quarter to spare, so
 * that it does not swing. */
#include "agent/trace/governor.h"

#include <math.h>

#define CALM_SHARE 0.75
#define FACTOR_MIN 0.5 /* a trial may be wrong: it does not rule alone */
#define FACTOR_MAX 8

void governor_init(struct governor *g, double budget, double hit_ns, bool can_switch)
{
	*g = (struct governor){.budget = budget,
		.hit_ns = hit_ns,
		.weight = 1,
		.launch_factor = 1,
		.can_switch = can_switch};
}

/* What the probes would cost at @weight, if launches came at the rate seen. */
static double cost_at(const struct governor *g, double launches, double others, unsigned weight)
{
	return (launches * g->launch_factor / weight + others) * g->hit_ns / (double)NS_PER_S;
}

void governor_period(struct governor *g, uint64_t launch_hits, uint64_t other_hits, double seconds)
{
	double launches, others;
	unsigned w = g->weight;

	if (seconds <= 0)
		return;
	launches = (double)launch_hits * g->weight / seconds;
	others = (double)other_hits / seconds;
	g->launch_rate = launches;
	g->others = others * g->hit_ns / (double)NS_PER_S;
	g->overhead = (double)(launch_hits + other_hits) * g->hit_ns / (seconds * (double)NS_PER_S);
	g->spent_ns += (double)(launch_hits + other_hits) * g->hit_ns;
	g->seconds += seconds;
	if (g->budget <= 0 || !g->can_switch)
		return;
	while (w < GOVERNOR_WEIGHT_MAX && cost_at(g, launches, others, w) > g->budget)
		w *= 2;
	while (w > 1 && w == g->weight &&
		cost_at(g, launches, others, w / 2) < CALM_SHARE * g->budget)
		w /= 2;
	g->weight = w;
}

void governor_trial(struct governor *g, uint64_t hits, double seconds)
{
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
