/* SPDX-License-Identifier: Apache-2.0 */
/* gain.c - see gain.h. The range has three reasons: units differ among themselves, a part of the time is not known and
 * may or may not belong to the delay, and work of the GPU may lie hidden beneath it. What is not known cannot be mended. */
#include "diagnose/compose/gain.h"

#include "diagnose/thresholds.h"
#include "base/macros.h"

#define LINK_BYTES_NS                                                                              \
	12.0 /* bytes/ns: a copy from pinned memory over a common link; copies that do not block still
			      take so long */

/* How far an ordinary unit is from their mean, on average. */
static double spread_ns(const struct step_account *a)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < a->mark_count; i++) {
		double d = (double)a->marks[i].dur_ns - (double)a->ordinary_step_ns;

		if (a->lost_ns && a->marks[i].is_slow)
			continue;
		sum += d < 0 ? -d : d;
		n++;
	}
	return n ? sum / (double)n : 0;
}

static uint64_t clamp(double ns, uint64_t from, uint64_t to)
{
	return ns <= (double)from ? from : ns >= (double)to ? to : (uint64_t)ns;
}

/* What grew beside the delays that are told is taken to come with them; at worst it is none of theirs. */
static void of_slow(
	const struct step_account *a, const struct delay *l, double told, struct gain *ret)
{
	double slow = (double)a->slow_step_ns;
	double span = MAX(slow - (double)a->ordinary_step_ns, 0.0), spread = spread_ns(a);
	double fixed = told > 0 ? slow - MIN(l->share / told, 1.0) * span : slow;

	ret->unit_ns = a->slow_step_ns;
	ret->fixed_ns = clamp(fixed, 0, ret->unit_ns);
	ret->least_ns = clamp(fixed - spread, 0, ret->fixed_ns);
	ret->most_ns = clamp(slow - l->share * span + spread, ret->fixed_ns, ret->unit_ns);
}

/* How much of the delay goes with what it leads to: work of the GPU's own gets shorter, it does not go, and code that is
 * moved elsewhere or written better is still waited for now and then. */
static double removable(const struct delay *l)
{
	bool is_known = l->end.resource != RESOURCE_NONE && l->end.share > 0;

	if (l->kind == DELAY_BY_HOST)
		return THRESHOLD(HOST_GOES);
	return l->kind == DELAY_BY_GPU && is_known ? MIN(l->end.share, 1.0) : 1;
}

static void of_every(
	const struct step_account *a, const struct delay *l, uint64_t busy_ns, struct gain *ret)
{
	double unit = (double)a->ordinary_step_ns;
	double part = MIN((double)l->slow_ns, unit) * removable(l);
	double rest = unit - part, spread = spread_ns(a);
	bool is_of_gpu = l->kind == DELAY_BY_GPU; /* then that is what gets shorter */
	double fixed = is_of_gpu ? rest : MAX(rest, (double)busy_ns), most = fixed + spread;

	if (!busy_ns || is_of_gpu)
		most += THRESHOLD(CHAIN_MOST) * part;
	if (l->kind == DELAY_BY_COPY)
		most += a->ordinary_bytes / LINK_BYTES_NS;
	ret->unit_ns = a->ordinary_step_ns;
	ret->fixed_ns = clamp(fixed, 0, ret->unit_ns);
	ret->least_ns = clamp(unit - MIN((double)l->slow_ns, unit) - spread, 0, ret->fixed_ns);
	ret->most_ns = clamp(most, ret->fixed_ns, ret->unit_ns);
}

void gain_of(const struct step_account *a, const struct delay *l, double told, uint64_t busy_ns,
	struct gain *ret)
{
	*ret = (struct gain){0};
	if (l->kind == DELAY_BY_UNKNOWN)
		return;
	if (a->lost_ns)
		of_slow(a, l, told, ret);
	else
		of_every(a, l, busy_ns, ret);
}

struct busy { /* of one GPU */
	int64_t index;
	double sum;
	size_t count;
};

uint64_t gain_busy_ns(const struct recording *rec, const struct step_account *a)
{
	struct busy gpus[16] = {0};
	size_t n = 0;
	double most = 0;

	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *s = &rec->gpus[i];
		size_t k = 0;

		if (s->util_gpu_pct < 0 || s->time.ns < a->first.ns || s->time.ns > a->last.ns)
			continue;
		while (k < n && gpus[k].index != s->index)
			k++;
		if (k == ARRAY_SIZE(gpus))
			continue;
		if (k == n)
			gpus[n++].index = s->index;
		gpus[k].sum += (double)MIN(s->util_gpu_pct, INT64_C(100)) / 100;
		gpus[k].count++;
	}
	for (size_t k = 0; k < n; k++)
		if (gpus[k].count >= THRESHOLD(READINGS))
			most = MAX(most, gpus[k].sum / (double)gpus[k].count);
	return (uint64_t)(most * (double)a->ordinary_step_ns);
}

void gain_put(const struct gain *g, struct incident *inc)
{
	inc->unit_ns = g->unit_ns;
	inc->fixed_ns = g->fixed_ns;
	inc->fixed_least_ns = g->least_ns;
	inc->fixed_most_ns = g->most_ns;
}
