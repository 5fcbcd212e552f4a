/* SPDX-License-Identifier: Apache-2.0 */
/* bench_store.c - the rate at which the store's whole path (queue, thread, all columns, two
 * indexes, transactions of 5000) takes events, as a ratio to bare prepared inserts into a table of
 * 15 columns with the same two indexes. Also printed: bare without indexes, and bare with the id
 * stored as TEXT PRIMARY KEY, the published way.
 *
 * Bare calls SQLite directly (hence the include, the only one outside src/sql/) with all settings
 * ours has. Ours makes its events on one thread and writes them on another, bare does both on one:
 * on an idle second core this favours ours by the cost of making an event. All kinds take turns in
 * one run, so that a noisy machine disturbs them alike; the median of the rounds counts.
 *
 *   bench_store [ROWS [ROUNDS [FOLDER]]] */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/write/writer.h"
#include "recording.h"

#define BATCH      5000
#define ROUNDS_MAX 32

#define BARE_TABLE                                                                                 \
	"CREATE TABLE events (seq INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, pid INTEGER "   \
	"NOT"                                                                                      \
	" NULL, tid INTEGER NOT NULL, source INTEGER NOT NULL, op INTEGER NOT NULL, duration"      \
	" INTEGER NOT NULL, gpu_id INTEGER NOT NULL, arg0 INTEGER NOT NULL, arg1 INTEGER NOT "     \
	"NULL,"                                                                                    \
	" ret_code INTEGER NOT NULL, stack_hash INTEGER NOT NULL, node TEXT NOT NULL, cgroup_id"   \
	" INTEGER NOT NULL, comm TEXT NOT NULL);"
#define TEXT_TABLE                                                                                 \
	"CREATE TABLE events (id TEXT PRIMARY KEY, timestamp INTEGER NOT NULL, pid INTEGER NOT"    \
	" NULL, tid INTEGER NOT NULL, source INTEGER NOT NULL, op INTEGER NOT NULL, duration"      \
	" INTEGER NOT NULL, gpu_id INTEGER NOT NULL, arg0 INTEGER NOT NULL, arg1 INTEGER NOT "     \
	"NULL,"                                                                                    \
	" ret_code INTEGER NOT NULL, stack_hash INTEGER NOT NULL, node TEXT NOT NULL, cgroup_id"   \
	" INTEGER NOT NULL, comm TEXT NOT NULL);"
#define INDEXES                                                                                    \
	"CREATE INDEX idx_events_timestamp ON events(timestamp);"                                  \
	"CREATE INDEX idx_events_pid ON events(pid);"

#define SETTINGS                                                                                   \
	"PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"      \
	"PRAGMA secure_delete=OFF; PRAGMA wal_autocheckpoint=4096; PRAGMA cache_size=-8192;"

static void remove_db(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		char name[512];

		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

static double rate_since(mono_time begin, uint64_t rows)
{
	return (double)rows * 1e9 / (double)(mono_now().ns - begin.ns);
}

static double run_ours(const char *path, uint64_t rows)
{
	struct session session = {.started = wall_now()};
	struct store_writer *w = NULL;
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	mono_time begin;

	recording_check(nodedb_open(path, "gpu-node-01", &db, &err), &err);
	recording_check(nodedb_session_begin(db, &session, &err), &err);
	begin = mono_now();
	recording_check(store_writer_start(db, session.id, NULL, &w, &err), &err);
	for (uint64_t n = 0; n < rows; n++) {
		struct event e = recording_event(n);

		while (!store_writer_push(w, &e)) /* a tracer would count a loss; here all count */
			sched_yield();
	}
	recording_check(store_writer_stop(w, NULL, NULL, wall_now(), &err), &err);
	return rate_since(begin, rows);
}

static void check_sqlite(sqlite3 *db, int code)
{
	if (code == SQLITE_OK || code == SQLITE_DONE)
		return;
	fprintf(stderr, "bench_store: bare: %s\n", db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
	exit(1);
}

static void bind_bare(sqlite3 *db, sqlite3_stmt *put, const struct event *e)
{
	const int64_t numbers[] = {e->start.ns, e->pid, e->tid, e->source, e->op,
		(int64_t)e->dur_ns, e->device, (int64_t)e->arg0, (int64_t)e->arg1, e->ret,
		(int64_t)e->stack_hash};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		check_sqlite(db, sqlite3_bind_int64(put, (int)i + 2, numbers[i]));
	check_sqlite(db, sqlite3_bind_text(put, 13, "gpu-node-01", 11, SQLITE_STATIC));
	check_sqlite(db, sqlite3_bind_int64(put, 14, (int64_t)e->cgroup_id));
	check_sqlite(db, sqlite3_bind_text(put, 15, e->comm, -1, SQLITE_STATIC));
}

/* SQLite's own functions, without our border, and with every setting ours has. */
static double run_bare(const char *path, const char *schema, bool text_id, uint64_t rows)
{
	sqlite3_stmt *put = NULL;
	sqlite3 *db = NULL;
	mono_time begin;

	check_sqlite(db,
		sqlite3_open_v2(path, &db,
			SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL));
	check_sqlite(db, sqlite3_exec(db, SETTINGS, NULL, NULL, NULL));
	check_sqlite(db, sqlite3_exec(db, schema, NULL, NULL, NULL));
	check_sqlite(db,
		sqlite3_prepare_v2(db, "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
			-1, &put, NULL));
	begin = mono_now();
	for (uint64_t n = 0; n < rows; n++) {
		struct event e = recording_event(n);
		char id[48];

		if (n % BATCH == 0)
			check_sqlite(db,
				sqlite3_exec(db, n ? "COMMIT; BEGIN" : "BEGIN", NULL, NULL, NULL));
		if (text_id) {
			snprintf(id, sizeof(id), "gpu-node-01:%" PRIu64, n + 1);
			check_sqlite(db, sqlite3_bind_text(put, 1, id, -1, SQLITE_STATIC));
		} else {
			check_sqlite(db, sqlite3_bind_int64(put, 1, (int64_t)n + 1));
		}
		bind_bare(db, put, &e);
		check_sqlite(db, sqlite3_step(put));
		check_sqlite(db, sqlite3_reset(put));
	}
	check_sqlite(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
	check_sqlite(db, sqlite3_finalize(put));
	check_sqlite(
		db, sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL));
	check_sqlite(NULL, sqlite3_close(db));
	return rate_since(begin, rows);
}

/* What a push costs its caller while the queue has room. */
static double push_ns(const char *path)
{
	struct session session = {.started = wall_now()};
	struct store_writer *w = NULL;
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	const struct event e = recording_event(1);
	const uint64_t count = 30000; /* fewer than the queue holds */
	mono_time begin;
	double ns;

	recording_check(nodedb_open(path, "gpu-node-01", &db, &err), &err);
	recording_check(nodedb_session_begin(db, &session, &err), &err);
	recording_check(store_writer_start(db, session.id, NULL, &w, &err), &err);
	begin = mono_now();
	for (uint64_t n = 0; n < count; n++)
		if (!store_writer_push(w, &e))
			recording_check(-ENOBUFS, &err);
	ns = (double)(mono_now().ns - begin.ns) / (double)count;
	recording_check(store_writer_stop(w, NULL, NULL, wall_now(), &err), &err);
	return ns;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 600000;
	size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;
	double ours[ROUNDS_MAX], bare[ROUNDS_MAX], plain[ROUNDS_MAX], text[ROUNDS_MAX];
	char path[256];

	if (!rows || !rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_store [ROWS [ROUNDS [FOLDER]]]\n");
		return 64;
	}
	snprintf(path, sizeof(path), "%s/bench_store-%ld.db", argc > 3 ? argv[3] : "/tmp",
		(long)getpid());
	for (size_t i = 0; i < rounds; i++) {
		ours[i] = run_ours(path, rows);
		remove_db(path);
		bare[i] = run_bare(path, BARE_TABLE INDEXES, false, rows);
		remove_db(path);
		plain[i] = run_bare(path, BARE_TABLE, false, rows);
		remove_db(path);
		text[i] = run_bare(path, TEXT_TABLE INDEXES, true, rows);
		remove_db(path);
		printf("round %zu: ours %.0f, bare %.0f, bare without indexes %.0f, bare with text "
		       "id "
		       "%.0f rows/s\n",
			i + 1, ours[i], bare[i], plain[i], text[i]);
	}
	printf("store_push_ns %.0f\n", push_ns(path));
	remove_db(path);
	printf("store_text_id_ratio %.2f (bare with a stored text id, to bare)\n",
		median(text, rounds) / median(bare, rounds));
	printf("store_index_ratio %.2f (bare with two indexes, to none)\n",
		median(bare, rounds) / median(plain, rounds));
	printf("store_rate_ratio %.2f (ours %.0f rows/s, bare %.0f rows/s)\n",
		median(ours, rounds) / median(bare, rounds), median(ours, rounds),
		median(bare, rounds));
	return 0;
}
