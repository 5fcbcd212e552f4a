// SPDX-License-Identifier: Apache-2.0
/* lane.c - when work starts on a device that can do a limited number of things at once.
 * No clock and no lock: the caller passes times and serialises. */
#include "lane.h"

void lane_init(struct lane *l, unsigned slots)
{
	*l = (struct lane){.slots = slots < LANE_MAX_SLOTS ? slots : LANE_MAX_SLOTS};
}

uint64_t lane_take(struct lane *l, uint64_t ready_ns, uint64_t dur_ns)
{
	unsigned best = 0;
	uint64_t start;

	for (unsigned i = 1; i < l->slots; i++) {
		uint64_t t = l->free_ns[i], b = l->free_ns[best];

		/* the latest that is free in time, else the earliest of all */
		if (t <= ready_ns ? b > ready_ns || t > b : t < b)
			best = i;
	}
	start = l->free_ns[best] > ready_ns ? l->free_ns[best] : ready_ns;
	l->free_ns[best] = start + dur_ns;
	return start;
}

uint64_t lane_transfer_ns(uint64_t bytes, uint64_t bytes_per_s)
{
	return (uint64_t)(((unsigned __int128)bytes * 1000000000u + bytes_per_s - 1) / bytes_per_s);
}
