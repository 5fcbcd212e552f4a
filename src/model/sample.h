/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - one reading of the host, once a second. */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct host_sample {
	wall_time time;
	double cpu_pct; /* of all CPUs together; time in iowait is idle */
	double mem_pct;
	uint64_t mem_avail_mb, mem_total_mb;
	uint64_t swap_mb;
	double load1;
};
