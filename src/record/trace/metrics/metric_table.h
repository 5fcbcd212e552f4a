/* SPDX-License-Identifier: Apache-2.0 */
/* metric_table.h - every metric that a trace tells, as rows.
 *
 * Published names keep their meaning, kind and unit. Where one breaks the conventions of its world
 * (a unit that is not the base unit, a counter without _total), the same figure has a second name
 * that keeps them. docs/metrics.md is compared with this table by a test. To add a metric: a row
 * here, its points in view_metric.c, its row there. */
#pragma once

#include "model/metric.h"

enum metric_id {
	M_INFO,
	M_START_TIME,
	/* the host */
	M_CPU,
	M_MEMORY,
	M_MEMORY_AVAILABLE,
	M_MEMORY_AVAILABLE_BYTES,
	M_LOAD,
	/* calls */
	M_OP_PERCENTILE,
	M_OP_COUNT,
	M_OPS,
	M_OP_DURATION,
	M_LAUNCH_COUNT,
	M_LAUNCHES,
	/* steps */
	M_STEP_SECONDS,
	M_STEPS,
	M_SLOW_STEPS,
	/* copies */
	M_COPY_BYTES,
	M_COPY_MS,
	M_COPY_DURATION,
	/* collectives */
	M_NCCL_LOADED,
	M_NCCL_PROCESSES_TOTAL,
	M_NCCL_PROCESSES,
	M_COLL_COUNT,
	M_COLLS,
	M_COLL_BYTES,
	M_COLL_BARRIERS,
	M_COLL_WAIT,
	M_COLL_BUS,
	M_COLL_LAST_MS,
	M_COLL_LAST_WAIT_MS,
	M_COLL_LAST_BYTES,
	/* incidents */
	M_ANOMALIES,
	M_INCIDENTS,
	M_INCIDENTS_ACTIVE,
	/* the GPUs */
	M_GPU_ANSWERS,
	M_GPU_INFO,
	M_GPU_MEM_USED,
	M_GPU_MEM_FREE,
	M_GPU_MEM_TOTAL,
	M_GPU_UTIL,
	M_GPU_MEM_UTIL,
	M_GPU_SM_CLOCK,
	M_GPU_MEM_CLOCK,
	M_GPU_POWER,
	M_GPU_POWER_LIMIT,
	M_GPU_TEMPERATURE,
	M_GPU_THROTTLE,
	M_GPU_THROTTLE_ACTIVE, /* four, in the order of metric_state.h */
	M_GPU_THROTTLE_EDGES = M_GPU_THROTTLE_ACTIVE + 4,
	M_GPU_ECC = M_GPU_THROTTLE_EDGES + 4,
	M_GPU_XID,
	M_GPU_XID_TIME,
	M_GPU_PCIE_TX,
	M_GPU_PCIE_RX,
	M_GPU_PCIE_GEN,
	M_GPU_PCIE_WIDTH,
	M_GPU_PROCESSES,
	/* the books */
	M_HITS,
	M_STORED,
	M_AGGREGATED,
	M_DROPPED,
	M_RING_OVERFLOWS,
	/* the agent itself */
	M_OVERHEAD,
	M_OVERHEAD_LOW,
	M_OVERHEAD_HIGH,
	M_OVERHEAD_BUDGET,
	M_HIT_COST,
	M_OWN_CPU,
	M_OWN_MEMORY,
	M_LAUNCH_WEIGHT,
	M_PROCESSES,
	M_LIBRARIES,
	M_PROBES,
	M_GAPS,
	M_STACKS,
	M_STACKS_LOST,
	M_NAMES_LOST,
	M_DB_BYTES,
	M_DB_PRUNED,
	M_CLOCK_STEPS,
	M_SERIES,
	M_SERIES_CUT,
	M_ENTRIES_CUT,
	M_BUILD_TIME,
	METRIC_COUNT
};

extern const struct metric_desc metric_table[METRIC_COUNT];
