/* SPDX-License-Identifier: Apache-2.0 */
/* governor.c - see governor.h. The weight doubles at once when the budget is exceeded, by as much
 * as needed, and halves only when half of it would have been enough with a quarter to spare, so
 * that it does not swing. */
#include "agent/trace/governor.h"

#define CALM_SHARE 0.75

void governor_init(struct governor *g, double budget, double hit_ns, bool can_switch)
{
	*g = (struct governor){
		.budget = budget, .hit_ns = hit_ns, .weight = 1, .can_switch = can_switch};
}

/* What the probes would cost at @weight, if launches came at the rate seen. */
static double cost_at(const struct governor *g, double launches, double others, unsigned weight)
{
	return (launches / weight + others) * g->hit_ns / (double)NS_PER_S;
}

void governor_period(struct governor *g, uint64_t launch_hits, uint64_t other_hits, double seconds)
{
	double launches, others;
	unsigned w = g->weight;

	if (seconds <= 0)
		return;
	launches = (double)launch_hits * g->weight / seconds;
	others = (double)other_hits / seconds;
	g->overhead = cost_at(g, launches, others, g->weight);
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

double governor_mean(const struct governor *g)
{
	return g->seconds > 0 ? g->spent_ns / (g->seconds * (double)NS_PER_S) : 0;
}

bool governor_wants_on(const struct governor *g, wall_time now)
{
	int64_t period = (int64_t)GOVERNOR_PERIOD_NS;

	return now.ns % period < period / g->weight;
}
