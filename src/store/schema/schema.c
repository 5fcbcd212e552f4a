/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - schema 0.11: the published tables, column for column, and what we add to them.
 *
 * Invariants:
 *  1. A published column keeps its name, place, type and meaning; ours stand after them.
 *  2. events.timestamp is the start of what the row describes, for every source.
 *  3. Unsigned 64-bit values are stored as the signed integer of the same bits.
 *  4. events.id reads "node:seq" but is computed on reading: stored as TEXT PRIMARY KEY it cost
 *     31 % of the bare insert rate (bench/bench_store.c). Look rows up by seq, the row number.
 *  5. While tracing, events has two indexes (timestamp; pid): they more than halve the insert rate.
 *  6. In a merged file the node is in every key, so that process ids, control groups and moments of different
 *     nodes never meet. events.row orders the rows by node: it is the node's number << MERGED_SEQ_BITS | seq, so
 *     that (node, seq) is unique without an index of its own (which would cost a third of the rate). Indexes of
 *     events are made when all rows are in. */
#include "store/schema/schema.h"

#include "store/schema/incident_table.h"
#include "store/schema/table.h"
#include "model/sample.h"
#include "wire/ledger.h"
#include "wire/names.h"

/* What describes the others. */
static const char described[] =
	"CREATE TABLE sources (id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
	" description TEXT NOT NULL);"
	"CREATE TABLE ops (source_id INTEGER NOT NULL, op_id INTEGER NOT NULL,"
	" name TEXT NOT NULL, description TEXT NOT NULL, PRIMARY KEY (source_id, op_id));"
	"CREATE TABLE schema_info (key TEXT PRIMARY KEY, value TEXT NOT NULL);";

/* What a merged file has beside them. */
static const char merged[] =
	"CREATE UNIQUE INDEX idx_annotations_once ON annotations"
	"(timestamp, node, pid, start_time, span_start, span_end, labels);"
	"CREATE UNIQUE INDEX idx_collectives_once ON collectives"
	"(node, pid, tid, timestamp, op);"
	"CREATE UNIQUE INDEX idx_ledger_once ON ledger(node, pid, tid, timestamp, mark);"
	"CREATE UNIQUE INDEX idx_sessions_once ON sessions(node, started_at);"
	"CREATE TABLE node_clocks (node TEXT PRIMARY KEY, reference TEXT NOT NULL,"
	" offset_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL,"
	" collectives INTEGER NOT NULL, applied INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE merged_files (id INTEGER PRIMARY KEY, path TEXT NOT NULL,"
	" schema TEXT NOT NULL, rows INTEGER NOT NULL, duplicates INTEGER NOT NULL,"
	" skipped INTEGER NOT NULL, renumbered INTEGER NOT NULL);"
	"INSERT INTO schema_info VALUES"
	" ('node_clocks_note', 'how far the clock of a node is ahead of the reference''s, by"
	" collectives that both left together; applied 1: it was taken from every time of the"
	" node in this file except buckets'),"
	" ('merged_files_note', 'the files that ingero merge put into this one'),"
	" ('merged_note', 'made by ingero merge: every table has the node; events.row is"
	" node number << 44 | seq');";

#define GPU_THROTTLE_NOTE_(bit, name, slows) " " #bit " " name
#define GPU_THROTTLE_NOTE                    GPU_THROTTLES(GPU_THROTTLE_NOTE_)

#define LEDGER_ID_NOTE(id, NAME, name, what) "; " #id " " name ": " what

static const struct {
	const char *key, *value;
} notes[] = {
	{"version", NODEDB_SCHEMA_TEXT},
	{"timestamp_unit", "nanoseconds (Unix epoch)"},
	{"duration_unit", "nanoseconds"},
	{"timestamp_note", "events.timestamp is the START of what the row describes, for every "
			   "source; its end is "
			   "timestamp + duration. (Files of schema 0.8 to 0.10 keep the end for "
			   "block I/O, socket "
			   "and sched_switch rows.)"},
	{"arg0_note",
		"per operation: see ops.description; unsigned 64-bit values are stored as the "
		"signed integer of the same bits"},
	{"arg1_note", "per operation: see ops.description"},
	{"ret_code_note", "CUDA return code (0 = success); block requests: error; others 0"},
	{"flags_note", "events.flags: 1 nested in a runtime call, 2 preempted, 4 uninterruptible, "
		       "8 inside a CUDA call, 16 slow, 32 ordinary sample, 64 thread, 128 traced "
		       "process, 1024 first call of its thread after a pause of 1 ms or more that "
		       "followed a wait for the GPU"},
	{"wait_note",
		"sched_switch: wait_ns of duration were spent runnable without a CPU; peer_pid "
		"and peer_comm used that CPU; stream is the process that woke the thread"},
	{"peer_note",
		"net_send, net_recv, tcp_retransmit: detail is the other end; if that is on this machine, "
		"peer_pid is the process that listens there. Block requests: peer_comm is the device's name"},
	{"weight_note", "events.weight: how many calls the row stands for"},
	{"node_note", "events.id is node:seq and is computed; select rows by seq. causal_chains.id "
		      "and incidents.id are node:descriptor"},
	{"event_aggregates_note", "all calls per minute, process and operation, stored or not: "
				  "count - stored have no row "
				  "in events. nested = 1: driver calls made inside runtime calls, "
				  "so do not add them to "
				  "those; of launches among them one in 16 is timed and "
				  "stands for the rest. sketch: histogram of durations"},
	{"event_aggregates_5s_note", "as event_aggregates, in buckets of 5 seconds"},
	{"losses_by_cpu_note",
		"the part of `losses` that happened in the kernel, by CPU, since the trace began "
		"(also in a file that follows a rolled one)"},
	{"accounting_note",
		"per session and source: hits = stored + aggregated + lost; losses has lost by "
		"reason. stored counts rows of events and of ledger (source host). While "
		"sessions.stopped_at is 0, hits may be more: the rest was in flight "
		"when the last row was written"},
	{"pruned_note",
		"rows deleted to keep --max-db, by the session that deleted them: stored in "
		"accounting counts rows ever stored; oldest_ns and newest_ns are the times of "
		"the first and last deleted row (0: rows without a time)"},
	{"annotations_note",
		"labels that workloads sent over the socket of `trace --annotate`; "
		"pid 0: about the whole trace; span 0, 0: holds from timestamp on until "
		"the label is set again"},
	{"processes_note",
		"start_time: clock ticks since boot, so that a reused pid is another row. rank, "
		"launcher, job, container_id, pod: of the process itself, after its last exec; "
		"NULL = no rank, 0 = rank 0. script: what an interpreter runs, without its folder; "
		"cpus: how many CPUs its first thread may run on; NULL: unknown"},
	{"coverage_note",
		"what was seen of a process: layer runtime, driver, nccl, identity; state covered "
		"(from the time `since` on), absent (not used), not_covered or failed (calls are "
		"missing from events and aggregates: detail says why)"},
	{"call_gaps_note",
		"calls of a process that no probe could see: it had mapped `file` at `timestamp`, "
		"and the probes were there `duration` later (reason first_seen), or the process "
		"had ended by then (ended; start_time 0: unknown). No count includes them"},
	{"collectives_note",
		"NCCL collectives and point-to-point calls; (comm, seq) names one "
		"collective on all ranks; comm 0: the communicator is unknown; seq below 0: the rank's own "
		"count, of a communicator that was in use before the trace; wait_ns is the time the host waited for it in "
		"the synchronisation that followed; span_ns the time from the call to the end of a "
		"synchronisation that waited for it alone, so at least as long as it took; NULL: "
		"the call has no such value"},
	{"kernels_note",
		"kernels that a process launched: events.arg0 of a launch is function. since: "
		"when the function or handle became this kernel's, or 0. origin: where the name comes from: "
		"registered (the program), handle (the program asked for it by name), symbol (the launching "
		"function's own), unknown (name says where the function is). launches: an estimate "
		"from a sample of one in 16. first_launch: it was within the second before (five, for processes with over a thousand kernels); "
		"0: unknown"},
	{"names_note",
		"texts that are stored once: events.arg1 of source nvtx is names.hash, as is stream "
		"for ranges of a domain with a name"},
	{"system_snapshots_note", "the host, once a second while recording (fewer with --deadband "
				  "or --heartbeat)"},
	{"system_snapshots_units",
		"major_faults: per second; psi_*: percent of the last 10 s in which some task "
		"stalled, NULL where the kernel has no such value; busiest_cpu: the CPU with the least "
		"idle time; swap_total: MB; steal_pct: share of all CPUs that the hypervisor gave "
		"to others; iowait_pct: share idle while a task waited for a disk"},
	{"gpu_samples_note", "each GPU once a second while recording, by NVML; NULL: unknown. "
			     "Units are in the names. A gap: the driver did not answer. "
			     "ecc_*: since the driver was loaded; last_xid: seen while recording"},
	{"gpu_samples_throttle", "throttle_reasons is the sum of" GPU_THROTTLE_NOTE},
	{"container_samples_note",
		"each control group of traced processes once a second while recording (the kernel's "
		"cgroup v2; of v1 the CPU quota and throttling, and memory); cgroup_metadata names it. "
		"Totals since the group exists; NULL: the kernel has no such value, or no limit is "
		"set. Quota and throttling are those of the ancestor with the tightest quota"},
	{"ledger_note",
		"what a thread of a traced process spent its time on between two marks: the "
		"columns below, in ns, add up to duration, and rows of a thread follow each other "
		"without a gap unless one was lost"},
	{"ledger_counts",
		"launches, waits, copies, allocs: calls that ended in the row; stays: off-CPU "
		"intervals that ended in it; launches_off 1: launches were not probed in a part of "
		"it"},
	{"ledger_mark", "ledger.mark is what ended the row" WIRE_MARKS(LEDGER_ID_NOTE)},
	{"ledger_stay",
		"mark 1: the row ends with an off-CPU interval of stay_ns, in the last stay_wait_ns of "
		"which the thread was able to run; stay_line: its column; stack_hash: "
		"where it was. waker_pid, waker_tid, waker_comm: the thread that ended it; "
		"waker" WIRE_WAKERS(LEDGER_ID_NOTE)},
	{"overhead_note",
		"overhead of tracing, every 5 s: overhead: share of its time that the busiest process "
		"loses to probes (budget: its limit, 0 none); the true value is most likely between "
		"overhead_low and overhead_high. pairs: how many pairs of windows with and without "
		"launch probes were compared; NULL: none yet, then overhead_high is the probes' CPU "
		"time (hits times hit_ns, of one hit) and overhead the part of it that waits for the GPU "
		"cannot hide. launch_weight: one in this many launches was seen; launch_watched: share of "
		"the time since the start in which launches were counted; launch_error: their number "
		"since then is an estimate, the true number most likely within this share of it (0: all were "
		"counted); agent_cpu_pct: of one CPU"},
	{"sessions_note",
		"one row per `ingero trace`; stopped_at 0: running or killed; missing: what the "
		"kernel could not do, \"part: why\", one per line"},
	{"process_names_note",
		"the last name of each pid; `processes` has reused pids as separate rows"},
	{"stack_traces_note",
		"events.stack_hash and ledger.stack_hash refer to stack_traces.hash; 0 = none"},
	{"stack_traces_frames",
		"frames: JSON array, innermost first: s function, f source file or library, l "
		"line; pf, pfn, pl file, function and line of a Python frame; i address where "
		"there is no s. ips: the addresses, if nothing has a name. stop: where the walk "
		"ended early and why; '' if it is complete"},
	{"cgroup_metadata_note",
		"events.cgroup_id refers to cgroup_metadata.cgroup_id: the kernel's number of a group of "
		"cgroup v2; from 2^52 on of one of v1 that limits CPUs, made of its path"},
	{"example_query", "SELECT e.id, s.name AS source, o.name AS op, e.duration/1000 AS dur_us, "
			  "e.pid FROM "
			  "events e JOIN sources s ON e.source = s.id JOIN ops o ON e.source = "
			  "o.source_id AND "
			  "e.op = o.op_id ORDER BY e.timestamp DESC LIMIT 20"},
};

/* A table's own note is followed by what its columns mean. */
static int put_note(sql_stmt *stmt, const char *key, const char *value, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(TABLE_TEXT);
	size_t len = strlen(key) - strlen("_note");

	for (int i = 0; i < TABLE_COUNT; i++)
		if (!strncmp(node_tables[i].name, key, len) && !node_tables[i].name[len] &&
			!strcmp(key + len, "_note"))
			table_note(&node_tables[i], value, &text);
	if (text.err)
		return text.err;
	return SQL_PUT(stmt, reterr, SQL_S(key), SQL_S(text.len ? buf_str(&text) : value));
}

/* schema_describe - fill the tables that describe the rest, replacing what they hold. */
static int schema_describe(sql_db *db, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *source = NULL;
	_cleanup_(sql_finalizep) sql_stmt *op = NULL;
	_cleanup_(sql_finalizep) sql_stmt *note = NULL;
	int r;
	_cleanup_buf_ struct buf text = BUF_INIT(INCIDENT_TABLE_TEXT);

	r = sql_prepare(db, "INSERT OR REPLACE INTO sources VALUES (?1, ?2, ?3)", &source, reterr);
	if (r < 0)
		return r;
	for (const struct wire_source_row *s = wire_sources; s->json; s++) {
		r = SQL_PUT(source, reterr, SQL_I(s->id), SQL_S(s->sql), SQL_S(s->description));
		if (r < 0)
			return r;
	}
	r = sql_prepare(db, "INSERT OR REPLACE INTO ops VALUES (?1, ?2, ?3, ?4)", &op, reterr);
	if (r < 0)
		return r;
	for (const struct wire_op_row *o = wire_ops; o->name; o++) {
		r = SQL_PUT(op, reterr, SQL_I(o->source), SQL_I(o->op), SQL_S(o->name),
			SQL_S(o->description));
		if (r < 0)
			return r;
	}
	r = sql_prepare(db, "INSERT OR REPLACE INTO schema_info VALUES (?1, ?2)", &note, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		r = put_note(note, notes[i].key, notes[i].value, reterr);
		if (r < 0)
			return r;
	}
	incident_table_note(&text);
	if (text.err)
		return text.err;
	return SQL_PUT(note, reterr, SQL_S("incidents_note"), SQL_S(buf_str(&text)));
}

static int create_tables(sql_db *db, bool is_merged, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(256 << 10);

	for (int i = 0; i < TABLE_COUNT; i++) {
		table_create(&node_tables[i], is_merged, &sql);
		if (node_tables[i].indexes && !(is_merged && i == TABLE_EVENTS))
			buf_puts(&sql, node_tables[i].indexes);
	}
	buf_puts(&sql, described);
	incident_table_create(&sql);
	buf_printf(&sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", NODEDB_APPLICATION,
		NODEDB_SCHEMA);
	return sql.err ? sql.err : sql_exec(db, buf_str(&sql), reterr);
}

int schema_create(sql_db *db, struct errinfo *reterr)
{
	int r = create_tables(db, false, reterr);

	return r < 0 ? r : schema_describe(db, reterr);
}

int schema_create_merged(sql_db *db, struct errinfo *reterr)
{
	int r = create_tables(db, true, reterr);

	r = r ?: schema_describe(db, reterr);
	return r < 0 ? r : sql_exec(db, merged, reterr);
}

int schema_finish_merged(sql_db *db, struct errinfo *reterr)
{
	return sql_exec(db, node_tables[TABLE_EVENTS].indexes, reterr);
}

int schema_is_merged(sql_db *db, struct errinfo *reterr)
{
	return schema_has_table(db, "node_clocks", reterr);
}

int schema_has_table(sql_db *db, const char *name, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db,
		"SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE AND type = 'table'"
		" AND rootpage > 0",
		&stmt, reterr);

	r = r ?: SQL_BIND(stmt, reterr, SQL_S(name));
	return r ?: sql_step(stmt, reterr);
}

/* The number after "0." in schema_info.version; 0 if there is none. */
static int stored_version(sql_db *db, int *ret, char text[16], struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	const char *value;
	size_t len;
	int r;

	r = sql_prepare(db, "SELECT value FROM schema_info WHERE key = 'version'", &stmt, reterr);
	r = r ?: sql_step(stmt, reterr);
	if (r < 0)
		return r;
	*ret = 0;
	text[0] = 0;
	if (r == 0)
		return 0;
	value = sql_column_text(stmt, 0, &len);
	if (len < 3 || len > 5 || strncmp(value, "0.", 2) ||
		strspn(value + 2, "0123456789") != len - 2)
		return 0;
	snprintf(text, 16, "%s", value);
	*ret = atoi(value + 2);
	return 0;
}

int schema_identify(sql_db *db, const char *path, enum schema_kind *ret_kind, char ret_version[16],
	struct errinfo *reterr)
{
	int64_t user_version, objects;
	int r, number = 0;
	char text[16];

	r = sql_get_int(db, "PRAGMA user_version", &user_version, reterr);
	if (r < 0)
		return r;
	if (user_version > NODEDB_SCHEMA)
		return errinfo_set(reterr, -EBADMSG,
			"%s was written by a newer ingero (schema %lld, this one knows up to %d): "
			"use that version",
			path, (long long)user_version, NODEDB_SCHEMA);
	r = sql_get_int(db, "SELECT count(*) FROM sqlite_schema", &objects, reterr);
	if (r < 0)
		return r;
	if (objects == 0 && user_version == 0) {
		*ret_kind = SCHEMA_EMPTY;
		return 0;
	}
	for (const char *const *name = (const char *const[]){"schema_info", "events", "sessions",
		     "causal_chains", "system_snapshots", NULL};
		*name; name++) {
		r = schema_has_table(db, *name, reterr);
		if (r < 0)
			return r;
		if (r == 0)
			return errinfo_set(reterr, -EBADMSG,
				"%s is not an ingero database (it has no table %s): give another "
				"with --db",
				path, *name);
	}
	r = stored_version(db, &number, text, reterr);
	if (r < 0)
		return r;
	if (number > NODEDB_SCHEMA)
		return errinfo_set(reterr, -EBADMSG,
			"%s was written by a newer ingero (schema %s, this one knows up to %s): "
			"use that version",
			path, text, NODEDB_SCHEMA_TEXT);
	/* A dump of one of our files run again has the tables and no user_version. */
	if (number < 8 || (user_version == NODEDB_SCHEMA && number != NODEDB_SCHEMA))
		return errinfo_set(reterr, -EBADMSG,
			"%s has a schema that cannot be read (%s, user_version %lld): 0.8 to %s "
			"can",
			path, number ? text : "no version", (long long)user_version,
			NODEDB_SCHEMA_TEXT);
	*ret_kind = number == NODEDB_SCHEMA ? SCHEMA_OURS : SCHEMA_PUBLISHED;
	if (ret_version)
		memcpy(ret_version, text, sizeof(text));
	return 0;
}

/* early files of our own schema get what later versions have added. A model of
 * the present schema is made in memory and compared with the file: there is no list of changes to
 * keep. */

static int has_row(
	sql_db *db, const char *sql, const char *first, const char *second, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db, sql, &stmt, reterr);

	r = r ?: SQL_BIND(stmt, reterr, SQL_S(first), SQL_S(second));
	return r < 0 ? r : sql_step(stmt, reterr);
}

static int add_columns(sql_db *db, sql_db *model, const char *table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *columns = NULL;
	int r = sql_prepare(model,
		"SELECT name, type || CASE WHEN \"notnull\" THEN ' NOT NULL' ELSE '' END ||"
		" coalesce(' DEFAULT ' || dflt_value, '') FROM pragma_table_xinfo(?1)"
		" WHERE hidden = 0",
		&columns, reterr);

	if (r >= 0)
		r = SQL_BIND(columns, reterr, SQL_S(table));
	while (r >= 0 && (r = sql_step(columns, reterr)) > 0) {
		const char *name = sql_column_text(columns, 0, NULL);
		char sql[256];

		r = has_row(db, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = ?2", table, name,
			reterr);
		if (r != 0)
			continue;
		snprintf(sql, sizeof(sql), "ALTER TABLE %s ADD COLUMN %s %s", table, name,
			sql_column_text(columns, 1, NULL));
		r = sql_exec(db, sql, reterr);
	}
	return r;
}

static int add_objects(sql_db *db, sql_db *model, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *objects = NULL;
	int r = sql_prepare(model,
		"SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
		" AND name NOT LIKE 'sqlite_%' ORDER BY type = 'index'",
		&objects, reterr);

	while (r >= 0 && (r = sql_step(objects, reterr)) > 0) {
		const char *type = sql_column_text(objects, 0, NULL);
		const char *name = sql_column_text(objects, 1, NULL);

		r = has_row(db, "SELECT 1 FROM sqlite_schema WHERE type = ?1 AND name = ?2", type,
			name, reterr);
		if (r == 0)
			r = sql_exec(db, sql_column_text(objects, 2, NULL), reterr);
		else if (r > 0 && !strcmp(type, "table"))
			r = add_columns(db, model, name, reterr);
	}
	return r;
}

int schema_complete(sql_db *db, struct errinfo *reterr)
{
	static const char rows_described[] =
		"SELECT (SELECT count(*) FROM sources) + (SELECT count(*)"
		" FROM ops) + (SELECT count(*) + sum(length(value))"
		" FROM schema_info WHERE key <> 'last_seq')";
	_cleanup_(sql_closep) sql_db *model = NULL;
	int64_t rows, wanted;
	int r = sql_open_memory(&model, reterr);

	r = r ?: schema_create(model, reterr);
	r = r ?: add_objects(db, model, reterr);
	if (r < 0)
		return r;
	r = sql_get_int(db, rows_described, &rows, reterr);
	if (r < 0)
		return r;
	r = sql_get_int(model, rows_described, &wanted, reterr);
	if (r < 0)
		return r;
	return rows == wanted ? 0 : schema_describe(db, reterr);
}
