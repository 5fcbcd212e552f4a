/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - reads the two clocks and measures the offset between them.
 * The offset is taken as the tightest of several bracketed readings (mono, wall, mono), so that a
 * preemption between two readings does not become a false clock step. */
#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

#define STEP_THRESHOLD_NS 1000000 /* 1 ms: far above NTP slewing between two refreshes */

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

mono_time mono_now(void)
{
	return (mono_time){read_ns(CLOCK_MONOTONIC)};
}

wall_time wall_now(void)
{
	return (wall_time){(int64_t)read_ns(CLOCK_REALTIME)};
}

static int64_t measure_offset(void)
{
	uint64_t best_width = UINT64_MAX;
	int64_t best = 0;

	for (int i = 0; i < 8; i++) {
		uint64_t a = read_ns(CLOCK_MONOTONIC);
		uint64_t w = read_ns(CLOCK_REALTIME);
		uint64_t b = read_ns(CLOCK_MONOTONIC);

		if (b - a < best_width) {
			best_width = b - a;
			best = (int64_t)w - (int64_t)(a + (b - a) / 2);
		}
	}
	return best;
}

void clock_map_init(struct clock_map *m)
{
	*m = (struct clock_map){.offset_ns = measure_offset()};
}

bool clock_map_refresh(struct clock_map *m)
{
	int64_t now = measure_offset();
	int64_t delta = now - m->offset_ns;

	m->offset_ns = now;
	if (delta > -STEP_THRESHOLD_NS && delta < STEP_THRESHOLD_NS)
		return false;
	m->step_ns += delta;
	m->steps++;
	if ((uint64_t)llabs(delta) <= m->largest_ns)
		return false;
	m->largest_ns = (uint64_t)llabs(delta);
	return true;
}
