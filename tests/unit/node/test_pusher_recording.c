/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_recording.c - a recording that is being written gives each row once: also when it is rolled
 * over, pruned, or not there yet. */
#include "store_fixture.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/push/pusher_recording.h"
#include "store/write/retention.h"

static wall_time now;

static void put(struct nodedb *db, uint64_t seq)
{
	const struct event e = {.start.ns = now.ns + (int64_t)seq,
		.dur_ns = 3,
		.pid = 7,
		.tid = 7,
		.source = SOURCE_NCCL,
		.op = NCCL_ALL_REDUCE};
	const struct collective c = {
		.comm_hash = 1, .seq = seq, .rank = 0, .nranks = 2, .peer = -1, .wait_ns = 5};
	struct errinfo err = {0};

	assert_int_equal(nodedb_put_collective(db, &e, &c, &err), 0);
}

static void put_launches_of(struct nodedb *db, uint32_t pid, uint64_t count)
{
	struct aggregate a = {.bucket.ns = now.ns - now.ns % (int64_t)NODEDB_BUCKET_FINE,
		.pid = pid,
		.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH};
	struct errinfo err = {0};

	sketch_add(&a.sketch, 1000, count);
	assert_int_equal(nodedb_add_aggregate(db, false, &a, &err), 0);
}

static void put_launches(struct nodedb *db, uint64_t count)
{
	put_launches_of(db, 7, count);
}

/* The sequence numbers that come now. */
static void expect(struct pusher_recording *r, uint64_t first, uint64_t last, uint64_t lost)
{
	struct push_calls got = {0};

	assert_int_equal(pusher_recording_calls(r, now, NULL), 0);
	assert_int_equal(pusher_calls_take(&r->calls, 1000, &got), 0);
	assert_true(got.lost == lost);
	assert_true(got.count == (last >= first ? last - first + 1 : 0));
	for (size_t i = 0; i < got.count; i++)
		assert_true(got.items[i].seq == first + i);
	free(got.items);
}

static void not_there_yet(void **state)
{
	struct scratch *s = *state;
	struct pusher_recording r;
	struct pusher_reading reading;
	struct errinfo e = {0};
	struct nodedb *db;

	now = wall_now();
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	assert_int_equal(pusher_recording_calls(&r, now, &e), -ENOENT);
	assert_true(pusher_recording_health(&r, now, &reading, &e) < 0);
	db = scratch_open(s->path);
	put(db, 1);
	put(db, 2);
	expect(&r, 1, 2, 0);
	expect(&r, 1, 0, 0);
	put(db, 3);
	expect(&r, 3, 3, 0);
	put_launches(db, 11);
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(reading.launches == 11);
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(r.counters.launches == 11); /* read twice, counted once */
	put_launches(db, 2);
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(r.counters.launches == 13 && reading.launches == 2);
	scratch_close(db);
	pusher_recording_done(&r);
}

/* What an earlier run of the agent has sent is not sent again, but for a minute's worth. */
static void begins_a_minute_ago(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct pusher_recording r;
	wall_time begin = wall_now();

	now.ns = begin.ns - 61 * (int64_t)NS_PER_S;
	put(db, 1);
	now.ns = begin.ns - 30 * (int64_t)NS_PER_S;
	put(db, 2);
	now = begin;
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	expect(&r, 2, 2, 0);
	scratch_close(db);
	pusher_recording_done(&r);
}

static void rolled_over(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct session session = {.started = wall_now()};
	struct pusher_reading reading;
	struct pusher_recording r;
	struct errinfo e = {0};
	char rolled[128];

	now = wall_now();
	snprintf(rolled, sizeof(rolled), "%s/ingero.old.db", s->folder);
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	put(db, 1);
	put_launches(db, 5);
	expect(&r, 1, 1, 0);
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	put(db, 2); /* not read before the file is rolled over */
	put(db, 3);
	put_launches(db, 6);
	assert_int_equal(nodedb_roll(db, rolled, &e), 0);
	assert_int_equal(nodedb_session_begin(db, &session, &e), 0);
	put(db, 4);
	put_launches(db, 100);
	expect(&r, 2, 3, 0);
	expect(&r, 4, 4, 0);
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(r.counters.launches == 111);
	scratch_close(db);
	pusher_recording_done(&r);
}

/* An agent that is started again reads on behind @at: where it was, in whatever file that is now. */
static void resume(struct scratch *s, struct pusher_recording *r)
{
	struct pusher_position at = r->at;

	pusher_recording_done(r);
	pusher_recording_init(r, s->path, 60 * NS_PER_S);
	pusher_recording_resume(r, &at);
}

static void roll(struct scratch *s, struct nodedb *db, uint32_t random)
{
	struct session session = {.started = wall_now()};
	struct errinfo e = {0};
	char rolled[160];

	assert_int_equal(
		rollover_name(s->path, (wall_time){1 + random}, random, rolled, sizeof(rolled)), 0);
	assert_int_equal(nodedb_roll(db, rolled, &e), 0);
	assert_int_equal(nodedb_session_begin(db, &session, &e), 0);
}

static void goes_on_after_a_restart(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct pusher_recording r;

	now = wall_now();
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	put(db, 1);
	put(db, 2);
	expect(&r, 1, 2, 0);
	resume(s, &r);
	expect(&r, 1, 0, 0);
	put(db, 3);
	resume(s, &r);
	expect(&r, 3, 3, 0);
	/* Rolled over twice while no agent ran: all three files, in order. */
	put(db, 4);
	roll(s, db, 1);
	put(db, 5);
	roll(s, db, 2);
	put(db, 6);
	resume(s, &r);
	expect(&r, 4, 4, 0);
	expect(&r, 5, 5, 0);
	expect(&r, 6, 6, 0);
	expect(&r, 1, 0, 0);
	put(db, 7);
	resume(s, &r);
	expect(&r, 7, 7, 0);
	scratch_close(db);
	/* What was pruned meanwhile is counted. */
	db = scratch_open(s->path);
	put(db, 8);
	put(db, 9);
	scratch_close(db);
	scratch_sql(s->path, "DELETE FROM collectives WHERE rowid < 4");
	resume(s, &r);
	expect(&r, 9, 9, 1);
	pusher_recording_done(&r);
}

/* Rolled over before the first look: the last minute is in two files. */
static void begins_in_a_rolled_file(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct pusher_recording r;

	now = wall_now();
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	put(db, 1);
	roll(s, db, 1);
	put(db, 2);
	expect(&r, 1, 1, 0);
	expect(&r, 2, 2, 0);
	pusher_recording_done(&r);
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	r.is_alone = true; /* control */
	expect(&r, 2, 2, 0);
	scratch_close(db);
	pusher_recording_done(&r);
}

/* The tracer makes a new file of the same name: the old one is gone, and its numbers mean nothing. */
static void another_file(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct pusher_recording r;

	now = wall_now();
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	for (uint64_t i = 1; i <= 3; i++)
		put(db, i);
	expect(&r, 1, 3, 0);
	scratch_close(db);
	assert_int_equal(unlink(s->path), 0);
	db = scratch_open(s->path);
	for (uint64_t i = 4; i <= 9; i++)
		put(db, i);
	resume(s, &r); /* its inode may be the old one's */
	expect(&r, 4, 9, 0);
	scratch_close(db);
	assert_int_equal(unlink(s->path), 0);
	db = scratch_open(s->path);
	put(db, 10);
	expect(&r, 10, 10, 0); /* the same while it runs */
	scratch_close(db);
	pusher_recording_done(&r);
}

static void pruned_rows_are_lost(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct pusher_recording r;

	now = wall_now();
	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	put(db, 1);
	expect(&r, 1, 1, 0);
	for (uint64_t i = 2; i <= 6; i++)
		put(db, i);
	scratch_close(db);
	scratch_sql(s->path, "DELETE FROM collectives WHERE rowid < 5");
	expect(&r, 5, 6, 3);
	pusher_recording_done(&r);
}

/* A recording whose tracer has ended says nothing about now. */
static void nobody_writes(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct host_sample sample = {.time = wall_now(), .cpu_pct = 25};
	struct pusher_reading reading;
	struct pusher_recording r;
	struct errinfo e = {0};

	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	assert_int_equal(nodedb_put(db, &sample, &e), 0);
	scratch_close(db);
	now = sample.time;
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(reading.raw[HEALTH_CPU] == 0.75);
	now.ns += 31 * (int64_t)NS_PER_S;
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), -ESTALE);
	assert_non_null(strstr(e.text, "is not being written"));
	pusher_recording_done(&r);
}

static void put_program(struct nodedb *db, pid_t pid, const char *comm, uint64_t launches)
{
	struct process p = {
		.pid = (uint32_t)pid, .start_ticks = 1, .seen = now, .identity.launcher = ""};
	struct errinfo e = {0};

	snprintf(p.comm, sizeof(p.comm), "%s", comm);
	assert_int_equal(nodedb_put_process(db, &p, NULL, &e), 0);
	put_launches_of(db, p.pid, launches);
}

static pid_t begin_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Two workers of one program, and a neighbour. */
static void programs_end(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	pid_t workers[2] = {begin_child(), begin_child()}, neighbour = begin_child();
	struct pusher_reading reading;
	struct pusher_recording r;
	struct errinfo e = {0};
	wall_time begin = now = wall_now();
	double sum = 0;

	pusher_recording_init(&r, s->path, 60 * NS_PER_S);
	put_program(db, workers[0], "worker", 30);
	put_program(db, workers[1], "worker", 20);
	put_program(db, neighbour, "neighbour", 7);
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(reading.program_count == 2);
	for (size_t i = 0; i < 2; i++) {
		sum += reading.programs[i].rate;
		assert_false(reading.programs[i].is_over);
	}
	assert_true(fabs(sum - reading.raw[HEALTH_THROUGHPUT]) < 1e-9 && sum > 0);

	end_child(workers[0]);
	end_child(neighbour);
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(reading.program_count == 2);
	assert_true(reading.programs[0].is_over != reading.programs[1].is_over);

	now.ns = begin.ns + 90 * (int64_t)NS_PER_S; /* what it did has left the window */
	assert_int_equal(pusher_recording_health(&r, now, &reading, &e), 0);
	assert_true(reading.program_count == 1 && !reading.programs[0].is_over);
	end_child(workers[1]);
	scratch_close(db);
	pusher_recording_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(not_there_yet, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			begins_a_minute_ago, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(rolled_over, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			goes_on_after_a_restart, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			begins_in_a_rolled_file, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(another_file, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			pruned_rows_are_lost, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(nobody_writes, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(programs_end, scratch_setup, scratch_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
