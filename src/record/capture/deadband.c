/* SPDX-License-Identifier: Apache-2.0 */
/* deadband.c - see deadband.h. Pure. */
#include "record/capture/deadband.h"

#include <math.h>

#define SLACK_NS                                                                                   \
	(100 * (int64_t)NS_PER_MS) /* samples come once a second, not to the nanosecond            \
				    */

static double swap_points(const struct host_sample *s)
{
	return s->mem_total_mb ? 100.0 * (double)s->swap_mb / (double)s->mem_total_mb : 0;
}

static bool differs(const struct deadband *d, const struct host_sample *s)
{
	return fabs(s->cpu_pct - d->last.cpu_pct) > d->points ||
	       fabs(s->mem_pct - d->last.mem_pct) > d->points ||
	       fabs(swap_points(s) - swap_points(&d->last)) > d->points;
}

bool deadband_admits(struct deadband *d, const struct host_sample *s)
{
	int64_t since = s->time.ns - d->last.time.ns;
	/* A clock that was set back does not stop the heart. */
	bool beat = d->beat_ns && (since < 0 || since + SLACK_NS >= (int64_t)d->beat_ns);
	bool change = d->points > 0 ? differs(d, s) : !d->beat_ns;

	if (d->has_last && !beat && !change)
		return false;
	d->last = *s;
	d->has_last = true;
	return true;
}
