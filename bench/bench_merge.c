/* SPDX-License-Identifier: Apache-2.0 */
/* bench_merge.c - the rate at which `ingero merge` takes the events of two nodes, as a ratio to
 * what SQLite does by itself with the same two files: INSERT … SELECT from attached databases,
 * without a check of any value, into a table with the same indexes, made at the end too; by time on
 * the CPU.
 *
 *   bench_merge [ROWS [ROUNDS [FOLDER]]]    ROWS of each node */
#include <sqlite3.h>
#include <sys/resource.h>

#include "store/merge/nodedb_merge.h"
#include "bench/recording.h"

static void check_sqlite(sqlite3 *db, int code)
{
	if (code == SQLITE_OK)
		return;
	fprintf(stderr, "bench_merge: bare: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static double seconds_since(double begin)
{
	return recording_seconds() - begin;
}

static double run_ours(const char *const paths[2], const char *out)
{
	struct merge_options options = {.sources = paths, .source_count = 2, .output = out};
	struct merge_result result = {0};
	struct errinfo err = {0};
	double begin = recording_seconds();
	double rate;

	recording_check(nodedb_merge(&options, &result, &err), &err);
	rate = (double)result.total.events.copied / seconds_since(begin);
	merge_result_done(&result);
	return rate;
}

static double run_bare(const char *const paths[2], const char *out, uint64_t rows)
{
	sqlite3 *db = NULL;
	double begin = recording_seconds();
	char sql[2048];

	check_sqlite(db, sqlite3_open(out, &db));
	snprintf(sql, sizeof(sql),
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"
		"ATTACH '%s' AS a; ATTACH '%s' AS b; BEGIN;"
		"CREATE TABLE events AS SELECT * FROM a.events LIMIT 0;"
		"INSERT INTO events SELECT * FROM a.events;"
		"INSERT INTO events SELECT * FROM b.events;"
		"CREATE INDEX t ON events(timestamp); CREATE INDEX p ON events(pid); COMMIT;",
		paths[0], paths[1]);
	check_sqlite(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
	sqlite3_close(db);
	return (double)(2 * rows) / seconds_since(begin);
}

int main(int argc, char **argv)
{
	uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	int rounds = argc > 2 ? atoi(argv[2]) : 3;
	const char *folder = argc > 3 ? argv[3] : "/tmp";
	char a[256], b[256], out[256];
	double ours = 0, bare = 0;
	struct rusage usage;

	snprintf(a, sizeof(a), "%s/bench_merge-%ld-a.db", folder, (long)getpid());
	snprintf(b, sizeof(b), "%s/bench_merge-%ld-b.db", folder, (long)getpid());
	snprintf(out, sizeof(out), "%s/bench_merge-%ld-out.db", folder, (long)getpid());
	recording_make(a, "gpu-node-01", rows);
	recording_make(b, "gpu-node-02", rows);
	for (int i = 0; i < rounds; i++) {
		const char *const paths[2] = {a, b};
		double o = run_ours(paths, out), r;

		recording_remove(out);
		r = run_bare(paths, out, rows);
		recording_remove(out);
		printf("round %d: merge %.0f, SQLite alone %.0f events/s\n", i + 1, o, r);
		ours = MAX(ours, o);
		bare = MAX(bare, r);
	}
	recording_remove(a);
	recording_remove(b);
	getrusage(RUSAGE_SELF, &usage);
	printf("merge_rate_ratio %.2f (%.0f events/s, SQLite alone %.0f; budget 300000)\n",
		ours / bare, ours, bare);
	printf("merge_peak_mb %ld\n", usage.ru_maxrss / 1024);
	return 0;
}
