/* SPDX-License-Identifier: Apache-2.0 */
/* clock_pair.c - see clock_pair.h. The median of a second, so that a rank that is slow to wake does not
 * count; a line and not a mean, because two quartz clocks part by tens of microseconds each second. */
#include "blame/clock_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/macros.h"

#define ODD_NS          1e6               /* a difference this far from the line is odd */
#define ODD_ERRORS      10                /* likewise so many times the error */
#define ODD_SPREADS     6                 /* likewise so many times the spread of the ends */
#define SPREAD_LEAST    8                 /* differences that it is known from */
#define SPREAD_FIRST_NS UINT64_C(5000000) /* before that: ten milliseconds are seen */
#define FLOOR_NS        20e3 /* ranks leave a collective one after the other: what no median removes */
#define FEW_SAMPLES     8
#define FEW_NS          1e6 /* is added to the error of one sample, half of it of two, … */
#define SLOPE_SPAN_NS   INT64_C(8000000000) /* of points, for a slope to be told from noise */
#define SLOPE_POINTS    6
#define SLOPE_MAX       1e-3 /* no clock that is not being set drifts by 1000 ppm */
#define FIT_POINTS      3    /* so many points need no samples beside them */

ORDER(doubles_ascend, double, COMPARE(*x, *y))

/* Of an even number the mean of the middle two. */
static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), doubles_ascend);
	return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : 0;
}

/* The middle of the samples; differences from the first keep doubles exact. */
static struct clock_point point_of(const struct clock_moment *s, uint32_t n)
{
	struct clock_point p = {.samples = n};
	double at[CLOCK_SAMPLES], apart[CLOCK_SAMPLES], mid;

	for (uint32_t i = 0; i < n; i++) {
		at[i] = (double)(s[i].at_ns - s[0].at_ns);
		apart[i] = (double)(s[i].apart_ns - s[0].apart_ns);
	}
	p.m.at_ns = s[0].at_ns + llround(median(at, n));
	mid = median(apart, n);
	p.m.apart_ns = s[0].apart_ns + llround(mid);
	for (uint32_t i = 0; i < n; i++)
		apart[i] = fabs(apart[i] - mid);
	p.mad_ns = (uint64_t)llround(median(apart, n));
	return p;
}

static void flush(struct clock_pair *p)
{
	p->points[p->point_next] = point_of(p->samples, p->sample_count);
	p->point_next = (p->point_next + 1) % CLOCK_POINTS;
	p->point_count = MIN(p->point_count + 1, (uint32_t)CLOCK_POINTS);
	p->sample_count = 0;
	p->stride = 1;
	p->skipped = 0;
	p->is_stale = true;
}

static void keep(struct clock_pair *p, struct clock_moment m)
{
	if (p->sample_count > 0 && llabs(m.at_ns - p->samples[0].at_ns) >= p->point_ns)
		flush(p);
	p->stride = MAX(p->stride, 1U);
	if (++p->skipped < p->stride)
		return;
	p->skipped = 0;
	if (p->sample_count == CLOCK_SAMPLES) { /* every second one is as good */
		for (uint32_t i = 0; i < CLOCK_SAMPLES / 2; i++)
			p->samples[i] = p->samples[2 * i];
		p->sample_count = CLOCK_SAMPLES / 2;
		p->stride *= 2;
	}
	p->samples[p->sample_count++] = m;
	p->is_stale = p->is_stale || p->point_count < FIT_POINTS;
}

static double line_at(const struct clock_pair *p, int64_t at_ns)
{
	return p->slope * (double)(at_ns - p->line.at_ns);
}

uint64_t clock_pair_spread(const struct clock_pair *p)
{
	uint32_t n = MIN(p->told_count, (uint32_t)CLOCK_APART);
	double v[CLOCK_APART];

	if (n < SPREAD_LEAST)
		return SPREAD_FIRST_NS;
	for (uint32_t i = 0; i < n; i++)
		v[i] = (double)p->apart[i];
	return (uint64_t)median(v, n);
}

static void learn_spread(struct clock_pair *p, struct clock_moment m)
{
	if (p->told_count)
		p->apart[(p->told_count - 1) % CLOCK_APART] =
			(uint64_t)llabs(m.apart_ns - p->last_apart_ns);
	p->last_apart_ns = m.apart_ns;
	p->told_count = MIN(p->told_count + 1, UINT32_MAX / 2);
}

static double odd_limit(const struct clock_pair *p)
{
	double limit = MAX(ODD_NS, ODD_ERRORS * (double)p->error_ns);

	return MAX(limit, ODD_SPREADS * (double)clock_pair_spread(p));
}

bool clock_pair_add(struct clock_pair *p, struct clock_moment m)
{
	double off;

	learn_spread(p, m);
	if (!p->is_fitted && (p->sample_count >= FEW_SAMPLES || p->point_count))
		clock_pair_fit(p);
	if (!p->is_fitted) {
		keep(p, m);
		return false;
	}
	off = (double)(m.apart_ns - p->line.apart_ns) - line_at(p, m.at_ns);
	if (fabs(off) <= odd_limit(p)) {
		uint32_t points = p->point_next;

		p->odd_count = 0;
		keep(p, m);
		if (p->point_next != points) /* what is late by minutes comes all at once */
			clock_pair_fit(p);
		return false;
	}
	if (p->odd_count > 0 && fabs((double)(m.apart_ns - p->odd[0].apart_ns)) > odd_limit(p) / 2)
		p->odd_count = 0;
	p->odd_count = MIN(p->odd_count + 1, (uint32_t)CLOCK_ODD);
	p->odd[p->odd_count - 1] = m;
	if (p->odd_count < CLOCK_ODD || m.at_ns - p->odd[0].at_ns < p->point_ns)
		return false;
	p->set = p->odd[0];
	p->sample_count = p->point_count = p->point_next = 0;
	p->stride = 1;
	p->skipped = 0;
	for (uint32_t i = 0; i < CLOCK_ODD; i++)
		keep(p, p->odd[i]);
	p->odd_count = 0;
	clock_pair_fit(p);
	return true;
}

static double slope_of(const struct clock_point *v, uint32_t n, int64_t point_ns)
{
	double slopes[CLOCK_POINTS * (CLOCK_POINTS + 1) / 2];
	int64_t first = v[0].m.at_ns, last = first;
	size_t count = 0;
	double s;

	for (uint32_t i = 1; i < n; i++) {
		first = MIN(first, v[i].m.at_ns);
		last = MAX(last, v[i].m.at_ns);
	}
	if (n < SLOPE_POINTS || last - first < SLOPE_SPAN_NS)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			int64_t dt = v[i].m.at_ns - v[j].m.at_ns;

			if (llabs(dt) >= point_ns / 2)
				slopes[count++] =
					(double)(v[i].m.apart_ns - v[j].m.apart_ns) / (double)dt;
		}
	s = median(slopes, count);
	return fabs(s) <= SLOPE_MAX ? s : 0;
}

/* How far from 0, their median, that of @n more values like these may be: 95 of 100 are within sqrt(n) places of the
 * middle, whatever these are distributed like. Sorts them. */
static double reach_of(double *v, uint32_t n)
{
	uint32_t places = MIN((uint32_t)ceil(sqrt(n)), n / 2);

	qsort(v, n, sizeof(*v), doubles_ascend);
	return MAX(fabs(v[n / 2 - places]), fabs(v[MIN(n / 2 + places, n - 1)]));
}

/* How wrong the line may be, over what cannot be seen: three standard errors of what scatters more, points or the
 * samples in them; where points are of two kinds, as far as the other kind. @distance of points from the line: is
 * changed. */
static uint64_t error_of(const struct clock_point *v, uint32_t n, double *distance)
{
	double mads[CLOCK_POINTS + 1], spread, inner, scatter, reach = reach_of(distance, n);
	uint64_t samples = 0;

	for (uint32_t i = 0; i < n; i++) {
		mads[i] = (double)v[i].mad_ns;
		samples += v[i].samples;
		distance[i] = fabs(distance[i]);
	}
	spread = median(distance, n) / sqrt(n);
	inner = median(mads, n) / sqrt((double)samples);
	scatter = 3 * 1.4826 * MAX(spread, inner);
	return (uint64_t)(FLOOR_NS + MAX(scatter, reach) +
			  (samples < FEW_SAMPLES ? FEW_NS / (double)samples : 0));
}

void clock_pair_sent(struct clock_pair *p, bool from_hub, int64_t sent_ns, int64_t received_ns)
{
	int64_t *least = from_hub ? &p->there_ns : &p->back_ns;

	*least = MIN(*least, received_ns - sent_ns);
	p->message_ns = MAX(p->message_ns, from_hub ? sent_ns : received_ns);
}

/* What the two ways have in common is the way, what they differ by twice the distance of the clocks. */
static void fit_messages(struct clock_pair *p)
{
	if (p->there_ns == INT64_MAX || p->back_ns == INT64_MAX)
		return;
	p->line = (struct clock_moment){p->message_ns, (p->back_ns - p->there_ns) / 2};
	p->error_ns = (uint64_t)FLOOR_NS + (uint64_t)MAX(p->there_ns + p->back_ns, INT64_C(0)) / 2;
	p->is_fitted = p->is_stale = true;
}

void clock_pair_fit(struct clock_pair *p)
{
	struct clock_point v[CLOCK_POINTS + 1];
	double distance[CLOCK_POINTS + 1], mid;
	uint32_t n = p->point_count;

	if (p->is_fitted && !p->is_stale)
		return;
	memcpy(v, p->points, n * sizeof(*v));
	if (n < FIT_POINTS && p->sample_count > 0)
		v[n++] = point_of(p->samples, p->sample_count);
	if (n == 0) {
		fit_messages(p);
		return;
	}
	p->slope = slope_of(v, n, p->point_ns);
	p->line.at_ns = v[0].m.at_ns;
	for (uint32_t i = 1; i < n; i++)
		p->line.at_ns = MAX(p->line.at_ns, v[i].m.at_ns);
	p->line.apart_ns = v[0].m.apart_ns;
	for (uint32_t i = 0; i < n; i++)
		distance[i] =
			(double)(v[i].m.apart_ns - v[0].m.apart_ns) - line_at(p, v[i].m.at_ns);
	mid = median(distance, n);
	p->line.apart_ns += llround(mid);
	for (uint32_t i = 0; i < n; i++)
		distance[i] =
			(double)(v[i].m.apart_ns - p->line.apart_ns) - line_at(p, v[i].m.at_ns);
	p->error_ns = error_of(v, n, distance);
	p->is_fitted = true;
	p->is_stale = false;
}
