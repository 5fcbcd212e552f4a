/* SPDX-License-Identifier: Apache-2.0 */
/* price.c - what waiting costs: GPU-seconds by the price of the cluster's GPUs. A model without a
 * price makes the cluster's cost unpriced, with its name; the others still count. */
#include "cluster/detect/fleet_private.h"

/* The nodes of a cluster are mostly alike: what was found for one is kept for the next. */
struct lookup {
	char provider[PUSH_WORD_MAX], model[PUSH_MODEL_MAX];
	bool is_done, is_found;
	struct rate rate;
};

static bool look_up(
	const struct fleet *f, struct lookup *l, const char *provider, const char *model)
{
	if (l->is_done && strcmp(l->provider, provider ? provider : "") == 0 &&
		strcmp(l->model, model) == 0)
		return l->is_found;
	*l = (struct lookup){.is_done = true};
	snprintf(l->provider, sizeof(l->provider), "%s", provider ? provider : "");
	snprintf(l->model, sizeof(l->model), "%s", model);
	l->is_found = f->settings.rates && rates_find(f->settings.rates, provider, model, &l->rate);
	return l->is_found;
}

/* NULL: not known. */
static const char *provider_of(const struct fleet *f, const struct push_health *h)
{
	const char *p = h->who.provider[0] ? h->who.provider : f->settings.provider;

	return p && *p ? p : NULL;
}

struct price price_of(const struct fleet *f, const char *cluster)
{
	struct price p = {.cost = {.priced = true}};
	struct lookup found = {0};
	struct node_view v;
	size_t cursor = 0;
	double gpus = 0, priced = 0, powered = 0;

	while (nodes_next(f->nodes, cluster, &cursor, &v)) {
		const char *provider = provider_of(f, v.last);
		double count = MAX(v.last->gpu_count, 1U);
		const struct rate *rate = &found.rate;

		gpus += count;
		if (!look_up(f, &found, provider, v.last->gpu_model)) {
			if (p.cost.priced)
				snprintf(p.cost.unpriced, sizeof(p.cost.unpriced), "%s",
					v.last->gpu_model[0] ? v.last->gpu_model
							     : "a GPU of unknown model");
			p.cost.priced = false;
			continue;
		}
		priced += count;
		p.hourly += count * rate->hourly;
		p.cost.is_middle |= rate->is_middle;
		p.cost.is_guess |= rate->is_middle && !provider;
		if (rate->watts > 0) {
			powered += count;
			p.watts += count * rate->watts;
		}
		snprintf(p.cost.currency, sizeof(p.cost.currency), "%s", rate->currency);
		snprintf(p.cost.symbol, sizeof(p.cost.symbol), "%s", rate->symbol);
	}
	p.cost.gpu_hour = priced > 0 ? p.hourly / priced : 0;
	/* Those without a price wait for nothing, as far as money is concerned. */
	if (gpus > 0)
		p.hourly /= gpus;
	if (powered > 0)
		p.watts /= powered;
	if (priced == 0) {
		p.cost.priced = false;
		if (!p.cost.unpriced[0])
			snprintf(
				p.cost.unpriced, sizeof(p.cost.unpriced), "a GPU of unknown model");
	}
	return p;
}

void episode_waits(struct episode *e, double lost_rate, const struct price *p)
{
	e->lost_rate = lost_rate;
	e->rate_hourly = p->hourly;
	e->watts = p->watts;
	e->e.cost.priced = p->cost.priced;
	e->e.cost.is_middle = p->cost.is_middle;
	e->e.cost.is_guess = p->cost.is_guess;
	e->e.cost.gpu_hour = p->cost.gpu_hour;
	e->e.cost.per_hour = lost_rate * p->hourly;
	memcpy(e->e.cost.currency, p->cost.currency, sizeof(p->cost.currency));
	memcpy(e->e.cost.symbol, p->cost.symbol, sizeof(p->cost.symbol));
	memcpy(e->e.cost.unpriced, p->cost.unpriced, sizeof(p->cost.unpriced));
}

bool fleet_cost(const struct fleet *f, const char *cluster, struct fleet_cost *ret)
{
	struct price p = price_of(f, cluster);
	bool known = fleet_calls(f, cluster) != NULL;

	*ret = p.cost;
	for (size_t i = 0; i < f->live_count; i++) {
		const struct fleet_episode *e = &f->live[i]->e;

		if (!f->live[i]->told || strcmp(e->cluster, cluster) != 0)
			continue;
		ret->per_hour += e->cost.per_hour;
		ret->total += e->cost.total;
		ret->gpu_seconds += e->cost.gpu_seconds;
		ret->watt_hours += e->cost.watt_hours;
	}
	return known;
}
