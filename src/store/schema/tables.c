/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - the columns of a recording's tables: see table.h.
 *
 * Aggregates are added to, never replaced: a late call of a bucket already written must not erase what the
 * bucket holds. Sums stop at the largest integer instead of turning into floating point. */

#include "store/schema/table.h"
#include "model/event.h"
#include "model/accounting.h"
#include "model/collective.h"
#include "model/sample.h"
#include "model/identity.h"
#include "model/kernel.h"
#include "model/step_account.h"
#include "store/schema/event_column.h"
#include "wire/ids.h"

/* clang-format off */
#define TYPE(s, member)                                                                            \
	_Generic(&((s *)0)->member, bool *: COLUMN_U8, uint8_t *: COLUMN_U8, uint16_t *: COLUMN_U16,                  \
		uint32_t *: COLUMN_U32, uint64_t *: COLUMN_U64, int32_t *: COLUMN_I32,             \
		int64_t *: COLUMN_I64, wall_time *: COLUMN_I64, double *: COLUMN_DOUBLE,           \
		const char **: COLUMN_POINTER, default: COLUMN_CHARS)
/* The member of struct OF, and one whose 0 stands for "not known". */
#define M(member) .type = TYPE(OF, member), .offset = offsetof(OF, member), .size = sizeof(((OF *)0)->member)
#define M0(member) .type = COLUMN_U64, .offset = offsetof(OF, member)
#define M_RANK(place, n) .type = COLUMN_RANK, .offset = offsetof(OF, place), .size = n
#define RANKS(place) RANK("rank", M_RANK(place, 0)), RANK("local_rank", M_RANK(place, 1)), \
	RANK("world_size", M_RANK(place, 2))

/* What ends in _ has no default, so it must be there. After the name: M(member), or nothing where the writer
 * gives the value. */
#define C(name_, otherwise_, kind_, ...) \
	{.name = name_, .otherwise = otherwise_, .kind = COLUMN_##kind_, ##__VA_ARGS__}
#define MADE(name, declaration, ...) C(name, declaration, DECLARED, ##__VA_ARGS__)
#define ROW_ID                       MADE("id", "INTEGER PRIMARY KEY AUTOINCREMENT")
#define NODE_                        C("node", "''", NODE)
#define SESSION                      C("session_id", NULL, SESSION, .json = "session")
#define TIME_(name, ...)             C(name, NULL, TIME, ##__VA_ARGS__)
#define TIME(name, ...)              C(name, "0", TIME_OR_0, ##__VA_ARGS__)
#define INT_(name, ...)              C(name, NULL, INT, ##__VA_ARGS__)
#define INT(name, ...)               C(name, "0", INT, ##__VA_ARGS__)
#define COUNT_(name, ...)            C(name, NULL, COUNT, ##__VA_ARGS__)
#define COUNT(name, ...)             C(name, "0", COUNT, ##__VA_ARGS__)
#define PID(name, ...)               COUNT(name, .max = UINT32_MAX, ##__VA_ARGS__)
#define SOME(name, ...)              C(name, "NULL", COUNT, .may_lack = true, ##__VA_ARGS__)
#define RANK(name, ...)              SOME(name, .max = INT32_MAX, ##__VA_ARGS__)
#define REAL_(name, ...)             C(name, NULL, REAL, ##__VA_ARGS__)
#define REAL(name, ...)              C(name, "0", REAL, ##__VA_ARGS__)
#define PART(name, ...)              C(name, "NULL", REAL, .may_lack = true, ##__VA_ARGS__)
#define TEXT_(name, most, ...)       C(name, NULL, TEXT, .max = most, ##__VA_ARGS__)
#define TEXT(name, ...)              C(name, "''", TEXT, .max = 4096, ##__VA_ARGS__)
#define SHORT(name, room, ...)       C(name, "''", TEXT, .max = (room) - 1, ##__VA_ARGS__)
#define JSON(name)                   C(name, "''", JSON, .max = 64 << 10) /* STACK_JSON_MAX */
/* clang-format on */

#define OF struct event
static const struct column events[] = {
#define X(NAME, place_, name, otherwise, kind, ...)                                                \
	[COL_##NAME] = C(name, otherwise, kind, .place = place_, ##__VA_ARGS__),
	EVENT_COLUMNS(X)
#undef X
		/* clang-format off */
	[COL_COUNT] = MADE("id", "TEXT GENERATED ALWAYS AS (node || ':' || seq) VIRTUAL", .place = 1),
	MADE("stack_ips", "TEXT GENERATED ALWAYS AS ('') VIRTUAL", .place = 17),
	/* clang-format on */
};
#undef OF

static const struct column stacks[] = {
	INT_("hash"), JSON("ips"), JSON("frames"), SHORT("stop", 1025)};

/* As published, filled from an incident. Nothing is added here: what incidents get goes into
 * model/incident.h. */
static const struct column chains[] = {TEXT_("id", 128), TIME("detected_at"),
	TEXT_("severity", 4096), TEXT_("summary", 4096), TEXT_("root_cause", 4096),
	TEXT("explanation"), JSON("recommendations"), SHORT("cuda_op", 257), COUNT("cuda_p99_us"),
	COUNT("cuda_p50_us"), REAL("tail_ratio"), JSON("timeline"), NODE_};

#define OF struct host_sample
static const struct column samples[] = {ROW_ID, TIME_("timestamp", M(time)),
	REAL_("cpu_pct", M(cpu_pct), .json = "cpu_percent"),
	REAL_("mem_pct", M(mem_pct), .json = "mem_percent"),
	COUNT_("mem_avail", M(mem_avail_mb), .json = "mem_avail_mb"), COUNT_("swap_mb", M(swap_mb)),
	REAL_("load_avg", M(load1)), NODE_,
	C("mem_total", "coalesce((SELECT max(mem_total) FROM sessions), 0)", COUNT, M(mem_total_mb),
		.json = "mem_total_mb"),
	PART("load5", M(load5)), PART("major_faults", M(major_faults_per_s)),
	PART("psi_cpu", M(psi_cpu_pct), .json = "psi_cpu_pct"),
	PART("psi_memory", M(psi_memory_pct), .json = "psi_memory_pct"),
	PART("psi_io", M(psi_io_pct), .json = "psi_io_pct"),
	PART("busiest_cpu_pct", M(busiest_cpu_pct)), SOME("busiest_cpu", M(busiest_cpu)),
	SOME("swap_total", M(swap_total_mb), .json = "swap_total_mb"),
	PART("steal_pct", M(steal_pct)), PART("iowait_pct", M(iowait_pct))};
#undef OF

#define OF struct session
static const struct column sessions[] = {ROW_ID, TIME_("started_at", M(started)),
	TIME("stopped_at", M(stopped)), TEXT("gpu_model", M(gpu_model)),
	TEXT("gpu_driver", M(gpu_driver)), TEXT("cpu_model", M(cpu_model)),
	COUNT("cpu_cores", M(cpu_cores)),
	COUNT("mem_total", M(mem_total_mb), .json = "mem_total_mb"), TEXT("kernel", M(kernel)),
	TEXT("os_release", M(os_release)), TEXT("cuda_ver", M(cuda_version)),
	TEXT("python_ver", M(python_version)), TEXT("ingero_ver", M(ingero_version)),
	TEXT("pid_filter", M(pid_filter)), TEXT("flags", M(flags)), NODE_, RANK("rank"),
	RANK("local_rank"), RANK("world_size"), TEXT("missing", M(missing))};
#undef OF

#define OF struct process
static const struct column process_names[] = {COUNT_("pid", .max = UINT32_MAX, M(pid)),
	TEXT_("name", 255, M(comm)), TIME("seen_at", M(seen))};

static const struct column processes[] = {NODE_, PID("pid", M(pid)),
	COUNT("start_time", M(start_ticks)), TEXT("comm", M(comm)), TEXT("cmdline"),
	TIME("first_seen", M(seen)), TIME("last_seen", M(seen)), RANKS(identity.place),
	TEXT("launcher", M(identity.launcher)), TEXT("job", M(identity.job)),
	TEXT("container_id", M(identity.container_id)), TEXT("pod", M(identity.pod)),
	TEXT("namespace", M(identity.namespace)), TEXT("pod_uid", M(identity.pod_uid)),
	TEXT("cgroup_path", M(identity.cgroup_path)), TEXT("exe", M(identity.exe)),
	TEXT("script", M(script)), SOME("cpus", M(cpus)),
	COUNT("environ_unreadable", .max = 1, M(identity.environ_unreadable),
		.meaning = "1: its environment could not be read, so rank and job are unknown"),
	SHORT("visible_gpus", IDENTITY_GPUS_MAX, M(identity.visible_gpus),
		.meaning = "CUDA_VISIBLE_DEVICES of its environment; '': not set, or unknown")};
#undef OF

static const struct column coverage[] = {SESSION, NODE_, PID("pid"), COUNT("start_time"),
	TEXT("layer"), TEXT("state"), TEXT("detail"), TIME("since")};

#define OF struct call_gap
static const struct column call_gaps[] = {SESSION, NODE_, TIME_("timestamp", M(from)),
	COUNT("duration", .json = "duration_ns"), PID("pid", M(pid)),
	COUNT("start_time", M(start_ticks)), TEXT("comm", M(comm)), TEXT("file", M(file)),
	TEXT("reason")};
#undef OF

#define OF struct kernel_row
static const struct column kernels[] = {NODE_, PID("pid", M(pid)), INT("function", M(function)),
	TIME("since", M(since)), TEXT("name"), C("origin", "'unknown'", TEXT, .max = 4096),
	COUNT("launches", M(launches)), TIME("first_launch", M(first))};
#undef OF

#define OF struct text_row
static const struct column names[] = {INT("hash", M(hash)), SHORT("name", 256, M(text))};
#undef OF

static const struct column aggregates[] = {COUNT_("bucket", .max = WALL_NS_MAX),
	COUNT_("source", .max = WIRE_SOURCE_MAX - 1), COUNT_("op", .max = WIRE_OP_MAX - 1),
	PID("pid"), COUNT("nested", .max = 1, .place = 11), COUNT_("count", .place = 5),
	COUNT("stored", .place = 6), COUNT("sum_dur", .place = 7), COUNT("min_dur", .place = 8),
	COUNT("max_dur", .place = 9), COUNT("sum_arg0", .place = 10),
	C("sketch", "NULL", BLOB, .may_lack = true, .max = SKETCH_BLOB_MAX)};

#define OF struct collective_row
static const struct column collectives[] = {NODE_, TIME_("timestamp", M(start)),
	COUNT_("pid", .max = UINT32_MAX, M(pid)), COUNT_("tid", .max = UINT32_MAX, M(tid)),
	INT_("comm", M(c.comm_hash)), INT_("seq", .may_lack = true), TEXT_("op", 32),
	RANK("rank", M(c.rank)), RANK("nranks", M(c.nranks)), INT("device", M(device)),
	COUNT("bytes", M(c.bytes)), COUNT("count", M(c.count)), RANK("datatype", M(c.datatype)),
	RANK("reduce_op", M(c.reduce_op)), RANK("root", M(c.root)), RANK("peer", M(c.peer)),
	INT("stream", M(stream)), COUNT("duration", M(dur_ns)), SOME("wait_ns", M(c.wait_ns)),
	INT("ret_code", M(ret)), SOME("span_ns", M0(c.span_ns))};
#undef OF

static const struct column losses[] = {
	SESSION, NODE_, COUNT("source"), TEXT("reason"), COUNT("count")};

static const struct column cpu_losses[] = {
	SESSION, NODE_, COUNT("source"), TEXT("reason"), COUNT("cpu"), COUNT("count")};

static const struct column accounting[] = {SESSION, NODE_, COUNT("source"), COUNT("hits"),
	COUNT("stored"), COUNT("aggregated"), COUNT("lost")};

static const struct column pruned[] = {SESSION, TEXT("table_name", .json = "table"), COUNT("rows"),
	TIME("oldest_ns"), TIME("newest_ns")};

#define OF struct cgroup_row
static const struct column groups[] = {INT("cgroup_id", M(id)),
	TEXT("container_id", M(container_id)), TEXT("cgroup_path", M(path)),
	TEXT("pod_name", M(pod)), TEXT("namespace", M(namespace))};
#undef OF

static const struct column schedstat[] = {INT("cgroup_id"), COUNT("p99_off_cpu"),
	COUNT("total_off_cpu"), COUNT("event_count"), TIME("window_start"), TIME("window_end")};

#define OF struct annotation
static const struct column annotations[] = {ROW_ID, TIME_("timestamp", M(time)),
	C("labels", "'{}'", JSON, .max = 16 << 10, M(labels)), PID("pid", M(pid)),
	COUNT("start_time", M(start_time)), TIME("span_start", M(span_start_ns)),
	TIME("span_end", M(span_end_ns)), PID("peer_uid", M(peer_uid)),
	PID("peer_gid", M(peer_gid)), PID("peer_pid", M(peer_pid))};
#undef OF

#define FIELD(field, what) SOME(#field, M(field)),
#define OF                 struct gpu_sample
static const struct column gpu_samples[] = {NODE_, TIME_("timestamp", M(time)),
	COUNT_("gpu", M(index)), SHORT("uuid", GPU_UUID_LEN, M(uuid)),
	SHORT("name", GPU_NAME_LEN, M(name)), SHORT("pci", GPU_PCI_LEN, M(pci)), GPU_FIELDS(FIELD)};
#undef OF

#define TOLD_FIELD(field, what) SOME(#field, M(field), .meaning = what),
#define OF                      struct container_sample
static const struct column containers[] = {NODE_, TIME_("timestamp", M(time)),
	INT_("cgroup_id", M(cgroup_id)), CONTAINER_FIELDS(TOLD_FIELD)};
#undef OF

#define LINE(NAME, column, what) COUNT(column, M(ns[LEDGER_##NAME]), .meaning = what),
#define OF                       struct ledger_row
static const struct column ledger[] = {NODE_, TIME_("timestamp", M(start)),
	COUNT_("duration", .max = INT64_MAX / 2, M(dur_ns)), SHORT("comm", COMM_LEN, M(comm)),
	PID("pid", M(pid)), PID("tid", M(tid)), COUNT("mark", M(mark)),
	COUNT("launches", M(launches)), COUNT("waits", M(waits)), COUNT("copies", M(copies)),
	COUNT("allocs", M(allocs)), COUNT("stays", M(stays)), COUNT("copy_bytes", M(copy_bytes)),
	COUNT("launches_off", .max = 1, M(launches_off)), COUNT("stay_ns", M(stay_ns)),
	COUNT("stay_wait_ns", M(stay_wait_ns)), COUNT("waker", M(waker)),
	PID("waker_pid", M(waker_pid)), PID("waker_tid", M(waker_tid)),
	WIRE_LEDGER_LINES(LINE) SHORT("stay_line", 32),
	SHORT("waker_comm", COMM_LEN, M(waker_comm)), INT("stack_hash", M(stack_hash))};
#undef OF

const char *const ledger_columns[] = {
#define X(NAME, column, what) [LEDGER_##NAME] = column,
	WIRE_LEDGER_LINES(X)
#undef X
};

#define OF struct overhead
static const struct column overhead[] = {NODE_, TIME_("timestamp", M(time)),
	REAL("overhead", M(share)), REAL("budget", M(budget)), REAL("hit_ns", M(hit_ns)),
	COUNT("launch_weight", M(launch_weight)), REAL("agent_cpu_pct", M(cpu_pct)),
	COUNT("agent_rss_bytes", M(rss_bytes)), COUNT("db_bytes", M(db_bytes)),
	PART("overhead_low", M(low)), PART("overhead_high", M(high)), SOME("pairs", M(pairs)),
	PART("launch_watched", M(launch_watched)), PART("launch_error", M(launch_error))};
#undef OF

/* ---- tables ---- */

#define ADD(column)                                                                                \
	column " = CASE WHEN " column " > 9223372036854775807 - excluded." column                  \
	       " THEN 9223372036854775807 ELSE " column " + excluded." column " END"

#define RENEW_AGGREGATE                                                                            \
	" ON CONFLICT (bucket, source, op, pid, nested) DO UPDATE SET"                             \
	" min_dur = CASE WHEN count = 0 THEN excluded.min_dur"                                     \
	" WHEN excluded.count = 0 THEN min_dur ELSE min(min_dur, excluded.min_dur) END,"           \
	" max_dur = max(max_dur, excluded.max_dur),"                                               \
	" sketch = excluded.sketch, " ADD("count") ", " ADD("stored") ", " ADD(                    \
		"sum_dur") ", " ADD("sum_arg0")

/* What is known is not forgotten because another process of the group does not say it. */
#define KEEP(column) column " = coalesce(nullif(excluded." column ", ''), " column ")"

#define TABLE(name_, columns_) .name = name_, .columns = columns_, .count = ARRAY_SIZE(columns_)

const struct table node_tables[TABLE_COUNT] = {
	[TABLE_EVENTS] = {TABLE("events", events), .key = "seq", .is_rowid = true,
		.merged = "row INTEGER PRIMARY KEY",
		.indexes = "CREATE INDEX idx_events_timestamp ON events(timestamp);"
			   "CREATE INDEX idx_events_pid ON events(pid);"},
	/* named better than before, or for the first time; addresses never replace names */
	[TABLE_STACKS] = {TABLE("stack_traces", stacks), .key = "hash", .is_rowid = true,
		.is_of_all = true,
		.renew = " ON CONFLICT (hash) DO UPDATE SET *"
			 " WHERE excluded.ips = '' OR stack_traces.ips <> ''"},
	[TABLE_CHAINS] = {TABLE("causal_chains", chains), .key = "id", .is_rowid = true,
		.renew =
			" ON CONFLICT (id) DO UPDATE SET *, detected_at = causal_chains.detected_at",
		.indexes = "CREATE INDEX idx_chains_detected_at ON causal_chains(detected_at);"
			   "CREATE INDEX idx_chains_severity ON causal_chains(severity);"},
	[TABLE_SAMPLES] = {TABLE("system_snapshots", samples),
		.renew = " ON CONFLICT (timestamp, node) DO UPDATE SET *",
		.indexes = "CREATE UNIQUE INDEX idx_snapshots_ts_uniq ON "
			   "system_snapshots(timestamp, node);"},
	[TABLE_SESSIONS] = {TABLE("sessions", sessions),
		.indexes = "CREATE INDEX idx_sessions_started ON sessions(started_at);"},
	[TABLE_PROCESS_NAMES] = {TABLE("process_names", process_names), .key = "pid",
		.is_rowid = true,
		.renew = " ON CONFLICT (pid) DO UPDATE SET *"
			 " WHERE excluded.seen_at >= process_names.seen_at",
		.settle = "UPDATE process_names SET name = $name, seen_at = $seen_at"
			  " WHERE node = $node AND pid = $pid AND seen_at < $seen_at"},
	[TABLE_PROCESSES] = {TABLE("processes", processes), .key = "node, pid, start_time",
		.renew =
			" ON CONFLICT (node, pid, start_time) DO UPDATE SET *,"
			" cmdline = CASE WHEN excluded.cmdline = '' THEN cmdline"
			" ELSE excluded.cmdline END, first_seen = min(first_seen, excluded.first_seen),"
			" last_seen = max(last_seen, excluded.last_seen), script = CASE WHEN"
			" excluded.script = '' AND excluded.cmdline = '' THEN script ELSE"
			" excluded.script END, cpus = coalesce(excluded.cpus, cpus), visible_gpus ="
			" CASE WHEN excluded.visible_gpus = '' THEN visible_gpus ELSE"
			" excluded.visible_gpus END",
		.settle = "UPDATE processes SET first_seen = min(first_seen, $first_seen),"
			  " last_seen = max(last_seen, $last_seen)"
			  " WHERE node = $node AND pid = $pid AND start_time = $start_time"},
	[TABLE_COVERAGE] = {TABLE("coverage", coverage),
		.key = "session_id, node, pid, start_time, layer", .renew = "REPLACE"},
	[TABLE_CALL_GAPS] = {TABLE("call_gaps", call_gaps),
		.key = "session_id, node, pid, timestamp, file", .renew = "REPLACE"},
	[TABLE_KERNELS] = {TABLE("kernels", kernels), .key = "node, pid, function, since",
		.renew = " ON CONFLICT (node, pid, function, since) DO UPDATE"
			 " SET launches = launches + excluded.launches, first_launch = CASE WHEN"
			 " first_launch = 0 THEN excluded.first_launch ELSE first_launch END,"
			 " name = CASE WHEN excluded.origin = 'unknown' THEN name ELSE"
			 " excluded.name END, origin = CASE WHEN excluded.origin = 'unknown' THEN"
			 " origin ELSE excluded.origin END",
		.settle =
			"UPDATE kernels SET launches = max(launches, $launches) WHERE node = $node"
			" AND pid = $pid AND function = $function AND since = $since"},
	[TABLE_NAMES] = {TABLE("names", names), .key = "hash", .is_rowid = true, .is_of_all = true,
		.renew = "IGNORE"},
	[TABLE_COARSE] = {TABLE("event_aggregates", aggregates),
		.key = "bucket, source, op, pid, nested", .renew = RENEW_AGGREGATE},
	[TABLE_FINE] = {TABLE("event_aggregates_5s", aggregates),
		.key = "bucket, source, op, pid, nested", .renew = RENEW_AGGREGATE},
	[TABLE_COLLECTIVES] = {TABLE("collectives", collectives),
		.indexes = "CREATE INDEX idx_collectives_comm ON collectives(comm, seq);"
			   "CREATE INDEX idx_collectives_timestamp ON collectives(timestamp);"},
	[TABLE_LOSSES] = {TABLE("losses", losses), .key = "session_id, node, source, reason",
		.settle = "UPDATE losses SET count = max(count, $count) WHERE node = $node AND"
			  " session_id = $session_id AND source = $source AND reason = $reason"},
	[TABLE_CPU_LOSSES] = {TABLE("losses_by_cpu", cpu_losses),
		.key = "session_id, node, source, reason, cpu", .renew = "REPLACE",
		.settle = "UPDATE losses_by_cpu SET count = max(count, $count) WHERE node = $node"
			  " AND session_id = $session_id AND source = $source AND reason = $reason"
			  " AND cpu = $cpu"},
	[TABLE_ACCOUNTING] = {TABLE("accounting", accounting), .key = "session_id, node, source",
		.settle = "UPDATE accounting SET hits = $hits, stored = $stored, aggregated ="
			  " $aggregated, lost = $lost WHERE node = $node AND session_id ="
			  " $session_id AND source = $source AND hits < $hits"},
	/* A session belongs to one node: its rows need not say it. */
	[TABLE_PRUNED] = {TABLE("pruned", pruned), .key = "session_id, table_name",
		.is_of_all = true,
		.renew =
			" ON CONFLICT (session_id, table_name) DO UPDATE SET"
			" rows = rows + excluded.rows, oldest_ns = min(oldest_ns, excluded.oldest_ns),"
			" newest_ns = max(newest_ns, excluded.newest_ns)"},
	[TABLE_GROUPS] = {TABLE("cgroup_metadata", groups), .key = "cgroup_id", .is_rowid = true,
		.renew =
			" ON CONFLICT (cgroup_id) DO UPDATE SET cgroup_path = excluded.cgroup_path, " KEEP(
				"container_id") ", " KEEP("pod_name") ", " KEEP("namespace"),
		.settle =
			"UPDATE cgroup_metadata SET container_id = coalesce(nullif(container_id,"
			" ''), $container_id), pod_name = coalesce(nullif(pod_name, ''), $pod_name),"
			" namespace = coalesce(nullif(namespace, ''), $namespace)"
			" WHERE node = $node AND cgroup_id = $cgroup_id",
		.indexes = "CREATE INDEX idx_cgroup_metadata_container_id ON"
			   " cgroup_metadata(container_id) WHERE container_id != '';"},
	[TABLE_SCHEDSTAT] = {TABLE("cgroup_schedstat", schedstat), .key = "cgroup_id, window_end",
		.is_rowid = true,
		.indexes =
			"CREATE INDEX idx_cgroup_schedstat_cgroup ON cgroup_schedstat(cgroup_id);"},
	[TABLE_ANNOTATIONS] = {TABLE("annotations", annotations),
		.indexes = "CREATE INDEX idx_annotations_timestamp ON annotations(timestamp);"
			   "CREATE INDEX idx_annotations_pid ON annotations(pid) WHERE pid != 0;"},
	[TABLE_GPU_SAMPLES] = {TABLE("gpu_samples", gpu_samples), .key = "timestamp, node, gpu",
		.renew = "REPLACE"},
	[TABLE_CONTAINERS] = {TABLE("container_samples", containers),
		.key = "timestamp, node, cgroup_id", .renew = "REPLACE"},
	[TABLE_LEDGER] = {TABLE("ledger", ledger),
		.indexes = "CREATE INDEX idx_ledger_timestamp ON ledger(timestamp);"},
	[TABLE_OVERHEAD] = {TABLE("overhead", overhead), .key = "timestamp, node",
		.renew = "REPLACE"},
};
