/* SPDX-License-Identifier: Apache-2.0 */
/* throttle_find.c - see throttle_find.h.
 *
 * A reading holds until the next one, for 3 s at most. It is one of lowered clocks if it names a
 * reason which slows the GPU (gpu_throttles: `slows`), or if the GPU is busy (in use for half of
 * the time or more, or that is not known, and not said to be idle) at less than 85 % of its usual
 * clock, the 90th percentile of busy readings: clocks that somebody has locked come without a
 * reason. Of an idle GPU the clock says nothing. */
#include "diagnose/findings/throttle_find.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/search.h"
#include "stat/robust.h"

#define HOLDS_NS     ((int64_t)(3 * NS_PER_S))
#define BUSY_PCT     50
#define USUAL        0.9
#define LOWERED      0.85
#define REASON_IDLE  1
#define READINGS_MIN 3 /* busy ones, to know the usual clock */

struct clocks { /* of busy readings, MHz */
	uint64_t *in, *out;
	size_t in_count, out_count;
	double use;
	size_t use_count;
};

static void clocks_done(struct clocks *c)
{
	free(c->in);
	free(c->out);
}

static uint64_t slowing(const struct gpu_sample *s)
{
	uint64_t mask = 0;

	for (const struct gpu_throttle *t = gpu_throttles; t->bit; t++)
		if (t->slows)
			mask |= t->bit;
	return s->throttle_reasons > 0 ? (uint64_t)s->throttle_reasons & mask : 0;
}

static bool is_sane(const struct gpu_sample *s, int64_t index)
{
	return s->index == index && s->time.ns >= 0 && s->time.ns <= INT64_C(1) << 62;
}

static bool is_busy(const struct gpu_sample *s)
{
	bool is_idle = s->throttle_reasons > 0 && (s->throttle_reasons & REASON_IDLE);

	return s->sm_clock_mhz > 0 && !is_idle &&
	       (s->util_gpu_pct == GPU_UNKNOWN || s->util_gpu_pct >= BUSY_PCT);
}

/* 0: not known. @scratch has room for all readings. */
static double usual_clock(const struct recording *rec, int64_t index, uint64_t *scratch)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->gpu_count; i++)
		if (is_sane(&rec->gpus[i], index) && is_busy(&rec->gpus[i]))
			scratch[n++] = (uint64_t)rec->gpus[i].sm_clock_mhz;
	robust_sort(scratch, n);
	return n < READINGS_MIN ? 0 : (double)robust_quantile(scratch, n, USUAL);
}

static void add_reading(struct gpu_throttle_spans *g, struct clocks *c, const struct gpu_sample *s,
	int64_t until, double usual)
{
	uint64_t bits = slowing(s);
	bool is_lowered = bits || (is_busy(s) && (double)s->sm_clock_mhz < LOWERED * usual);

	g->readings++;
	g->first_ns = g->readings == 1 ? s->time.ns : g->first_ns;
	g->last_ns = until;
	if (is_busy(s) && is_lowered)
		c->in[c->in_count++] = (uint64_t)s->sm_clock_mhz;
	else if (is_busy(s))
		c->out[c->out_count++] = (uint64_t)s->sm_clock_mhz;
	if (!is_lowered)
		return;
	if (s->util_gpu_pct != GPU_UNKNOWN) {
		c->use += (double)s->util_gpu_pct / 100;
		c->use_count++;
	}
	g->bits |= bits;
	g->throttle_spans[g->count++] = (struct throttle_span){s->time.ns, until};
	g->ns += until - s->time.ns;
}

int throttle_find(const struct recording *rec, int64_t index, struct gpu_throttle_spans *ret)
{
	_cleanup_(clocks_done) struct clocks c = {0};
	const struct gpu_sample *last = NULL;
	double usual;

	*ret = (struct gpu_throttle_spans){.index = index};
	ret->throttle_spans = calloc(rec->gpu_count + 1, sizeof(*ret->throttle_spans));
	c.in = calloc(rec->gpu_count + 1, sizeof(*c.in));
	c.out = calloc(rec->gpu_count + 1, sizeof(*c.out));
	if (!ret->throttle_spans || !c.in || !c.out)
		return -ENOMEM;
	usual = usual_clock(rec, index, c.in);
	for (size_t i = 0; i <= rec->gpu_count; i++) {
		const struct gpu_sample *s = i < rec->gpu_count ? &rec->gpus[i] : NULL;

		if (s && (!is_sane(s, index) || (last && s->time.ns <= last->time.ns)))
			continue;
		if (last)
			add_reading(ret, &c, last,
				s ? MIN(s->time.ns, last->time.ns + HOLDS_NS)
				  : last->time.ns + (int64_t)NS_PER_S,
				usual);
		last = s;
	}
	robust_sort(c.in, c.in_count);
	robust_sort(c.out, c.out_count);
	ret->clock_inside = c.in_count ? (int64_t)robust_median(c.in, c.in_count) : -1;
	ret->clock_outside = c.out_count ? (int64_t)robust_median(c.out, c.out_count) : -1;
	ret->busy = c.use_count ? MIN(c.use / (double)c.use_count, 1.0) : 1;
	return 0;
}

void throttle_done(struct gpu_throttle_spans *g)
{
	free(g->throttle_spans);
}
