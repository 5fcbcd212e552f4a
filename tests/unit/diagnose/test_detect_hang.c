/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_hang.c - collectives that do not end, ranks that disagree, and jobs that simply end. */
#include "blame/comm_join.h"
#include "ranks_fixture.h"
#include "diagnose/compose/diagnose.h"

/* @n whole steps; then all but @missing (-1: all) call number n + 1 and do not come back. */
static void job_stall(struct job *j, uint64_t n, int missing)
{
	for (uint64_t seq = 1; seq <= n; seq++)
		job_step(j, seq, -1, 0);
	for (int r = 0; r < RANKS; r++)
		if (r != missing)
			job_call(j, r, n + 1, (int64_t)(n + 1) * STEP_US, -1);
}

static struct event *job_exit(struct job *j, int rank, int64_t at_us)
{
	return scene_add(&j->s, SOURCE_HOST, HOST_PROCESS_EXIT, PID(rank), PID(rank), at_us, 0);
}

static void a_rank_that_never_came(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	job_stall(&j, 20, 2);
	scene_sample(&j.s, 210000 + 8000000, 10);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	inc = &a.list[0];
	assert_int_equal(inc->problem, PROBLEM_NCCL_HANG);
	assert_int_equal(inc->severity, SEVERITY_CRITICAL);
	assert_int_equal(inc->culprit_rank, 2);
	assert_int_equal(inc->pid, PID(2));
	assert_int_equal(inc->count, 3);
	assert_in_range(inc->excess_ns, 7900000000ull, 8100000000ull);
	assert_non_null(strstr(inc->summary, "(collective 21) hangs: rank 2 (pid 1002)"));
	assert_non_null(strstr(inc->root_cause, "did not call collective 21 after 20"));
	assert_non_null(strstr(inc->explanation, "waits were not recorded"));
}

/* Merged recordings end at different moments: @until_us rank 2's node was recorded. */
static size_t hangs_of_merged(int64_t until_us)
{
	const struct ledger_row ledger[] = {{.pid = PID(2),
						    .tid = PID(2) + 1,
						    .start.ns = SCENE_T0_NS,
						    .dur_ns = (uint64_t)until_us * 1000},
		{.pid = PID(0), .tid = PID(0) + 1, .start.ns = SCENE_T0_NS, .dur_ns = 8210000000}};
	struct recording rec;
	JOB;

	job_stall(&j, 20, 2);
	for (size_t i = 0; i < j.count; i++)
		if (j.rows[i].pid == PID(2))
			snprintf(j.rows[i].node, sizeof(j.rows[i].node), "gpu-2");
	scene_sample(&j.s, 210000 + 8000000, 10);
	rec = job_recording(&j);
	rec.ledger = ledger;
	rec.ledger_count = ARRAY_SIZE(ledger);
	ANSWER a = answer_to(&rec);
	return answer_of(&a, PROBLEM_NCCL_HANG) != NULL;
}

static void a_recordings_end_is_no_hang(void **state)
{
	assert_int_equal(hangs_of_merged(300000), 0);
	assert_int_equal(hangs_of_merged(8210000), 1);
}

static void the_end_of_its_process_is_told(void **state)
{
	struct recording rec;
	JOB;

	job_stall(&j, 20, 2);
	job_exit(&j, 2, 205000);
	scene_sample(&j.s, 210000 + 8000000, 10);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	assert_non_null(
		strstr(a.list[0].root_cause, "its process exited before the others arrived"));
}

static void too_short_to_be_one(void **state)
{
	static const int64_t ends_us[] = {900000, 1300000, 4500000};

	for (size_t i = 0; i < ARRAY_SIZE(ends_us); i++) {
		struct recording rec;
		JOB;

		job_stall(&j, 20, 2);
		scene_sample(&j.s, 210000 + ends_us[i], 10);
		rec = job_recording(&j);
		ANSWER a = answer_to(&rec);
		assert_int_equal(a.count, 0);
	}
}

/* The job has paused for 4 s before and gone on. */
static void no_longer_than_a_pause_before(void **state)
{
	struct recording rec;
	JOB;

	job_stall(&j, 40, 2);
	for (size_t i = 0; i < j.count; i++)
		if (j.rows[i].c.seq > 20)
			j.rows[i].start.ns += 4000 * (int64_t)NS_PER_MS;
	scene_sample(&j.s, 410000 + 4000000 + 8000000, 10);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_null(answer_of(&a, PROBLEM_NCCL_HANG));
	scene_sample(&j.s, 410000 + 4000000 + 13000000, 10);
	rec = job_recording(&j);
	ANSWER b = answer_to(&rec);
	assert_non_null(answer_of(&b, PROBLEM_NCCL_HANG));
}

/* Rank 2 writes to disk all the while: it is late, and no hang yet. */
static void a_rank_at_work_is_late(void **state)
{
	struct recording rec;
	JOB;

	job_stall(&j, 20, 2);
	for (int i = 0; i < 16; i++)
		scene_io(&j.s, IO_WRITE, PID(2), "python3", 210000 + i * 500000, 400000, 4096);
	scene_sample(&j.s, 210000 + 8000000, 10);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.list[0].problem, PROBLEM_NCCL_HANG);
	assert_int_equal(a.list[0].severity, SEVERITY_MEDIUM);
	assert_non_null(strstr(a.list[0].summary, "is still working"));
}

static void a_job_that_ends(void **state)
{
	struct recording rec;
	JOB;

	job_stall(&j, 20, 2); /* killed between two calls */
	for (int r = 0; r < RANKS; r++)
		job_exit(&j, r, 211000 + r * 100);
	scene_sample(&j.s, 30000000, 10);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 0);
}

static void who_goes_on_has_been_through(void **state)
{
	struct recording rec;
	JOB;

	job_stall(&j, 20, 2); /* its row was lost */
	scene_add(&j.s, SOURCE_CUDA, CUDA_STREAM_SYNC, PID(0), PID(0), 211000, 1000)->stream =
		STREAM;
	scene_sample(&j.s, 30000000, 10);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 0);
}

static void a_mismatch_that_hangs_and_one_that_does_not(void **state)
{
	struct recording rec;
	JOB;

	job_stall(&j, 20, -1);
	j.rows[j.count - 2].op = NCCL_ALL_GATHER; /* rank 2 */
	scene_sample(&j.s, 210000 + 8000000, 10);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.list[0].severity, SEVERITY_CRITICAL);
	assert_int_equal(a.list[0].culprit_rank, 2);
	assert_non_null(strstr(a.list[0].root_cause,
		"rank 2 (pid 1002) called ncclAllGather of 1.0 MiB, type 7 where most ranks called "
		"ncclAllReduce"));
	for (size_t i = j.count - RANKS; i < j.count; i++)
		j.rows[i].c.wait_ns = 1000000;
	rec = job_recording(&j);
	ANSWER b = answer_to(&rec);
	assert_int_equal(b.count, 1);
	assert_int_equal(b.list[0].severity, SEVERITY_MEDIUM);
	assert_non_null(strstr(b.list[0].summary, "undefined"));
	/* numbers that were made up, by when calls ended */
	for (size_t i = 0; i < j.count; i++)
		j.rows[i].c.seq += COMM_JOIN_MADE_UP;
	rec = job_recording(&j);
	ANSWER c = answer_to(&rec);
	assert_int_equal(c.count, 0);
}

static void broadcast_has_two_names(void **state)
{
	struct recording rec;
	JOB;

	job_step(&j, 1, -1, 0);
	for (int i = 0; i < RANKS; i++)
		j.rows[i].op = i % 2 ? NCCL_BCAST : NCCL_BROADCAST;
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 0);
	j.rows[1].c.root = 3; /* control */
	ANSWER b = answer_to(&rec);
	assert_int_equal(b.count, 1);
}

static void ranks_of_other_recordings(void **state)
{
	struct accounting books = {0};
	struct recording rec;
	JOB;

	job_stall(&j, 20, -1);
	for (size_t i = 0; i < j.count; i++)
		j.rows[i].c.nranks = 8;
	scene_sample(&j.s, 210000 + 8000000, 10);
	rec = job_recording(&j);
	ANSWER quiet = answer_to(&rec); /* silence alone is no hang */
	assert_int_equal(quiet.count, 0);
	books.source[SOURCE_CUDA].hits = 1000;
	books.source[SOURCE_CUDA].lost[LOSS_AT_STOP] = 4;
	rec.books = &books;
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.list[0].severity, SEVERITY_HIGH);
	assert_int_equal(a.list[0].culprit_rank, -1);
	assert_non_null(strstr(a.list[0].root_cause, "4 ranks outside this recording"));
}

/* Rows of any content: every answer is still a whole one, and comes to an end. */
static void whatever_the_rows_hold(void **state)
{
	static const int64_t times[] = {
		INT64_MIN, -1, 0, 1, SCENE_T0_NS, INT64_C(1) << 62, INT64_MAX};

	for (int round = 0; round < 200; round++) {
		struct recording rec;
		JOB;

		j.s.seed = (uint64_t)round + 1;
		for (int i = 0; i < 60; i++) {
			struct collective_row *r = job_call(&j, (int)scene_random(&j.s, 5),
				scene_random(&j.s, 8), (int64_t)scene_random(&j.s, 20000000),
				(int64_t)scene_random(&j.s, 9000) - 1);

			if (scene_random(&j.s, 4) == 0)
				r->start.ns = times[scene_random(&j.s, ARRAY_SIZE(times))];
			if (scene_random(&j.s, 4) == 0)
				r->c.wait_ns = times[scene_random(&j.s, ARRAY_SIZE(times))];
			if (scene_random(&j.s, 8) == 0)
				r->dur_ns = (uint64_t)times[scene_random(&j.s, ARRAY_SIZE(times))];
			if (scene_random(&j.s, 8) == 0)
				r->c.comm_hash = scene_random(&j.s, 4);
			if (scene_random(&j.s, 8) == 0)
				r->c.rank = r->c.nranks =
					INT32_MAX - (int32_t)scene_random(&j.s, 2);
			if (scene_random(&j.s, 8) == 0)
				r->c.seq = UINT64_MAX - scene_random(&j.s, 3);
			r->op = (uint16_t)scene_random(&j.s, 24);
			memset(r->node, 'a' + (int)scene_random(&j.s, 2), sizeof(r->node) - 1);
		}
		for (int i = 0; i < 20; i++)
			job_exit(&j, (int)scene_random(&j.s, 5),
				(int64_t)scene_random(&j.s, 20000000))
				->dur_ns = (uint64_t)times[scene_random(&j.s, ARRAY_SIZE(times))];
		rec = job_recording(&j);
		ANSWER a = answer_to(&rec);
		assert_true(a.count <= DIAGNOSE_INCIDENTS_MAX);
	}
}

/* Rank 0 steps until @steps_us, and has no CPU for a third of the time until @until_us, taken by @thread of rank 1. */
static void take_cpu(struct job *j, int64_t steps_us, int64_t until_us, const char *thread)
{
	scene_add(&j->s, SOURCE_CUDA, CUDA_LAUNCH, PID(1), PID(1), 5000, 10);
	for (int64_t at = 0; at < until_us; at += 10000) {
		struct event *stay;

		if (at < steps_us)
			scene_add(&j->s, SOURCE_CUDA, CUDA_STREAM_SYNC, PID(0), PID(0), at + 5000,
				500);
		stay = scene_add(
			&j->s, SOURCE_HOST, HOST_SCHED_SWITCH, PID(0), PID(0), at + 6000, 3300);
		stay->wait_ns = stay->dur_ns;
		stay->flags |= WIRE_PREEMPTED;
		stay->peer_pid = PID(1);
		snprintf(stay->peer_comm, COMM_LEN, "%s", thread ? thread : stay->comm);
	}
}

/* Ranks that take each other's CPUs while they wait for one that never comes lose nothing by it, whatever the thread
 * is called. The same without the hang is loud. */
static void a_hang_quietens_contention_of_ranks(void **state)
{
	for (int i = 0; i < 4; i++) {
		int hangs = i % 2;
		const struct incident *inc;
		struct recording rec;
		JOB;

		job_stall(&j, 20, hangs ? 2 : -1);
		take_cpu(&j, hangs ? 210000 : 8200000, 8200000, i < 2 ? NULL : "stream");
		scene_aggregate(&j.s);
		scene_sample(&j.s, 210000 + 8000000, 10);
		rec = job_recording(&j);
		ANSWER a = answer_to(&rec);
		assert_true(!!answer_of(&a, PROBLEM_NCCL_HANG) == (hangs == 1));
		inc = answer_of(&a, PROBLEM_CPU_CONTENTION);
		if (hangs) {
			assert_null(inc);
			continue;
		}
		assert_non_null(inc);
		assert_int_equal(inc->pid, PID(0));
		assert_true(inc->severity >= SEVERITY_MEDIUM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hang_quietens_contention_of_ranks),
		cmocka_unit_test(a_rank_that_never_came),
		cmocka_unit_test(a_recordings_end_is_no_hang),
		cmocka_unit_test(the_end_of_its_process_is_told),
		cmocka_unit_test(too_short_to_be_one),
		cmocka_unit_test(no_longer_than_a_pause_before),
		cmocka_unit_test(a_rank_at_work_is_late),
		cmocka_unit_test(a_job_that_ends),
		cmocka_unit_test(who_goes_on_has_been_through),
		cmocka_unit_test(a_mismatch_that_hangs_and_one_that_does_not),
		cmocka_unit_test(broadcast_has_two_names),
		cmocka_unit_test(ranks_of_other_recordings),
		cmocka_unit_test(whatever_the_rows_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
