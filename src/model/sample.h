/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - one reading of the host, once a second. */
#pragma once

#include <stddef.h>

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

/* One reading of one GPU, once a second.
 *
 * GPU_FIELDS is the one list of what is read: the struct, the columns of gpu_samples, the keys of
 * `trace --json` and the reader derive from it. To add a value: one line here, one in the child's
 * reading (record/gpu/nvml.c). */

#define GPU_UNKNOWN  (-1) /* the driver does not tell, or the call failed; NULL in SQL and JSON */
#define GPU_UUID_LEN 96
#define GPU_NAME_LEN 96
#define GPU_PCI_LEN  32

/* X(field and column, meaning). All are counts of at least 0. */
#define GPU_FIELDS(X)                                                                              \
	X(util_gpu_pct, "share of the last period in which a kernel ran, percent")                 \
	X(util_mem_pct, "share in which device memory was read or written, percent")               \
	X(sm_clock_mhz, "clock of the multiprocessors")                                            \
	X(mem_clock_mhz, "clock of the memory")                                                    \
	X(power_mw, "power drawn")                                                                 \
	X(power_limit_mw, "power limit in force")                                                  \
	X(temperature_c, "temperature of the chip")                                                \
	X(throttle_reasons, "why clocks are lowered, a bitmap")                                    \
	X(mem_used_bytes, "device memory in use")                                                  \
	X(mem_free_bytes, "device memory free")                                                    \
	X(mem_total_bytes, "device memory")                                                        \
	X(ecc_corrected, "memory errors corrected since the driver was loaded")                    \
	X(ecc_uncorrected, "memory errors not corrected since the driver was loaded")              \
	X(last_xid, "number of the last XID error seen while sampling")                            \
	X(last_xid_ns, "when it was seen, to the second of sampling")                              \
	X(pcie_tx_kb_s, "PCIe from the GPU, kB/s, over 20 ms")                                     \
	X(pcie_rx_kb_s, "PCIe to the GPU, kB/s, over 20 ms")                                       \
	X(pcie_gen, "generation of the PCIe link now")                                             \
	X(pcie_width, "lanes of the PCIe link now")                                                \
	X(processes, "processes with a compute context")                                           \
	X(sm_clock_max_mhz, "maximum clock of the multiprocessors")                                \
	X(power_default_mw, "default power limit")                                                 \
	X(process_1, "id of a process with a compute context; NULL: none")                         \
	X(process_2, "the same for a second one")                                                  \
	X(process_3, "the same for a third one")                                                   \
	X(process_4, "the same for a fourth one")                                                  \
	X(nvml_error, "error that NVML returned for a supported value; 0: none")

struct gpu_sample {
	wall_time time;
	int64_t index; /* NVML's */
	char uuid[GPU_UUID_LEN];
	char name[GPU_NAME_LEN];
	char pci[GPU_PCI_LEN];
#define X(field, meaning) int64_t field;
	GPU_FIELDS(X)
#undef X
};

/* X(bit, name, whether the clocks are lower than the work could use). NVML's numbers. */
#define GPU_THROTTLES(X)                                                                           \
	X(1, "gpu_idle", 0)                                                                        \
	X(2, "applications_clocks", 1)                                                             \
	X(4, "sw_power_cap", 1)                                                                    \
	X(8, "hw_slowdown", 1)                                                                     \
	X(16, "sync_boost", 1)                                                                     \
	X(32, "sw_thermal_slowdown", 1)                                                            \
	X(64, "hw_thermal_slowdown", 1)                                                            \
	X(128, "hw_power_brake", 1)                                                                \
	X(256, "display_clocks", 1)

struct gpu_throttle {
	uint64_t bit;
	const char *name;
	int slows;
};

extern const struct gpu_throttle gpu_throttles[]; /* ends with bit 0 */

/* gpu_sample_process - the @i-th process that it names; 0: none. */
#define GPU_PROCESSES_NAMED 4
static inline uint32_t gpu_sample_process(const struct gpu_sample *s, int i)
{
	const int64_t ids[GPU_PROCESSES_NAMED] = {
		s->process_1, s->process_2, s->process_3, s->process_4};

	return i < GPU_PROCESSES_NAMED && ids[i] > 0 && ids[i] <= UINT32_MAX ? (uint32_t)ids[i] : 0;
}

/* gpu_sample_is_idle - its clocks were low for want of work, by its own word. */
static inline bool gpu_sample_is_idle(const struct gpu_sample *s)
{
	return s->throttle_reasons > 0 && (s->throttle_reasons & 1);
}

/* gpu_throttle_text - the names of the bits that slow the GPU, separated by commas; "none" without
 * any; bits that nobody has named yet as a number. Cut to @size. Returns @out. */
const char *gpu_throttle_text(uint64_t bits, char *out, size_t size);

/* gpu_sample_init - all values unknown. */
void gpu_sample_init(struct gpu_sample *s);

/* What the control group of traced processes was denied, once a second.
 *
 * CONTAINER_FIELDS is the one list of what is read: the struct, the columns of container_samples and
 * the reader derive from it. */

/* X(field and column, meaning). Totals are those since the group exists. What the kernel does not
 * tell, and a limit that is not set, is -1: NULL in SQL. */
#define CONTAINER_FIELDS(X)                                                                        \
	X(throttled_us, "time throttled by its CPU quota")                                         \
	X(throttled_count, "periods in which it was throttled")                                    \
	X(memory_high, "times it reclaimed memory above memory.high")                              \
	X(memory_max, "times it reclaimed memory at memory.max")                                   \
	X(oom_kills, "processes killed by the OOM killer")                                         \
	X(psi_cpu_us, "time in which some task waited for a CPU")                                  \
	X(psi_memory_us, "time in which some task waited for memory")                              \
	X(psi_io_us, "time in which some task waited for a disk")                                  \
	X(quota_us, "CPU time it may use in each period; NULL: no limit")                          \
	X(period_us, "length of a period")                                                         \
	X(memory_bytes, "memory in use")                                                           \
	X(memory_limit_bytes, "memory it may use; NULL: no limit")                                 \
	X(cpus, "CPUs it may run on")                                                              \
	X(memory_high_bytes,                                                                       \
		"memory above which it is throttled and must reclaim; NULL: no limit")             \
	X(memory_refaults, "pages of files that it read again because they had been reclaimed")

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
