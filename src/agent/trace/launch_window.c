/* SPDX-License-Identifier: Apache-2.0 */
/* launch_window.c - see launch_window.h. Invariant: weights times open times add up to all the time
 * up to `counted_to`, as long as no window was too short. */
#include "agent/trace/launch_window.h"

#include "base/macros.h"

#define SEEN_MIN_NS (20 * NS_PER_MS)

void launch_window_init(struct launch_window *w, mono_time now)
{
	*w = (struct launch_window){.is_open = true, .since = now, .counted_to = now};
}

void launch_window_open(struct launch_window *w, mono_time now)
{
	w->is_open = true;
	w->since = now;
}

void launch_window_close(struct launch_window *w, mono_time now)
{
	w->seen_ns += w->is_open ? now.ns - MIN(w->since.ns, now.ns) : 0;
	w->is_open = false;
	w->until = now;
}

double launch_window_weight(struct launch_window *w, double planned, mono_time now)
{
	mono_time to = w->is_open ? now : w->until;
	uint64_t seen_ns = w->seen_ns + (w->is_open ? to.ns - MIN(w->since.ns, to.ns) : 0);
	double weight;

	if (!w->is_open && w->until.ns <= w->counted_to.ns)
		return 1; /* nothing came since */
	if (seen_ns < SEEN_MIN_NS)
		return planned;
	weight = (double)(to.ns - w->counted_to.ns) / (double)seen_ns;
	w->counted_to = w->since = to;
	w->seen_ns = 0;
	return MAX(weight, 1.0);
}
