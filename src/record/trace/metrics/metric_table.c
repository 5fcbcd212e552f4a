/* SPDX-License-Identifier: Apache-2.0 */
/* metric_table.c - see metric_table.h. */
#include "record/trace/metrics/metric_table.h"

#define GAUGE(otlp, prometheus, unit, help, ...)                                                   \
	{                                                                                          \
		otlp, prometheus, unit, METRIC_GAUGE, false, 0, help,                              \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define SHARE(otlp, prometheus, unit, help, ...)                                                   \
	{                                                                                          \
		otlp, prometheus, unit, METRIC_GAUGE, true, 0, help,                               \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define COUNTER(otlp, prometheus, unit, help, ...)                                                 \
	{                                                                                          \
		otlp, prometheus, unit, METRIC_COUNTER, false, 0, help,                            \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define TIME(otlp, prometheus, unit, help, ...)                                                    \
	{                                                                                          \
		otlp, prometheus, unit, METRIC_COUNTER, true, 0, help,                             \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define HISTOGRAM(otlp, prometheus, unit, unit_ns, help, ...)                                      \
	{                                                                                          \
		otlp, prometheus, unit, METRIC_HISTOGRAM, true, (double)(unit_ns), help,           \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define KEY(otlp, label)                                                                           \
	{                                                                                          \
		otlp, label                                                                        \
	}
#define NO_KEYS KEY(NULL, NULL)

#define SOURCE_KEY    KEY("source", "source")
#define OPERATION_KEY KEY("operation", "operation")
#define NESTED_KEY    KEY("nested", "nested")
#define PID_KEY       KEY("pid", "pid")
#define COMM_KEY      KEY("comm", "comm")
#define PLACE_KEYS                                                                                 \
	KEY("k8s.pod.name", "pod"), KEY("k8s.namespace.name", "namespace"),                        \
		KEY("container.id", "container_id")
#define GPU_KEY      KEY("gpu.uuid", "gpu_uuid")
#define COPY_KEY     KEY("ingero.memcpy.direction", "direction")
#define NCCL_OP_KEY  KEY("nccl.op_type", "op_type")
#define PROBLEM_KEY  KEY("ingero.problem", "problem")
#define SEVERITY_KEY KEY("ingero.severity", "severity")
#define REASON_KEY   KEY("ingero.reason", "reason")
#define COLL_KEYS                                                                                  \
	NCCL_OP_KEY, KEY("nccl.comm_id_hash", "comm_id_hash"), KEY("nccl.rank", "rank"),           \
		KEY("nccl.nranks", "nranks"), KEY("nccl.datatype", "datatype"),                    \
		KEY("nccl.reduce_op", "reduce_op"), KEY("nccl.peer_rank", "peer_rank")

const struct metric_desc metric_table[METRIC_COUNT] = {
	[M_INFO] = GAUGE("ingero.info", "ingero_info", "{info}",
		"Always 1; version, node and attach method of the agent",
		KEY("service.version", "version"), KEY("ingero.node.id", "node"),
		KEY("ingero.attach.method", "method")),
	[M_START_TIME] = SHARE("ingero.trace.start_time", "ingero_trace_start_time_seconds", "s",
		"Start of the trace, in seconds since 1970", NO_KEYS),

	[M_CPU] = SHARE("system.cpu.utilization", "system_cpu_utilization", "1",
		"CPU utilisation of all CPUs in the last second", NO_KEYS),
	[M_MEMORY] = SHARE("system.memory.utilization", "system_memory_utilization", "1",
		"Memory utilisation", NO_KEYS),
	[M_MEMORY_AVAILABLE] =
		GAUGE("system.memory.usage.available", "system_memory_usage_available", "By",
			"Memory available without swapping, in bytes", NO_KEYS),
	[M_MEMORY_AVAILABLE_BYTES] = GAUGE(NULL, "ingero_host_memory_available_bytes", "By",
		"Same as system_memory_usage_available", NO_KEYS),
	[M_LOAD] = SHARE("system.cpu.load_average.1m", "system_cpu_load_average_1m", "{thread}",
		"Load average over one minute", NO_KEYS),

	[M_OP_PERCENTILE] =
		SHARE("gpu.cuda.operation.duration", "gpu_cuda_operation_duration_microseconds",
			"us", "Percentiles of the operation's duration since the trace began",
			SOURCE_KEY, OPERATION_KEY, KEY("percentile", "percentile")),
	[M_OP_COUNT] = COUNTER("gpu.cuda.operation.count", "gpu_cuda_operation_count", "{event}",
		"Calls of the operation, including nested ones", SOURCE_KEY, OPERATION_KEY),
	[M_OPS] = COUNTER(NULL, "ingero_operations_total", "{event}",
		"Same as gpu_cuda_operation_count, with nested calls as separate series",
		SOURCE_KEY, OPERATION_KEY, NESTED_KEY),
	[M_OP_DURATION] = HISTOGRAM("ingero.cuda.operation.duration",
		"ingero_cuda_operation_duration_seconds", "s", NS_PER_S,
		"Duration of calls; nested: made inside a call of the layer above", SOURCE_KEY,
		OPERATION_KEY, NESTED_KEY),
	[M_LAUNCH_COUNT] = COUNTER("gpu.kernel.launch.count", "gpu_kernel_launch_count", "{launch}",
		"Kernel launches by running processes", PID_KEY),
	[M_LAUNCHES] = COUNTER(NULL, "ingero_kernel_launches_total", "{launch}",
		"Same as gpu_kernel_launch_count", PID_KEY, COMM_KEY, PLACE_KEYS),

	[M_STEP_SECONDS] = TIME("ingero.step", "ingero_step_seconds_total", "s",
		"Time in the steps of a running process, by the line of the account that it is on",
		PID_KEY, COMM_KEY, PLACE_KEYS, KEY("ingero.line", "line")),
	[M_STEPS] = TIME("ingero.steps", "ingero_steps_total", "{step}",
		"Steps of a running process", PID_KEY, COMM_KEY, PLACE_KEYS),
	[M_SLOW_STEPS] = TIME("ingero.slow_steps", "ingero_slow_steps_total", "{step}",
		"Slow steps of a running process", PID_KEY, COMM_KEY, PLACE_KEYS),

	[M_COPY_BYTES] = COUNTER("gpu.memcpy.bytes_total", "gpu_memcpy_bytes_total", "By",
		"Bytes requested by memory copies", COPY_KEY),
	[M_COPY_MS] = HISTOGRAM("gpu.memcpy.duration_ms", "gpu_memcpy_duration_ms", "ms", NS_PER_MS,
		"Duration of memory copy calls", COPY_KEY),
	[M_COPY_DURATION] = HISTOGRAM("ingero.memcpy.duration", "ingero_memcpy_duration_seconds",
		"s", NS_PER_S, "Same as gpu_memcpy_duration_ms", COPY_KEY),

	[M_NCCL_LOADED] = GAUGE("gpu.nccl.process_loaded", "gpu_nccl_process_loaded", "{process}",
		"Always 1 for each running process that has NCCL loaded", PID_KEY, COMM_KEY,
		PLACE_KEYS, KEY("libnccl_path", "libnccl_path"),
		KEY("libnccl_version", "libnccl_version")),
	[M_NCCL_PROCESSES_TOTAL] = GAUGE("gpu.nccl.processes_total", "gpu_nccl_processes_total",
		"{process}", "Running processes that have NCCL loaded", NO_KEYS),
	[M_NCCL_PROCESSES] = GAUGE(NULL, "ingero_nccl_processes", "{process}",
		"Same as gpu_nccl_processes_total", NO_KEYS),
	[M_COLL_COUNT] = COUNTER("gpu.nccl.collective.count", "gpu_nccl_collective_count", "{call}",
		"NCCL collective, send and receive calls", NCCL_OP_KEY),
	[M_COLLS] = COUNTER(NULL, "ingero_nccl_collectives_total", "{call}",
		"Same as gpu_nccl_collective_count", NCCL_OP_KEY),
	[M_COLL_BYTES] = COUNTER("gpu.nccl.collective.bytes_total",
		"gpu_nccl_collective_bytes_total", "By",
		"Bytes passed to NCCL collective, send and receive calls (count x size of the type)",
		NCCL_OP_KEY),
	[M_COLL_BARRIERS] = COUNTER("gpu.nccl.collective.barrier_events",
		"gpu_nccl_collective_barrier_events", "{event}",
		"Collectives whose wait was measured at the following synchronisation",
		NCCL_OP_KEY),
	[M_COLL_WAIT] = HISTOGRAM("ingero.nccl.collective.wait",
		"ingero_nccl_collective_wait_seconds", "s", NS_PER_S,
		"Time in the synchronisation after a collective on its stream: an upper bound of its "
		"wait",
		NCCL_OP_KEY),
	[M_COLL_BUS] = SHARE("ingero.nccl.collective.bus_bandwidth",
		"ingero_nccl_collective_bus_bandwidth_bytes_per_second", "By/s",
		"Bus bandwidth (as nccl-tests computes it) of the latest collective that a "
		"synchronisation waited for alone: a lower bound",
		NCCL_OP_KEY),
	[M_COLL_LAST_MS] = SHARE("nccl.collective.duration_ms", NULL, "ms",
		"Host time of the latest such call", COLL_KEYS),
	[M_COLL_LAST_WAIT_MS] = SHARE("nccl.collective.barrier_wait_ms", NULL, "ms",
		"Wait measured after the latest such call", COLL_KEYS),
	[M_COLL_LAST_BYTES] = GAUGE(
		"nccl.collective.bytes", NULL, "By", "Bytes of the latest such call", COLL_KEYS),

	[M_ANOMALIES] = COUNTER("ingero.anomaly.count", "ingero_anomaly_count", "{event}",
		"Incidents found while tracing", NO_KEYS),
	[M_INCIDENTS] = COUNTER("ingero.incidents", "ingero_incidents_total", "{incident}",
		"Incidents found while tracing, by initial severity", PROBLEM_KEY, SEVERITY_KEY),
	[M_INCIDENTS_ACTIVE] = GAUGE("ingero.incidents.active", "ingero_incidents_active",
		"{incident}", "Incidents that are not resolved", PROBLEM_KEY, SEVERITY_KEY),

	[M_GPU_ANSWERS] = GAUGE("ingero.gpu.driver_answers", "ingero_gpu_driver_answers", "{flag}",
		"1 if NVML responds, 0 if not; absent without NVML", NO_KEYS),
	[M_GPU_INFO] = GAUGE("ingero.gpu.info", "ingero_gpu_info", "{info}",
		"Always 1; index, name and PCI address of a GPU", GPU_KEY, KEY("gpu.index", "gpu"),
		KEY("gpu.name", "name"), KEY("gpu.pci", "pci")),
	[M_GPU_MEM_USED] = GAUGE(
		"gpu.memory.used", "gpu_memory_used_bytes", "By", "GPU memory in use", GPU_KEY),
	[M_GPU_MEM_FREE] =
		GAUGE("gpu.memory.free", "gpu_memory_free_bytes", "By", "Free GPU memory", GPU_KEY),
	[M_GPU_MEM_TOTAL] = GAUGE(
		"gpu.memory.total", "gpu_memory_total_bytes", "By", "Total GPU memory", GPU_KEY),
	[M_GPU_UTIL] = SHARE("ingero.gpu.utilization", "ingero_gpu_utilization_ratio", "1",
		"GPU utilisation: share of the last sample period with a running kernel", GPU_KEY),
	[M_GPU_MEM_UTIL] = SHARE("ingero.gpu.memory.utilization",
		"ingero_gpu_memory_utilization_ratio", "1",
		"GPU memory utilisation: share of the last sample period with memory traffic",
		GPU_KEY),
	[M_GPU_SM_CLOCK] = SHARE(
		"ingero.gpu.sm_clock", "ingero_gpu_sm_clock_hertz", "Hz", "SM clock", GPU_KEY),
	[M_GPU_MEM_CLOCK] = SHARE("ingero.gpu.memory_clock", "ingero_gpu_memory_clock_hertz", "Hz",
		"Memory clock", GPU_KEY),
	[M_GPU_POWER] =
		SHARE("ingero.gpu.power", "ingero_gpu_power_watts", "W", "Power draw", GPU_KEY),
	[M_GPU_POWER_LIMIT] = SHARE("ingero.gpu.power_limit", "ingero_gpu_power_limit_watts", "W",
		"Enforced power limit", GPU_KEY),
	[M_GPU_TEMPERATURE] = SHARE("ingero.gpu.temperature", "ingero_gpu_temperature_celsius",
		"Cel", "GPU temperature", GPU_KEY),
	[M_GPU_THROTTLE] = GAUGE("ingero.gpu.throttled", "ingero_gpu_throttled", "{flag}",
		"1 while clocks are reduced for this reason, else 0", GPU_KEY, REASON_KEY),
	[M_GPU_THROTTLE_ACTIVE + 0] =
		GAUGE("gpu.throttle.power_active", "gpu_throttle_power_active", "{flag}",
			"1 while clocks are reduced by power limits (sw_power_cap, hw_power_brake)",
			GPU_KEY),
	[M_GPU_THROTTLE_ACTIVE + 1] = GAUGE("gpu.throttle.thermal_active",
		"gpu_throttle_thermal_active", "{flag}",
		"1 while clocks are reduced by temperature (sw_thermal_slowdown, hw_thermal_slowdown)",
		GPU_KEY),
	[M_GPU_THROTTLE_ACTIVE + 2] = GAUGE("gpu.throttle.sw_active", "gpu_throttle_sw_active",
		"{flag}",
		"1 while clocks are reduced by the driver (sw_power_cap, sw_thermal_slowdown)",
		GPU_KEY),
	[M_GPU_THROTTLE_ACTIVE + 3] = GAUGE("gpu.throttle.hw_active", "gpu_throttle_hw_active",
		"{flag}",
		"1 while clocks are reduced by hardware (hw_slowdown, hw_thermal_slowdown, hw_power_brake)",
		GPU_KEY),
	[M_GPU_THROTTLE_EDGES + 0] = COUNTER("gpu.throttle.power_event",
		"gpu_throttle_power_event_total", "{event}",
		"Times that power limits began to reduce the clocks (sampled once a second)",
		GPU_KEY),
	[M_GPU_THROTTLE_EDGES + 1] =
		COUNTER("gpu.throttle.thermal_event", "gpu_throttle_thermal_event_total", "{event}",
			"Times that temperature began to reduce the clocks", GPU_KEY),
	[M_GPU_THROTTLE_EDGES + 2] = COUNTER("gpu.throttle.sw_event", "gpu_throttle_sw_event_total",
		"{event}", "Times that the driver began to reduce the clocks", GPU_KEY),
	[M_GPU_THROTTLE_EDGES + 3] = COUNTER("gpu.throttle.hw_event", "gpu_throttle_hw_event_total",
		"{event}", "Times that hardware began to reduce the clocks", GPU_KEY),
	[M_GPU_ECC] = COUNTER("ingero.gpu.ecc.errors", "ingero_gpu_ecc_errors_total", "{error}",
		"ECC memory errors since the driver was loaded", GPU_KEY,
		KEY("ingero.ecc.type", "type")),
	[M_GPU_XID] = GAUGE("ingero.gpu.last_xid", "ingero_gpu_last_xid", "{xid}",
		"Latest XID error; absent if there was none", GPU_KEY),
	[M_GPU_XID_TIME] = SHARE("ingero.gpu.last_xid.time", "ingero_gpu_last_xid_time_seconds",
		"s", "Time of the latest XID error, in seconds since 1970", GPU_KEY),
	[M_GPU_PCIE_TX] =
		GAUGE("ingero.gpu.pcie.transmit", "ingero_gpu_pcie_transmit_bytes_per_second",
			"By/s", "PCIe throughput from the GPU, measured over 20 ms", GPU_KEY),
	[M_GPU_PCIE_RX] =
		GAUGE("ingero.gpu.pcie.receive", "ingero_gpu_pcie_receive_bytes_per_second", "By/s",
			"PCIe throughput to the GPU, measured over 20 ms", GPU_KEY),
	[M_GPU_PCIE_GEN] = GAUGE("ingero.gpu.pcie.generation", "ingero_gpu_pcie_generation",
		"{generation}", "Current PCIe link generation", GPU_KEY),
	[M_GPU_PCIE_WIDTH] = GAUGE("ingero.gpu.pcie.lanes", "ingero_gpu_pcie_lanes", "{lane}",
		"Current PCIe link width", GPU_KEY),
	[M_GPU_PROCESSES] = GAUGE("ingero.gpu.processes", "ingero_gpu_processes", "{process}",
		"Processes with a compute context", GPU_KEY),

	[M_HITS] = COUNTER("ingero.events.hits", "ingero_events_hits_total", "{event}",
		"Events seen by the probes", SOURCE_KEY),
	[M_STORED] = COUNTER("ingero.events.stored", "ingero_events_stored_total", "{event}",
		"Events stored as rows in the database", SOURCE_KEY),
	[M_AGGREGATED] = GAUGE("ingero.events.aggregated", "ingero_events_aggregated", "{event}",
		"Events counted in aggregates only", SOURCE_KEY),
	[M_DROPPED] = COUNTER("ingero.events.dropped", "ingero_events_dropped_total", "{event}",
		"Lost events, by stage and reason", KEY("ingero.stage", "stage"), SOURCE_KEY,
		REASON_KEY),
	[M_RING_OVERFLOWS] = COUNTER("ingero.ringbuf.overflows", "ingero_ringbuf_overflows_total",
		"{event}", "Events lost because the ring buffer was full", NO_KEYS),

	[M_OVERHEAD] = SHARE("ingero.overhead", "ingero_overhead_ratio", "1",
		"Share of its time that the busiest process loses to probes", NO_KEYS),
	[M_OVERHEAD_LOW] = SHARE("ingero.overhead.low", "ingero_overhead_low_ratio", "1",
		"Lower bound of it: from steps with and without launch probes; before enough were "
		"compared, CPU time of probes that waits for the GPU cannot hide",
		NO_KEYS),
	[M_OVERHEAD_HIGH] = SHARE("ingero.overhead.high", "ingero_overhead_high_ratio", "1",
		"Upper bound of it: from steps with and without launch probes; before enough were "
		"compared, all CPU time of probes",
		NO_KEYS),
	[M_OVERHEAD_BUDGET] = SHARE("ingero.overhead.budget", "ingero_overhead_budget_ratio", "1",
		"Overhead budget; 0: no limit", NO_KEYS),
	[M_HIT_COST] = SHARE("ingero.probe.hit_cost", "ingero_probe_hit_cost_seconds", "s",
		"Measured cost of one probe hit", NO_KEYS),
	[M_OWN_CPU] = {"process.cpu.time", "process_cpu_seconds_total", "s", METRIC_COUNTER, true,
		0, "CPU time of ingero itself, without probes", {NO_KEYS}},
	[M_OWN_MEMORY] = GAUGE("process.memory.usage", "process_resident_memory_bytes", "By",
		"Memory of ingero itself", NO_KEYS),
	[M_LAUNCH_WEIGHT] = GAUGE("ingero.launch.weight", "ingero_launch_weight", "{launch}",
		"Launches are counted 1/N of the time, and estimated in between", NO_KEYS),
	[M_PROCESSES] = GAUGE("ingero.processes", "ingero_processes", "{process}",
		"Running processes that are traced", NO_KEYS),
	[M_LIBRARIES] = GAUGE("ingero.libraries", "ingero_libraries", "{file}",
		"Library files with probes", NO_KEYS),
	[M_PROBES] = GAUGE("ingero.probes", "ingero_probes", "{probe}", "Functions with probes",
		KEY("ingero.layer", "layer")),
	[M_GAPS] = GAUGE("ingero.coverage.gaps", "ingero_coverage_gaps", "{process}",
		"Processes with incomplete coverage, including ended ones", NO_KEYS),
	[M_STACKS] = COUNTER(
		"ingero.stacks", "ingero_stacks_total", "{stack}", "Call stacks recorded", NO_KEYS),
	[M_STACKS_LOST] = COUNTER("ingero.stacks.lost", "ingero_stacks_lost_total", "{stack}",
		"Call stacks lost", NO_KEYS),
	[M_NAMES_LOST] = COUNTER("ingero.names.lost", "ingero_names_lost_total", "{name}",
		"Names of kernels and NVTX ranges lost", NO_KEYS),
	[M_DB_BYTES] = GAUGE("ingero.trace.db", "ingero_trace_db_bytes", "By",
		"Size of the database including its write-ahead log", NO_KEYS),
	[M_DB_PRUNED] = COUNTER("ingero.trace.db.pruned_rows", "ingero_trace_db_pruned_rows_total",
		"{row}", "Rows deleted to keep the database within its size", NO_KEYS),
	[M_CLOCK_STEPS] = COUNTER("ingero.clock.steps", "ingero_clock_steps_total", "{step}",
		"Steps of the wall clock by more than 1 ms", NO_KEYS),
	[M_SERIES] = GAUGE("ingero.metrics.series", "ingero_metrics_series", "{series}",
		"Series in this export", NO_KEYS),
	[M_SERIES_CUT] = GAUGE("ingero.metrics.series_cut", "ingero_metrics_series_cut", "{series}",
		"Series omitted from this export because of its limit", NO_KEYS),
	[M_ENTRIES_CUT] = COUNTER("ingero.metrics.entries_cut", "ingero_metrics_entries_cut_total",
		"{entry}",
		"Collectives, GPUs, processes and incidents omitted because of their limits",
		NO_KEYS),
	[M_BUILD_TIME] = SHARE("ingero.metrics.build_time", "ingero_metrics_build_seconds", "s",
		"Time spent preparing this export", NO_KEYS),
};
