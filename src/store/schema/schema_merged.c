/* SPDX-License-Identifier: Apache-2.0 */
/* schema_merged.c - the tables of a merged file: ours (schema.c) with the node in every key, so
 * that process ids, control groups and moments of different nodes never meet.
 *
 * Invariants:
 *  1. Every column of a node's own file is there under its name; `node` is there too.
 *  2. events.row orders the rows by node: it is the node's number << MERGED_SEQ_BITS | seq, so that
 *     (node, seq) is unique without an index of its own (which would cost a third of the rate).
 *  3. Indexes of events are made when all rows are in. */
#include <stdio.h>

#include "store/schema/schema.h"

#define MERGED_AGGREGATE                                                                           \
	"(bucket INTEGER NOT NULL, source INTEGER NOT NULL, op INTEGER NOT NULL,"                  \
	" pid INTEGER NOT NULL DEFAULT 0, count INTEGER NOT NULL DEFAULT 0,"                       \
	" stored INTEGER NOT NULL DEFAULT 0, sum_dur INTEGER NOT NULL DEFAULT 0,"                  \
	" min_dur INTEGER NOT NULL DEFAULT 0, max_dur INTEGER NOT NULL DEFAULT 0,"                 \
	" sum_arg0 INTEGER NOT NULL DEFAULT 0, nested INTEGER NOT NULL DEFAULT 0,"                 \
	" sketch BLOB, node TEXT NOT NULL DEFAULT '',"                                             \
	" PRIMARY KEY (bucket, source, op, pid, nested, node));"

static const char *const tables[] = {
	"DROP TABLE events;CREATE TABLE events ( id TEXT GENERATED ALWAYS AS (node || ':' || seq) "
	"VIRTUAL, timestamp INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER NOT NULL, source "
	"INTEGER NOT NULL, op INTEGER NOT NULL, duration INTEGER NOT NULL, gpu_id INTEGER NOT NULL "
	"DEFAULT 0, arg0 INTEGER NOT NULL DEFAULT 0, arg1 INTEGER NOT NULL DEFAULT 0, ret_code "
	"INTEGER NOT NULL DEFAULT 0, stack_hash INTEGER NOT NULL DEFAULT 0, node TEXT NOT NULL "
	"DEFAULT '', rank INTEGER, local_rank INTEGER, world_size INTEGER, stack_ips TEXT "
	"GENERATED ALWAYS AS ('') VIRTUAL, cgroup_id INTEGER NOT NULL DEFAULT 0, comm TEXT NOT "
	"NULL DEFAULT '', seq INTEGER NOT NULL, flags INTEGER NOT NULL DEFAULT 0, weight INTEGER "
	"NOT NULL DEFAULT 1, stream INTEGER NOT NULL DEFAULT 0, wait_ns INTEGER NOT NULL DEFAULT "
	"0, peer_pid INTEGER NOT NULL DEFAULT 0, peer_comm TEXT NOT NULL DEFAULT '', dev INTEGER "
	"NOT NULL DEFAULT 0, cpu INTEGER NOT NULL DEFAULT 0, detail TEXT NOT NULL DEFAULT '', row "
	"INTEGER PRIMARY KEY);",

	"DROP TABLE process_names;"
	"CREATE TABLE process_names (pid INTEGER NOT NULL, name TEXT NOT NULL,"
	" seen_at INTEGER NOT NULL DEFAULT 0, node TEXT NOT NULL DEFAULT '',"
	" PRIMARY KEY (pid, node));",

	"DROP TABLE event_aggregates; DROP TABLE event_aggregates_5s;"
	"CREATE TABLE event_aggregates " MERGED_AGGREGATE
	"CREATE TABLE event_aggregates_5s " MERGED_AGGREGATE,

	"DROP TABLE cgroup_metadata; DROP TABLE cgroup_schedstat;"
	"CREATE TABLE cgroup_metadata (cgroup_id INTEGER NOT NULL,"
	" container_id TEXT NOT NULL DEFAULT '', cgroup_path TEXT NOT NULL DEFAULT '',"
	" pod_name TEXT NOT NULL DEFAULT '', namespace TEXT NOT NULL DEFAULT '',"
	" node TEXT NOT NULL DEFAULT '', PRIMARY KEY (cgroup_id, node));"
	"CREATE TABLE cgroup_schedstat (cgroup_id INTEGER NOT NULL,"
	" p99_off_cpu INTEGER NOT NULL, total_off_cpu INTEGER NOT NULL,"
	" event_count INTEGER NOT NULL, window_start INTEGER NOT NULL DEFAULT 0,"
	" window_end INTEGER NOT NULL DEFAULT 0, node TEXT NOT NULL DEFAULT '',"
	" PRIMARY KEY (cgroup_id, window_end, node));",

	"ALTER TABLE annotations ADD COLUMN node TEXT NOT NULL DEFAULT '';"
	"CREATE UNIQUE INDEX idx_annotations_once ON annotations"
	"(timestamp, node, pid, start_time, span_start, span_end, labels);"
	"CREATE UNIQUE INDEX idx_collectives_once ON collectives"
	"(node, pid, tid, timestamp, op);"
	"CREATE UNIQUE INDEX idx_ledger_once ON ledger(node, pid, tid, timestamp, mark);"
	"CREATE UNIQUE INDEX idx_sessions_once ON sessions(node, started_at);",

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
	" node number << 44 | seq');",
};

static const char *const indexes[] = {
	"CREATE INDEX idx_events_timestamp ON events(timestamp);",
	"CREATE INDEX idx_events_pid ON events(pid);",
};

int schema_create_merged(sql_db *db, struct errinfo *reterr)
{
	int r = schema_create(db, reterr);

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(tables); i++)
		r = sql_exec(db, tables[i], reterr);
	return r;
}

int schema_finish_merged(sql_db *db, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(indexes); i++)
		r = sql_exec(db, indexes[i], reterr);
	return r;
}

int schema_is_merged(sql_db *db, struct errinfo *reterr)
{
	return schema_has_table(db, "node_clocks", reterr);
}
