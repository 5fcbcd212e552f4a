/* SPDX-License-Identifier: Apache-2.0 */
/* overhead.h - what tracing costs, as the agent measures it itself, every few seconds. */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct overhead {
	wall_time time;
	double share;           /* of the busiest process's time that it loses to its probes */
	double low, high;       /* the truth is between */
	uint64_t pairs;         /* of windows with and without probes that were compared; 0: high
				 * is hits x hit_ns, low what waits for the GPU cannot hide of it */
	double budget;          /* of the same; 0: no limit */
	double hit_ns;          /* cost of one hit */
	uint32_t launch_weight; /* one of so many launches is probed */
	double launch_watched; /* share of the time since the start in which launches were counted */
	double launch_error;   /* of their number since the start; 0: all were counted */
	double cpu_pct;        /* the agent's own process, of one CPU, since the last */
	uint64_t rss_bytes;    /* its memory */
	uint64_t db_bytes;     /* the store on disk */
};
