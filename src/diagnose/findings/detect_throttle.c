/* SPDX-License-Identifier: Apache-2.0 */
/* detect_throttle.c - clocks that were lowered: a note of when and why, LOW. What that cost is told by the accounts of
 * those who waited for the GPU (gpu_change.h), and then this note is not needed. throttle_find() says when. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/findings/detector.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/search.h"
#include "stat/robust.h"
#include "diagnose/recording.h"

/* A reading holds until the next one, for 3 s at most. It is one of lowered clocks if it names a reason which slows the GPU
 * (gpu_throttles: `slows`). A GPU with much to do is at its power limit most of the time: that is worth a note only where its
 * clock is far below the highest that it has or, where that is not known, below the one that it has without a reason. */

struct gpu_throttle_spans {
	int64_t index;
	size_t count, readings;       /* with a reason, and all */
	uint64_t bits;                /* reasons of them all */
	int64_t ns, start_ns, end_ns; /* with a reason: all together, and from when to when */
	int64_t clock_inside, clock_outside; /* median of busy readings, MHz; -1: not known */
	int64_t clock_max;
	int64_t first_ns, last_ns;
};

#define HOLDS_NS    ((int64_t)(3 * NS_PER_S))
#define BUSY_PCT    50
#define LOWERED     0.85
#define REASON_IDLE 1

struct clocks { /* of busy readings, MHz */
	uint64_t *in, *out;
	size_t in_count, out_count;
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

static void add_reading(
	struct gpu_throttle_spans *g, struct clocks *c, const struct gpu_sample *s, int64_t until)
{
	uint64_t bits = slowing(s);

	g->readings++;
	g->first_ns = g->readings == 1 ? s->time.ns : g->first_ns;
	g->last_ns = until;
	g->clock_max = MAX(g->clock_max, s->sm_clock_max_mhz);
	if (is_busy(s) && bits)
		c->in[c->in_count++] = (uint64_t)s->sm_clock_mhz;
	else if (is_busy(s))
		c->out[c->out_count++] = (uint64_t)s->sm_clock_mhz;
	if (!bits)
		return;
	g->bits |= bits;
	g->start_ns = g->count++ ? g->start_ns : s->time.ns;
	g->end_ns = until;
	g->ns += until - s->time.ns;
}

static int throttle_find(const struct recording *rec, int64_t index, struct gpu_throttle_spans *ret)
{
	_cleanup_(clocks_done) struct clocks c = {0};
	const struct gpu_sample *last = NULL;

	*ret = (struct gpu_throttle_spans){.index = index};
	c.in = calloc(rec->gpu_count + 1, sizeof(*c.in));
	c.out = calloc(rec->gpu_count + 1, sizeof(*c.out));
	if (!c.in || !c.out)
		return -ENOMEM;
	for (size_t i = 0; i <= rec->gpu_count; i++) {
		const struct gpu_sample *s = i < rec->gpu_count ? &rec->gpus[i] : NULL;

		if (s && (!is_sane(s, index) || (last && s->time.ns <= last->time.ns)))
			continue;
		if (last)
			add_reading(ret, &c, last,
				s ? MIN(s->time.ns, last->time.ns + HOLDS_NS)
				  : last->time.ns + (int64_t)NS_PER_S);
		last = s;
	}
	robust_sort(c.in, c.in_count);
	robust_sort(c.out, c.out_count);
	ret->clock_inside = c.in_count ? (int64_t)robust_median(c.in, c.in_count) : -1;
	ret->clock_outside = c.out_count ? (int64_t)robust_median(c.out, c.out_count) : -1;
	return 0;
}

/* The clock that it would have; -1: not known. */
static int64_t full_clock(const struct gpu_throttle_spans *g)
{
	return g->clock_max > 0 ? g->clock_max : g->clock_outside;
}

static bool is_lowered(const struct gpu_throttle_spans *g)
{
	return g->clock_inside < 0 || full_clock(g) < 0 ||
	       (double)g->clock_inside < LOWERED * (double)full_clock(g);
}

static void describe(const struct gpu_throttle_spans *g, struct incident *inc)
{
	char names[96], dur[TEXT_MAX], readings[TEXT_PLURAL_MAX], clocks[96] = "";

	gpu_throttle_text(g->bits, names, sizeof(names));
	if (g->clock_inside > 0 && full_clock(g) > 0)
		snprintf(clocks, sizeof(clocks), ", clock %lld MHz instead of %lld",
			(long long)g->clock_inside, (long long)full_clock(g));
	snprintf(inc->summary, sizeof(inc->summary),
		"GPU %lld throttled for %s (%s%s); no traced process is known to be slower because of it",
		(long long)g->index, text_format_duration(dur, (uint64_t)g->ns), names, clocks);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"throttling: the driver lowered the clocks (%s)", names);
	incident_step(inc, g->start_ns, (uint64_t)g->ns, "GPU", "throttle",
		"GPU %lld: %s%s, in %zu of %s", (long long)g->index, names, clocks, g->count,
		text_format_plural(readings, g->readings, "readings"));
	incident_sql(inc,
		"SELECT timestamp, gpu, throttle_reasons, sm_clock_mhz, power_mw, temperature_c "
		"FROM gpu_samples WHERE gpu = %lld AND timestamp BETWEEN %lld AND %lld ORDER BY "
		"timestamp",
		(long long)g->index, (long long)g->first_ns, (long long)g->last_ns);
}

static int judge_gpu(const struct detector_input *s, int64_t index, struct incident_list *out)
{
	struct gpu_throttle_spans g;
	int r = throttle_find(s->rec, index, &g);
	struct incident *inc;

	if (r < 0 || !g.count || !is_lowered(&g))
		return r;
	inc = incident_begin(out, PROBLEM_THROTTLE);
	incident_id(inc, 0, g.start_ns);
	inc->last.ns = g.end_ns;
	describe(&g, inc);
	snprintf(inc->explanation, sizeof(inc->explanation), "The GPU is sampled once a second.");
	incident_weigh(inc, SEVERITY_LOW, 0.9, g.count, "throttled readings");
	inc->completeness = s->completeness;
	incident_keep(out, inc);
	return 0;
}

int detect_throttle(const struct detector_input *s, struct incident_list *out)
{
	int64_t gpus[DETECTOR_GPUS_MAX];
	size_t count = detector_gpus(s->rec, gpus);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = judge_gpu(s, gpus[i], out);
	return r;
}
