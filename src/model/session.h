/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - one run of `ingero trace`: where and how it recorded. */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct session {
	int64_t id;
	wall_time started, stopped; /* stopped.ns == 0: still running, or killed */
	char node[256];
	char gpu_model[128], gpu_driver[64], cuda_version[32];
	char cpu_model[128], kernel[128], os_release[128], python_version[32];
	uint32_t cpu_cores;
	uint64_t mem_total_mb;
	char ingero_version[64];
	char pid_filter[256];
	char flags[512];
	char missing[2048]; /* what the kernel could not do: "part: why", one a line */
};
