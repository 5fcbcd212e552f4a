/* SPDX-License-Identifier: Apache-2.0 */
/* bench_export.c - the rate at which `ingero export` writes a trace, as JSON and as protobuf, as a
 * ratio to SQLite reading the same columns of the same rows in the same order and throwing them
 * away; by time on the CPU.
 *
 *   bench_export [ROWS [ROUNDS [FOLDER]]] */
#include <sqlite3.h>
#include <sys/resource.h>

#include "bench/recording.h"
#include "export/export.h"

static double rate_since(double begin, uint64_t rows)
{
	return (double)rows / (recording_seconds() - begin);
}

static double run_ours(const char *path, const char *out, bool proto, uint64_t rows)
{
	struct perfetto_options options = {.proto = proto};
	_cleanup_(output_done) struct output output = OUTPUT_INIT;
	struct nodedb_filter all = {0};
	struct perfetto_stats stats;
	struct errinfo err = {0};
	double begin = recording_seconds();

	recording_check(output_open(&output, out, &err), &err);
	recording_check(perfetto_export(path, &all, &options, &output, &stats, &err), &err);
	recording_check(output_commit(&output, &err), &err);
	if (stats.stream.events != rows)
		exit(1);
	return rate_since(begin, rows);
}

static double run_bare(const char *path, uint64_t rows)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	double begin = recording_seconds();
	int64_t sum = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
		sqlite3_prepare_v2(db,
			"SELECT timestamp, duration, pid, tid, source, op, seq, gpu_id, arg0, arg1,"
			" ret_code, stack_hash, cgroup_id, comm, flags, weight, stream, wait_ns,"
			" peer_pid, peer_comm, dev, cpu, rank, local_rank, world_size, node"
			" FROM events",
			-1, &stmt, NULL) != SQLITE_OK) {
		fprintf(stderr, "bench_export: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
	while (sqlite3_step(stmt) == SQLITE_ROW)
		sum += sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return sum ? rate_since(begin, rows) : 0;
}

int main(int argc, char **argv)
{
	uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	int rounds = argc > 2 ? atoi(argv[2]) : 3;
	const char *folder = argc > 3 ? argv[3] : "/tmp";
	double json = 0, proto = 0, bare = 0;
	char path[256], out[256];
	struct rusage usage;

	snprintf(path, sizeof(path), "%s/bench_export-%ld.db", folder, (long)getpid());
	snprintf(out, sizeof(out), "%s/bench_export-%ld.out", folder, (long)getpid());
	recording_make(path, "gpu-node-01", rows);
	for (int i = 0; i < rounds; i++) {
		double j = run_ours(path, out, false, rows), p = run_ours(path, out, true, rows);
		double b = run_bare(path, rows);

		printf("round %d: JSON %.0f, protobuf %.0f, bare SELECT %.0f events/s\n", i + 1, j,
			p, b);
		json = MAX(json, j);
		proto = MAX(proto, p);
		bare = MAX(bare, b);
	}
	recording_remove(path);
	unlink(out);
	getrusage(RUSAGE_SELF, &usage);
	printf("export_json_ratio %.2f (%.0f events/s, bare SELECT %.0f; budget 300000)\n",
		json / bare, json, bare);
	printf("export_proto_ratio %.2f (%.0f events/s)\n", proto / bare, proto);
	printf("export_peak_mb %ld\n", usage.ru_maxrss / 1024);
	return 0;
}
