/* SPDX-License-Identifier: Apache-2.0 */
/* container_sample.h - what the control group of traced processes was denied, once a second.
 *
 * CONTAINER_FIELDS is the one list of what is read: the struct, the columns of container_samples and
 * the reader derive from it. */
#pragma once

#include <stdint.h>

#include "base/clock.h"

/* X(field and column, meaning). Totals are those since the group exists. What the kernel does not
 * tell, and a limit that is not set, is -1: NULL in SQL. */
#define CONTAINER_FIELDS(X)                                                                        \
	X(throttled_us, "time it was kept from running by its CPU quota")                          \
	X(throttled_count, "periods in which it was")                                              \
	X(memory_high, "times it was made to reclaim above memory.high")                           \
	X(memory_max, "times it was made to reclaim at memory.max")                                \
	X(oom_kills, "processes killed for want of memory")                                        \
	X(psi_cpu_us, "time in which some task waited for a CPU")                                  \
	X(psi_memory_us, "time in which some task waited for memory")                              \
	X(psi_io_us, "time in which some task waited for a disk")                                  \
	X(quota_us, "CPU time it may use in each period; NULL: as much as there is")               \
	X(period_us, "length of a period")                                                         \
	X(memory_bytes, "memory in use")                                                           \
	X(memory_limit_bytes, "most it may use; NULL: as much as there is")                        \
	X(cpus, "CPUs it may run on")                                                              \
	X(memory_high_bytes, "above which it is made to reclaim and slowed; NULL: no limit")

struct container_sample {
	wall_time time;
	uint64_t cgroup_id;
#define X(field, meaning) int64_t field;
	CONTAINER_FIELDS(X)
#undef X
};

#define CONTAINER_UNKNOWN (-1)

/* container_sample_init - nothing known of the group @cgroup_id at @time. */
static inline void container_sample_init(
	struct container_sample *s, wall_time time, uint64_t cgroup_id)
{
	*s = (struct container_sample){.time = time, .cgroup_id = cgroup_id};
#define X(field, meaning) s->field = CONTAINER_UNKNOWN;
	CONTAINER_FIELDS(X)
#undef X
}
