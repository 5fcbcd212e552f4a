/* SPDX-License-Identifier: Apache-2.0 */
/* bench_explain.c - how long `ingero explain` takes for a recording of ten million stored events,
 * and how much memory, as a ratio to SQLite's bare scan of the columns that decide about a row.
 *
 * The recording is made once, at FILE, through the store's own functions: ten minutes of eight
 * training processes. A step has 60 launches with 20 driver launches inside, 8 copies, an
 * allocation and a free, a wait of 20 ms and 8 scheduler switches; in one process every second wait
 * takes four times as long for half a minute, because of a neighbour. Bare calls SQLite directly
 * (as in bench_store.c), one thread. Runs take turns; the least time counts, because the machine's
 * other work only adds to it.
 *
 *   bench_explain INGERO FILE [EVENTS [ROUNDS]] */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/nodedb.h"
#include "base/macros.h"

#define PROCESSES   8
#define STEP_EVENTS 99
#define STEP_NS     ((int64_t)(50 * NS_PER_MS))
#define START_NS    ((int64_t)1700000000 * (int64_t)NS_PER_S)
#define BATCH_STEPS 50
#define SLOW_PID    4003
#define OPS_MAX     16

static void check(int r, const struct errinfo *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_explain: %s\n", err->text[0] ? err->text : strerror(-r));
	exit(1);
}

struct maker {
	struct nodedb *db;
	struct errinfo err;
	uint64_t events, stored;
	uint64_t mix;
	struct aggregate ops[PROCESSES][OPS_MAX]; /* of the bucket being filled */
};

static uint64_t draw(struct maker *m, uint64_t below)
{
	m->mix = m->mix * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (m->mix >> 33) % below;
}

static void count_call(struct maker *m, const struct event *e)
{
	for (int i = 0; i < OPS_MAX; i++) {
		struct aggregate *a = &m->ops[e->pid % PROCESSES][i];

		if (a->sketch.count && (a->source != e->source || a->op != e->op))
			continue;
		a->bucket.ns =
			e->start.ns / (int64_t)NODEDB_BUCKET_FINE * (int64_t)NODEDB_BUCKET_FINE;
		a->pid = e->pid;
		a->source = e->source;
		a->op = e->op;
		a->flags = (uint8_t)(e->flags & WIRE_NESTED);
		a->stored++;
		sketch_add(&a->sketch, e->dur_ns, 1);
		return;
	}
}

static void put(struct maker *m, struct event e)
{
	snprintf(e.comm, sizeof(e.comm), "python3");
	e.tid = e.pid;
	e.weight = 1;
	e.stream = 0x55550000;
	e.cgroup_id = 7261;
	e.cpu = (uint32_t)draw(m, 64);
	if (m->stored == m->events)
		return;
	m->stored++;
	check(nodedb_put_event(m->db, &e, &m->err), &m->err);
	if (e.source == SOURCE_CUDA || e.source == SOURCE_DRIVER)
		count_call(m, &e);
}

static void flush_bucket(struct maker *m)
{
	for (int p = 0; p < PROCESSES; p++)
		for (int i = 0; i < OPS_MAX; i++)
			if (m->ops[p][i].sketch.count)
				check(nodedb_add_aggregate(m->db, false, &m->ops[p][i], &m->err),
					&m->err);
	memset(m->ops, 0, sizeof(m->ops));
}

static void make_call(struct maker *m, uint32_t pid, unsigned source, unsigned op, unsigned flags,
	int64_t start_ns, uint64_t dur_ns)
{
	put(m, (struct event){.pid = pid,
		       .source = (uint8_t)source,
		       .op = (uint16_t)op,
		       .flags = (uint16_t)flags,
		       .start.ns = start_ns,
		       .dur_ns = dur_ns,
		       .arg0 = 0x7f0000000000 + draw(m, 1 << 20),
		       .arg1 = draw(m, 1 << 20),
		       .stack_hash = (1 + draw(m, 500)) * UINT64_C(0x9e3779b97f4a7c15)});
}

static void make_wait(struct maker *m, uint32_t pid, int64_t now, bool is_slow)
{
	uint64_t wait_ns = 20 * NS_PER_MS + draw(m, NS_PER_MS);

	for (int i = 0; i < 8; i++) {
		struct event e = {.pid = pid,
			.source = SOURCE_HOST,
			.op = HOST_SCHED_SWITCH,
			.start.ns = now + i * 2 * (int64_t)NS_PER_MS,
			.dur_ns = is_slow ? 7 * NS_PER_MS : 200 * NS_PER_US,
			.peer_pid = is_slow ? 8821 : 0,
			.flags = is_slow ? WIRE_PREEMPTED : 0};

		if (is_slow) {
			e.start.ns = now + i * 9 * (int64_t)NS_PER_MS;
			e.wait_ns = e.dur_ns;
			snprintf(e.peer_comm, sizeof(e.peer_comm), "hog");
		}
		put(m, e);
	}
	make_call(m, pid, SOURCE_CUDA, CUDA_STREAM_SYNC, 0, now,
		wait_ns + (is_slow ? 60 * NS_PER_MS : 0));
}

static void make_step(struct maker *m, uint32_t pid, int64_t now, bool is_slow)
{
	make_call(m, pid, SOURCE_CUDA, CUDA_MALLOC, 0, now, 40000);
	for (int i = 0; i < 60; i++, now += 200 * (int64_t)NS_PER_US) {
		if (i % 3 == 0)
			make_call(m, pid, SOURCE_DRIVER, DRIVER_LAUNCH, WIRE_NESTED, now + 1000,
				3000 + draw(m, 3000));
		make_call(m, pid, SOURCE_CUDA, CUDA_LAUNCH, 0, now, 5000 + draw(m, 5000));
		if (i % 8 == 0)
			make_call(m, pid, SOURCE_CUDA, CUDA_MEMCPY_ASYNC, 0,
				now + 20 * (int64_t)NS_PER_US, 30000 + draw(m, 40000));
	}
	make_wait(m, pid, now, is_slow);
	make_call(m, pid, SOURCE_CUDA, CUDA_FREE, 0, now, 30000);
}

static void make(const char *path, uint64_t events)
{
	struct maker *m = calloc(1, sizeof(*m));
	struct session session = {.started.ns = START_NS};
	char temporary[512];
	uint64_t steps = 0;

	if (!m)
		exit(1);
	snprintf(temporary, sizeof(temporary), "%s.part", path);
	unlink(temporary);
	m->events = events;
	check(nodedb_open(temporary, "gpu-node-01", &m->db, &m->err), &m->err);
	check(nodedb_session_begin(m->db, &session, &m->err), &m->err);
	for (; m->stored < events; steps++) {
		int64_t now = START_NS + (int64_t)steps * STEP_NS;
		bool is_slow = now - START_NS > (int64_t)(200 * NS_PER_S) &&
			       now - START_NS < (int64_t)(230 * NS_PER_S);

		if (steps % BATCH_STEPS == 0)
			check(nodedb_batch_begin(m->db, &m->err), &m->err);
		for (uint32_t pid = 4000; pid < 4000 + PROCESSES; pid++)
			make_step(m, pid, now, is_slow && pid == SLOW_PID && steps % 2);
		if (steps % (5 * NS_PER_S / (uint64_t)STEP_NS) ==
			5 * NS_PER_S / (uint64_t)STEP_NS - 1)
			flush_bucket(m);
		if (steps % BATCH_STEPS == BATCH_STEPS - 1)
			check(nodedb_batch_commit(m->db, &m->err), &m->err);
	}
	if (steps % BATCH_STEPS)
		check(nodedb_batch_commit(m->db, &m->err), &m->err);
	flush_bucket(m);
	check(nodedb_session_end(m->db, session.id, (wall_time){START_NS}, &m->err), &m->err);
	check(nodedb_close(m->db, &m->err), &m->err);
	free(m);
	if (rename(temporary, path) < 0)
		check(-errno, &(struct errinfo){0});
}

static double seconds_since(mono_time begin)
{
	return (double)(mono_now().ns - begin.ns) / 1e9;
}

static double bare_scan(const char *path, uint64_t *ret_rows)
{
	mono_time begin = mono_now();
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	uint64_t rows = 0, sum = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) ||
		sqlite3_prepare_v2(db,
			"SELECT seq, timestamp, pid, source, op, duration, ret_code, flags"
			" FROM events",
			-1, &stmt, NULL)) {
		fprintf(stderr, "bench_explain: bare: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		for (int i = 0; i < 8; i++)
			sum += (uint64_t)sqlite3_column_int64(stmt, i);
		rows++;
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	*ret_rows = sum ? rows : 0;
	return seconds_since(begin);
}

static double explain(const char *ingero, const char *path, long *ret_kb, double *ret_cpu)
{
	mono_time begin = mono_now();
	struct rusage use;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		execl(ingero, ingero, "explain", "--db", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &use) < 0 || status) {
		fprintf(stderr, "bench_explain: %s explain failed\n", ingero);
		exit(1);
	}
	*ret_kb = use.ru_maxrss;
	*ret_cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
		   (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
	return seconds_since(begin);
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 3 ? strtoull(argv[3], NULL, 10) : 10000000, rows = 0;
	size_t rounds = argc > 4 ? strtoul(argv[4], NULL, 10) : 3;
	double least = 1e9, bare = 1e9, cpu = 1e9;
	long kb = 0;

	if (argc < 3 || !events || !rounds) {
		fprintf(stderr, "usage: bench_explain INGERO FILE [EVENTS [ROUNDS]]\n");
		return 64;
	}
	if (access(argv[2], R_OK) < 0)
		make(argv[2], events);
	for (size_t i = 0; i < rounds; i++) {
		double b = bare_scan(argv[2], &rows), c;
		double s = explain(argv[1], argv[2], &kb, &c);

		printf("round %zu: explain %.2f s (%.2f s of CPU), bare scan %.2f s\n", i + 1, s, c,
			b);
		least = MIN(least, s);
		bare = MIN(bare, b);
		cpu = MIN(cpu, c);
	}
	printf("explain_s %.2f (%" PRIu64 " events; budget 2)\n", least, rows);
	printf("explain_cpu_s %.2f\n", cpu);
	printf("explain_mb %.0f\n", (double)kb / 1024);
	printf("explain_scan_ratio %.2f (bare scan %.2f s)\n", least / bare, bare);
	return 0;
}
