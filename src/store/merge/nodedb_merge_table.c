/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_table.c - the tables that are copied row by row, each by its description. A row
 * whose key is there already is a duplicate; `settle` says what the output's row gains from it. */
#include "store/merge/nodedb_merge_private.h"

#include "store/schema/ledger_columns.h"
#include "model/gpu_sample.h"

#define TEXT(name)                                                                                 \
	{                                                                                          \
		name, "''", MERGE_TEXT, 4096, false                                                \
	}
#define COUNT(name)                                                                                \
	{                                                                                          \
		name, "0", MERGE_COUNT, 0, false                                                   \
	}
#define INT(name)                                                                                  \
	{                                                                                          \
		name, "0", MERGE_INT, 0, false                                                     \
	}
#define PID(name)                                                                                  \
	{                                                                                          \
		name, "0", MERGE_COUNT, UINT32_MAX, false                                          \
	}
#define SOME(name)                                                                                 \
	{                                                                                          \
		name, "NULL", MERGE_COUNT, 0, true                                                 \
	} /* NULL: not known */
#define REAL(name)                                                                                 \
	{                                                                                          \
		name, "0", MERGE_REAL, 0, false                                                    \
	}
#define PART(name)                                                                                 \
	{                                                                                          \
		name, "NULL", MERGE_REAL, 0, true                                                  \
	}
#define TIME(name)                                                                                 \
	{                                                                                          \
		name, NULL, MERGE_TIME, 0, false                                                   \
	}
#define TIME_0(name)                                                                               \
	{                                                                                          \
		name, "0", MERGE_TIME_OR_0, 0, false                                               \
	}
#define SESSION_(key)                                                                              \
	{                                                                                          \
		key, NULL, MERGE_SESSION, 0, false                                                 \
	}

static const struct merge_column collectives[] = {MERGE_NODE_COLUMN, TIME("timestamp"), PID("pid"),
	PID("tid"), INT("comm"), {"seq", "NULL", MERGE_INT, 0, true},
	{"op", NULL, MERGE_TEXT, 32, false}, SOME("rank"), SOME("nranks"), INT("device"),
	COUNT("bytes"), COUNT("count"), SOME("datatype"), SOME("reduce_op"), SOME("root"),
	SOME("peer"), INT("stream"), COUNT("duration"), SOME("wait_ns"), INT("ret_code"),
	SOME("span_ns")};

static const struct merge_column snapshots[] = {MERGE_NODE_COLUMN, TIME("timestamp"),
	REAL("cpu_pct"), REAL("mem_pct"), COUNT("mem_avail"), COUNT("swap_mb"), REAL("load_avg"),
	{"mem_total", "(SELECT max(mem_total) FROM sessions)", MERGE_COUNT, 0, false},
	PART("load5"), PART("major_faults"), PART("psi_cpu"), PART("psi_memory"), PART("psi_io"),
	PART("busiest_cpu_pct"), SOME("busiest_cpu"), SOME("swap_total"), PART("steal_pct"),
	PART("iowait_pct")};

#define FIELD(field, meaning) SOME(#field),
static const struct merge_column gpu_samples[] = {MERGE_NODE_COLUMN, TIME("timestamp"),
	COUNT("gpu"), {"uuid", "''", MERGE_TEXT, GPU_UUID_LEN - 1, false},
	{"name", "''", MERGE_TEXT, GPU_NAME_LEN - 1, false},
	{"pci", "''", MERGE_TEXT, GPU_PCI_LEN - 1, false}, GPU_FIELDS(FIELD)};

static const struct merge_column container_samples[] = {
	MERGE_NODE_COLUMN, TIME("timestamp"), INT("cgroup_id"), CONTAINER_FIELDS(FIELD)};

#define LEDGER_NUMBER(field, max)       {#field, "0", MERGE_COUNT, max, false},
#define LEDGER_LINE(NAME, column, what) COUNT(column),
static const struct merge_column ledger[] = {MERGE_NODE_COLUMN, TIME("timestamp"),
	COUNT("duration"), {"comm", "''", MERGE_TEXT, COMM_LEN - 1, false},
	LEDGER_NUMBERS(LEDGER_NUMBER)
		WIRE_LEDGER_LINES(LEDGER_LINE){"stay_line", "''", MERGE_TEXT, 31, false},
	{"waker_comm", "''", MERGE_TEXT, COMM_LEN - 1, false}, INT("stack_hash")};

static const struct merge_column overhead[] = {MERGE_NODE_COLUMN, TIME("timestamp"),
	REAL("overhead"), REAL("budget"), REAL("hit_ns"), COUNT("launch_weight"),
	REAL("agent_cpu_pct"), COUNT("agent_rss_bytes"), COUNT("db_bytes"), PART("overhead_low"),
	PART("overhead_high"), SOME("pairs"), PART("launch_watched"), PART("launch_error")};

static const struct merge_column names[] = {
	MERGE_NODE_COLUMN, PID("pid"), {"name", NULL, MERGE_TEXT, 255, false}, TIME_0("seen_at")};

static const struct merge_column processes[] = {MERGE_NODE_COLUMN, PID("pid"), COUNT("start_time"),
	TEXT("comm"), TEXT("cmdline"), TIME_0("first_seen"), TIME_0("last_seen"), SOME("rank"),
	SOME("local_rank"), SOME("world_size"), TEXT("launcher"), TEXT("job"), TEXT("container_id"),
	TEXT("pod"), TEXT("namespace"), TEXT("pod_uid"), TEXT("cgroup_path"), TEXT("exe"),
	TEXT("script"), SOME("cpus")};

static const struct merge_column coverage[] = {MERGE_NODE_COLUMN, SESSION_("session_id"),
	PID("pid"), COUNT("start_time"), TEXT("layer"), TEXT("state"), TEXT("detail"),
	TIME_0("since")};

static const struct merge_column call_gaps[] = {MERGE_NODE_COLUMN, SESSION_("session_id"),
	TIME("timestamp"), COUNT("duration"), PID("pid"), COUNT("start_time"), TEXT("comm"),
	TEXT("file"), TEXT("reason")};

static const struct merge_column groups[] = {MERGE_NODE_COLUMN, INT("cgroup_id"),
	TEXT("container_id"), TEXT("cgroup_path"), TEXT("pod_name"), TEXT("namespace")};

static const struct merge_column schedstat[] = {MERGE_NODE_COLUMN, INT("cgroup_id"),
	COUNT("p99_off_cpu"), COUNT("total_off_cpu"), COUNT("event_count"), TIME_0("window_start"),
	TIME_0("window_end")};

static const struct merge_column annotations[] = {MERGE_NODE_COLUMN, TIME("timestamp"),
	{"labels", "'{}'", MERGE_JSON, 16 << 10, false}, PID("pid"), COUNT("start_time"),
	TIME_0("span_start"), TIME_0("span_end"), PID("peer_uid"), PID("peer_gid"),
	PID("peer_pid")};

static const struct merge_column kernels[] = {MERGE_NODE_COLUMN, PID("pid"), INT("function"),
	TIME_0("since"), {"name", "''", MERGE_TEXT, 4096, false}, TEXT("origin"), COUNT("launches"),
	TIME_0("first_launch")};

static const struct merge_column texts[] = {
	MERGE_NODE_COLUMN, INT("hash"), {"name", "''", MERGE_TEXT, 255, false}};

static const struct merge_column losses[] = {
	MERGE_NODE_COLUMN, SESSION_("session_id"), COUNT("source"), TEXT("reason"), COUNT("count")};

static const struct merge_column cpu_losses[] = {MERGE_NODE_COLUMN, SESSION_("session_id"),
	COUNT("source"), TEXT("reason"), COUNT("cpu"), COUNT("count")};

static const struct merge_column accounting[] = {MERGE_NODE_COLUMN, SESSION_("session_id"),
	COUNT("source"), COUNT("hits"), COUNT("stored"), COUNT("aggregated"), COUNT("lost")};

/* A session belongs to one node: its rows need not say it. */
static const struct merge_column pruned[] = {MERGE_NODE_COLUMN, SESSION_("session_id"),
	TEXT("table_name"), COUNT("rows"), TIME_0("oldest_ns"), TIME_0("newest_ns")};

struct merge_table {
	const char *name;
	const struct merge_column *columns;
	size_t count;
	const char *settle; /* with the same parameters; NULL: nothing */
	bool without_node;  /* the output's table has no such column */
};

#define TABLE(name, columns, settle)                                                               \
	{                                                                                          \
		name, columns, ARRAY_SIZE(columns), settle, false                                  \
	}

static const struct merge_table collective_table = TABLE("collectives", collectives, NULL);

static const struct merge_table tables[] = {
	TABLE("system_snapshots", snapshots, NULL),
	TABLE("gpu_samples", gpu_samples, NULL),
	TABLE("container_samples", container_samples, NULL),
	TABLE("ledger", ledger, NULL),
	TABLE("overhead", overhead, NULL),
	TABLE("process_names", names,
		"UPDATE process_names SET name = ?3, seen_at = ?4 WHERE node = ?1 AND pid = ?2"
		" AND seen_at < ?4"),
	TABLE("processes", processes,
		"UPDATE processes SET first_seen = min(first_seen, ?6), last_seen = max(last_seen,"
		" ?7) WHERE node = ?1 AND pid = ?2 AND start_time = ?3"),
	TABLE("coverage", coverage, NULL),
	TABLE("call_gaps", call_gaps, NULL),
	TABLE("cgroup_metadata", groups,
		"UPDATE cgroup_metadata SET container_id = coalesce(nullif(container_id, ''), ?3),"
		" pod_name = coalesce(nullif(pod_name, ''), ?5), namespace ="
		" coalesce(nullif(namespace, ''), ?6) WHERE node = ?1 AND cgroup_id = ?2"),
	TABLE("cgroup_schedstat", schedstat, NULL),
	TABLE("annotations", annotations, NULL),
	TABLE("kernels", kernels,
		"UPDATE kernels SET launches = max(launches, ?7) WHERE node = ?1 AND pid = ?2 AND"
		" function = ?3 AND since = ?4"),
	{"names", texts, ARRAY_SIZE(texts), NULL, true},
	TABLE("losses", losses,
		"UPDATE losses SET count = max(count, ?5) WHERE node = ?1 AND session_id = ?2"
		" AND source = ?3 AND reason = ?4"),
	TABLE("losses_by_cpu", cpu_losses,
		"UPDATE losses_by_cpu SET count = max(count, ?6) WHERE node = ?1 AND"
		" session_id = ?2 AND source = ?3 AND reason = ?4 AND cpu = ?5"),
	TABLE("accounting", accounting,
		"UPDATE accounting SET hits = ?4, stored = ?5, aggregated = ?6, lost = ?7"
		" WHERE node = ?1 AND session_id = ?2 AND source = ?3 AND hits < ?4"),
	{"pruned", pruned, ARRAY_SIZE(pruned), NULL, true},
};

static int copy_row(struct merge *m, const struct merge_table *t, sql_stmt *put, sql_stmt *settle,
	const struct sql_value *values, struct errinfo *reterr)
{
	struct merge_tally *tally = &m->source.report.others;
	int r = sql_put(put, values + t->without_node, t->count - t->without_node, reterr);

	if (r < 0)
		return r;
	if (sql_changes(m->out)) {
		tally->copied++;
		return 0;
	}
	tally->duplicates++;
	return settle ? sql_put(settle, values, (size_t)sql_parameters(settle), reterr) : 0;
}

static int copy_table(struct merge *m, const struct merge_table *t, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL, *put = NULL, *settle = NULL;
	struct sql_value values[MERGE_COLUMNS_MAX];
	uint64_t unplaced = m->source.report.unplaced;
	struct merge_node *node;
	int r = merge_select(m, t->name, t->columns, t->count, &get, reterr);

	if (r < 0 || !get)
		return r;
	r = merge_insert(m, t->name, t->columns + t->without_node, t->count - t->without_node, "",
		0, &put, reterr);
	if (r == 0 && t->settle)
		r = sql_prepare(m->out, t->settle, &settle, reterr);
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(m, t->columns, t->count, get, values, &node, reterr);
		if (r > 0)
			r = copy_row(m, t, put, settle, values, reterr);
	}
	if (t->without_node)
		m->source.report.unplaced = unplaced;
	return r;
}

int merge_collectives(struct merge *m, struct errinfo *reterr)
{
	return copy_table(m, &collective_table, reterr);
}

int merge_other_tables(struct merge *m, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(tables); i++)
		r = copy_table(m, &tables[i], reterr);
	return r;
}
