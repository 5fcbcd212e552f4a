/* SPDX-License-Identifier: Apache-2.0 */
/* published_fixture.h - databases as the published agent makes them, in miniature. */
#pragma once

#define PUBLISHED_REST                                                                             \
	"CREATE TABLE schema_info(key TEXT PRIMARY KEY, value TEXT NOT NULL);"                     \
	"CREATE TABLE system_snapshots(id INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL UNIQUE," \
	" cpu_pct REAL NOT NULL, mem_pct REAL NOT NULL, mem_avail INTEGER NOT NULL,"               \
	" swap_mb INTEGER NOT NULL, load_avg REAL NOT NULL);"                                      \
	"CREATE TABLE process_names(pid INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL,"         \
	" seen_at INTEGER NOT NULL DEFAULT 0);"                                                    \
	"CREATE TABLE causal_chains(id TEXT PRIMARY KEY, detected_at INTEGER NOT NULL,"            \
	" severity TEXT NOT NULL, summary TEXT NOT NULL, root_cause TEXT NOT NULL,"                \
	" explanation TEXT NOT NULL, recommendations TEXT NOT NULL DEFAULT '');"

/* 0.8: integer ids, no node, no comm. */
#define PUBLISHED_8                                                                                \
	PUBLISHED_REST                                                                             \
	"CREATE TABLE events(id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp INTEGER NOT NULL,"    \
	" pid INTEGER NOT NULL, tid INTEGER NOT NULL, source INTEGER NOT NULL, op INTEGER NOT "    \
	"NULL,"                                                                                    \
	" duration INTEGER NOT NULL, gpu_id INTEGER NOT NULL DEFAULT 0, arg0 INTEGER NOT NULL"     \
	" DEFAULT 0, arg1 INTEGER NOT NULL DEFAULT 0, ret_code INTEGER NOT NULL DEFAULT 0,"        \
	" stack_hash INTEGER NOT NULL DEFAULT 0);"                                                 \
	"CREATE INDEX idx_events_timestamp ON events(timestamp);"                                  \
	"CREATE TABLE sessions(id INTEGER PRIMARY KEY, started_at INTEGER NOT NULL,"               \
	" mem_total INTEGER NOT NULL DEFAULT 0);"                                                  \
	"INSERT INTO schema_info VALUES ('version', '0.8');"

/* 0.10: text ids, node, comm. */
#define PUBLISHED_10                                                                               \
	PUBLISHED_REST                                                                             \
	"CREATE TABLE events(id TEXT PRIMARY KEY, timestamp INTEGER NOT NULL, pid INTEGER NOT "    \
	"NULL,"                                                                                    \
	" tid INTEGER NOT NULL, source INTEGER NOT NULL, op INTEGER NOT NULL, duration INTEGER"    \
	" NOT NULL, gpu_id INTEGER NOT NULL DEFAULT 0, arg0 INTEGER NOT NULL DEFAULT 0,"           \
	" arg1 INTEGER NOT NULL DEFAULT 0, ret_code INTEGER NOT NULL DEFAULT 0, stack_hash "       \
	"INTEGER"                                                                                  \
	" NOT NULL DEFAULT 0, node TEXT NOT NULL DEFAULT '', comm TEXT NOT NULL DEFAULT '');"      \
	"CREATE INDEX idx_events_timestamp ON events(timestamp);"                                  \
	"CREATE TABLE sessions(id INTEGER PRIMARY KEY, started_at INTEGER NOT NULL,"               \
	" mem_total INTEGER NOT NULL DEFAULT 0, node TEXT NOT NULL DEFAULT '');"                   \
	"INSERT INTO schema_info VALUES ('version', '0.10'); PRAGMA user_version = 10;"
