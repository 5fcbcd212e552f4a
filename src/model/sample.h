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
	double load1, load5;
	/* What a kernel or an older file does not tell is negative: NULL in SQL. */
	double major_faults_per_s;                      /* since the previous sample */
	double psi_cpu_pct, psi_memory_pct, psi_io_pct; /* some task stalled, of the last 10 s */
	double busiest_cpu_pct;                         /* of the CPU with the least idle time */
	int64_t busiest_cpu;                            /* its number */
	int64_t swap_total_mb;
	double steal_pct;  /* of all CPUs: a hypervisor gave them to others */
	double iowait_pct; /* of all CPUs: idle while a task waited for a disk */
};
