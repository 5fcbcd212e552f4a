/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_sql.c - the statements that write the store, compiled at first use.
 *
 * Aggregates are added to, never replaced: a late call of a bucket already written must not erase
 * what the bucket holds. Sums stop at the largest integer instead of turning into floating point.
 */
#include "store/schema/chain_columns.h"
#include "store/schema/incident_table.h"
#include "store/schema/ledger_columns.h"
#include "store/nodedb_private.h"

#define ADD(column)                                                                                \
	column " = CASE WHEN " column " > 9223372036854775807 - excluded." column                  \
	       " THEN 9223372036854775807 ELSE " column " + excluded." column " END"

#define AGGREGATE_GET(table)                                                                       \
	"SELECT sketch FROM " table " WHERE bucket = ?1 AND source = ?2 AND op = ?3 AND pid = ?4"  \
	" AND nested = ?5"

#define AGGREGATE_PUT(table)                                                                       \
	"INSERT INTO " table " AS old (bucket, source, op, pid, nested, count, stored, sum_dur,"   \
	" min_dur, max_dur, sum_arg0, sketch) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)"     \
	" ON CONFLICT (bucket, source, op, pid, nested) DO UPDATE SET"                             \
	" min_dur = CASE WHEN old.count = 0 THEN excluded.min_dur"                                 \
	" WHEN excluded.count = 0 THEN min_dur ELSE min(min_dur, excluded.min_dur) END,"           \
	" max_dur = max(max_dur, excluded.max_dur),"                                               \
	" sketch = excluded.sketch, " ADD("count") ", " ADD("stored") ", " ADD(                    \
		"sum_dur") ", " ADD("sum_arg0")

/* What is known is not forgotten because another process of the group does not say it. */
#define KEEP(column)                  column " = coalesce(nullif(excluded." column ", ''), " column ")"
#define COLUMN_NAME(field, meaning)   ", " #field
#define COLUMN_MARK(field, meaning)   ",?"
#define LINE_NAME(NAME, column, what) ", " column
#define LINE_MARK(NAME, column, what) ",?"

#define CHAIN_NAME(column, declaration, kind)  ", " #column
#define CHAIN_MARK(column, declaration, kind)  ",?"
#define CHAIN_RENEW(column, declaration, kind) ", " #column " = excluded." #column

static const char *const texts[STATEMENT_COUNT] = {
	[STATEMENT_EVENT] =
		"INSERT INTO events (seq, timestamp, pid, tid, source, op, duration, gpu_id, arg0, "
		"arg1, ret_code, stack_hash, node, cgroup_id, comm, flags, weight, stream, "
		"wait_ns, peer_pid, peer_comm, dev, cpu, detail, rank, local_rank, world_size) "
		"VALUES "
		"(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27)",
	[STATEMENT_FINE_GET] = AGGREGATE_GET("event_aggregates_5s"),
	[STATEMENT_FINE_PUT] = AGGREGATE_PUT("event_aggregates_5s"),
	[STATEMENT_COARSE_GET] = AGGREGATE_GET("event_aggregates"),
	[STATEMENT_COARSE_PUT] = AGGREGATE_PUT("event_aggregates"),
	[STATEMENT_SAMPLE] =
		"INSERT INTO system_snapshots (timestamp, cpu_pct, mem_pct, mem_avail, swap_mb,"
		" load_avg, node, mem_total, load5, major_faults, psi_cpu, psi_memory, psi_io,"
		" busiest_cpu_pct, busiest_cpu, swap_total, steal_pct, iowait_pct) VALUES"
		" (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)"
		" ON CONFLICT (timestamp, node) DO UPDATE SET cpu_pct = excluded.cpu_pct,"
		" mem_pct = excluded.mem_pct, mem_avail = excluded.mem_avail,"
		" swap_mb = excluded.swap_mb, load_avg = excluded.load_avg,"
		" mem_total = excluded.mem_total, load5 = excluded.load5,"
		" major_faults = excluded.major_faults, psi_cpu = excluded.psi_cpu,"
		" psi_memory = excluded.psi_memory, psi_io = excluded.psi_io,"
		" busiest_cpu_pct = excluded.busiest_cpu_pct, busiest_cpu = excluded.busiest_cpu,"
		" swap_total = excluded.swap_total, steal_pct = excluded.steal_pct,"
		" iowait_pct = excluded.iowait_pct",
	[STATEMENT_GPU_SAMPLE] =
		"INSERT OR REPLACE INTO gpu_samples (node, timestamp, gpu, uuid, name, "
		"pci" GPU_FIELDS(COLUMN_NAME) ") VALUES (?,?,?,?,?,?" GPU_FIELDS(COLUMN_MARK) ")",
	[STATEMENT_CONTAINER_SAMPLE] =
		"INSERT OR REPLACE INTO container_samples (node, timestamp, "
		"cgroup_id" CONTAINER_FIELDS(COLUMN_NAME) ") VALUES (?,?,?" CONTAINER_FIELDS(
			COLUMN_MARK) ")",
	[STATEMENT_LEDGER] =
		"INSERT INTO ledger (node, timestamp, duration, "
		"comm" LEDGER_NUMBERS(COLUMN_NAME) WIRE_LEDGER_LINES(
			LINE_NAME) ", stay_line,"
				   " waker_comm, stack_hash) VALUES (?,?,?,?" LEDGER_NUMBERS(
					   COLUMN_MARK) WIRE_LEDGER_LINES(LINE_MARK) ",?,?,?)",
	[STATEMENT_OVERHEAD] =
		"INSERT OR REPLACE INTO overhead (node, timestamp, overhead, budget, hit_ns,"
		" launch_weight, agent_cpu_pct, agent_rss_bytes, db_bytes, overhead_low,"
		" overhead_high, pairs, launch_watched, launch_error)"
		" VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
	[STATEMENT_COLLECTIVE] =
		"INSERT INTO collectives (node, timestamp, pid, tid, comm, seq, op, rank, nranks, "
		"device, bytes, count, datatype, reduce_op, root, peer, stream, duration, wait_ns, "
		"ret_code, span_ns) VALUES "
		"(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21)",
	[STATEMENT_PROCESS] =
		"INSERT INTO processes (node, pid, start_time, comm, cmdline, first_seen, "
		"last_seen, rank, local_rank, world_size, launcher, job, container_id, pod, "
		"namespace, pod_uid, cgroup_path, exe, script, cpus) VALUES "
		"(?1,?2,?3,?4,?5,?6,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19) ON CONFLICT "
		"(node, pid, start_time) DO UPDATE SET comm = excluded.comm, cmdline = CASE WHEN "
		"excluded.cmdline = '' THEN cmdline ELSE excluded.cmdline END, first_seen = "
		"min(first_seen, excluded.first_seen), last_seen = max(last_seen, "
		"excluded.last_seen), rank = excluded.rank, local_rank = excluded.local_rank, "
		"world_size = excluded.world_size, launcher = excluded.launcher, job = "
		"excluded.job, container_id = excluded.container_id, pod = excluded.pod, namespace "
		"= excluded.namespace, pod_uid = excluded.pod_uid, cgroup_path = "
		"excluded.cgroup_path, exe = excluded.exe, script = CASE WHEN excluded.script = '' "
		"AND excluded.cmdline = '' "
		"THEN script ELSE excluded.script END, cpus = coalesce(excluded.cpus, cpus)",
	[STATEMENT_CGROUP] =
		"INSERT INTO cgroup_metadata (cgroup_id, container_id, cgroup_path, pod_name,"
		" namespace) VALUES (?1,?2,?3,?4,?5) ON CONFLICT (cgroup_id) DO UPDATE SET"
		" cgroup_path = excluded.cgroup_path, " KEEP("container_id") ", " KEEP(
			"pod_name") ", " KEEP("namespace"),
	/* named better than before, or for the first time; addresses never replace names */
	[STATEMENT_STACK] = "INSERT INTO stack_traces (hash, ips, frames, stop)"
			    " VALUES (?1,?2,?3,?4) ON CONFLICT (hash) DO UPDATE SET"
			    " ips = excluded.ips, frames = excluded.frames, stop = excluded.stop"
			    " WHERE excluded.ips = '' OR stack_traces.ips <> ''",
	[STATEMENT_KERNEL] =
		"INSERT INTO kernels (node, pid, function, since, name, origin, launches,"
		" first_launch) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)"
		" ON CONFLICT (node, pid, function, since) DO UPDATE"
		" SET launches = launches + excluded.launches, first_launch = CASE WHEN"
		" first_launch = 0 THEN excluded.first_launch ELSE first_launch END, name = CASE WHEN excluded.origin ="
		" 'unknown' THEN name ELSE excluded.name END, origin = CASE WHEN excluded.origin ="
		" 'unknown' THEN origin ELSE excluded.origin END",
	[STATEMENT_NAME] = "INSERT OR IGNORE INTO names (hash, name) VALUES (?1,?2)",
	[STATEMENT_COVERAGE] =
		"INSERT INTO coverage (session_id, node, pid, start_time, layer, state, detail,"
		" since) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)"
		" ON CONFLICT (session_id, node, pid, start_time, layer) DO UPDATE SET"
		" state = excluded.state, detail = excluded.detail, since = excluded.since",
	[STATEMENT_CALL_GAP] =
		"INSERT OR REPLACE INTO call_gaps (session_id, node, timestamp, duration, pid,"
		" start_time, comm, file, reason) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
	[STATEMENT_SESSION_PLACE] = "UPDATE sessions SET rank = ?2, local_rank = ?3,"
				    " world_size = ?4 WHERE id = ?1",
	[STATEMENT_PROCESS_NAME] =
		"INSERT INTO process_names (pid, name, seen_at) VALUES (?1,?2,?3)"
		" ON CONFLICT (pid) DO UPDATE SET name = excluded.name, seen_at = excluded.seen_at"
		" WHERE excluded.seen_at >= seen_at",
	[STATEMENT_ACCOUNTING] =
		"INSERT INTO accounting (session_id, node, source, hits, stored, aggregated, lost)"
		" VALUES (?1,?2,?3,?4,?5,?6,?7)",
	[STATEMENT_CPU_LOSS] =
		"INSERT OR REPLACE INTO losses_by_cpu (session_id, node, source, reason, cpu,"
		" count) VALUES (?1,?2,?3,?4,?5,?6)",
	[STATEMENT_LOSS] = "INSERT INTO losses (session_id, node, source, reason, count)"
			   " VALUES (?1,?2,?3,?4,?5)",
	[STATEMENT_CHAIN] = "INSERT INTO causal_chains (id, detected_at" CHAIN_COLUMNS(
		CHAIN_NAME) ", node)"
			    " VALUES (?,?" CHAIN_COLUMNS(
				    CHAIN_MARK) ",?) ON CONFLICT (id) DO UPDATE SET"
						" node = excluded.node" CHAIN_COLUMNS(CHAIN_RENEW),
	[STATEMENT_ANNOTATION] =
		"INSERT INTO annotations (timestamp, labels, pid, start_time, span_start, span_end,"
		" peer_uid, peer_gid, peer_pid) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
	[STATEMENT_PRUNED] =
		"INSERT INTO pruned (session_id, table_name, rows, oldest_ns, newest_ns)"
		" VALUES (?1,?2,?3,?4,?5) ON CONFLICT (session_id, table_name) DO UPDATE SET"
		" rows = rows + excluded.rows, oldest_ns = min(oldest_ns, excluded.oldest_ns),"
		" newest_ns = max(newest_ns, excluded.newest_ns)",
};

static int prepare(
	struct nodedb *db, enum nodedb_statement which, sql_stmt **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(INCIDENT_TABLE_TEXT);

	if (which != STATEMENT_INCIDENT)
		return sql_prepare(db->sql, texts[which], ret, reterr);
	incident_table_insert(&sql);
	return sql.err ? sql.err : sql_prepare(db->sql, buf_str(&sql), ret, reterr);
}

int nodedb_statement(
	struct nodedb *db, enum nodedb_statement which, sql_stmt **ret, struct errinfo *reterr)
{
	if (!db->statements[which]) {
		int r = prepare(db, which, &db->statements[which], reterr);

		if (r < 0)
			return r;
	}
	*ret = db->statements[which];
	return 0;
}
