/* SPDX-License-Identifier: Apache-2.0 */
/* test_jobs.c - which ranks are of one job: through communicators, through a Send, and not otherwise. */
#include <errno.h>

#include "calls_fixture.h"

#define RANKS 12

/* Every rank calls once in the communicator of its group, of @size neighbours. */
static void step_in_groups(struct job *j, int size)
{
	j->now_ns += 10 * MS;
	for (int i = 0; i < RANKS; i++) {
		struct push_call c = job_call(j, i, j->now_ns, j->now_ns + MS);

		c.comm = COMM + (uint64_t)(i / size);
		c.rank = i % size;
		c.nranks = size;
		job_add(j, job_node(j, i), c);
	}
	j->seq++;
}

static void test_groups_are_jobs(void **state _unused_)
{
	struct calls *c = calls_made();
	struct calls_jobs jobs;
	struct worker_view a, b;
	struct job j;

	job_init(&j, RANKS, 4);
	step_in_groups(&j, 4);
	job_push(&j, c);
	assert_int_equal(calls_jobs(c, &jobs), 0);
	assert_int_equal(jobs.count, 3);
	for (int i = 0; i < RANKS; i++) {
		assert_true(worker_of_rank(c, i, &a) && worker_of_rank(c, i / 4 * 4, &b));
		assert_int_equal(jobs.of[a.worker], jobs.of[b.worker]);
		assert_true(jobs.items[jobs.of[a.worker]].comm == COMM + (uint64_t)(i / 4));
		assert_int_equal(jobs.items[jobs.of[a.worker]].ranks, 4);
		assert_int_equal(jobs.items[jobs.of[a.worker]].nranks, 4);
	}
	assert_true(worker_of_rank(c, 0, &a) && worker_of_rank(c, 4, &b));
	assert_int_not_equal(jobs.of[a.worker], jobs.of[b.worker]);
	calls_jobs_done(&jobs);
	job_done(&j);
	calls_free(c);
}

/* Groups of four and pairs across their borders: all are one; it is named after the largest. */
static void test_overlap_is_one_job(void **state _unused_)
{
	struct calls *c = calls_made();
	struct calls_jobs jobs;
	struct job j;

	job_init(&j, RANKS, 4);
	step_in_groups(&j, 4);
	for (int i = 3; i < 9; i += 4) {
		struct push_call x = job_call(&j, i, j.now_ns, j.now_ns + MS);

		x.comm = COMM + 100;
		x.nranks = RANKS;
		x.op = NCCL_SEND;
		x.peer = i + 1;
		job_add(&j, job_node(&j, i), x);
		x = job_call(&j, i + 1, j.now_ns, j.now_ns + MS);
		x.comm = COMM + 100;
		x.nranks = RANKS;
		x.op = NCCL_RECV;
		x.peer = i;
		job_add(&j, job_node(&j, i + 1), x);
	}
	job_push(&j, c);
	assert_int_equal(calls_jobs(c, &jobs), 0);
	assert_int_equal(jobs.count, 1);
	assert_int_equal(jobs.items[0].ranks, RANKS);
	assert_true(jobs.items[0].last_ns > BEGIN_NS);
	calls_jobs_done(&jobs);
	job_done(&j);
	calls_free(c);
}

static void test_members(void **state _unused_)
{
	struct calls *c = calls_made();
	uint32_t of[RANKS] = {0};
	struct worker_view v;
	struct job j;

	job_init(&j, RANKS, 4);
	step_in_groups(&j, 4);
	job_push(&j, c);
	assert_int_equal(calls_members(c, COMM + 2, of, ARRAY_SIZE(of)), 4);
	for (int i = 0; i < 4; i++) {
		assert_true(worker_of_rank(c, 8 + i, &v));
		assert_int_equal(of[i], v.worker);
	}
	assert_true(of[4] == UINT32_MAX);
	assert_int_equal(calls_members(c, 1, of, ARRAY_SIZE(of)), -ENOENT);
	job_done(&j);
	calls_free(c);
}

/* What has become of the work of node 0 after its last call, as those see it who are still heard of. */
static enum nodes_work work_left(int group, const char *heard)
{
	struct calls *c = calls_made();
	enum nodes_work work;
	struct job j;

	job_init(&j, RANKS, 4);
	step_in_groups(&j, group);
	job_push(&j, c);
	calls_tick(c, j.now_ns + 4 * SECOND);
	assert_int_equal(calls_work(c, "node-00"), NODES_WORK_PAUSES);
	if (heard)
		calls_heard(c, heard, j.now_ns + 7 * SECOND);
	calls_tick(c, j.now_ns + 8 * SECOND);
	work = calls_work(c, "node-00");
	job_done(&j);
	calls_free(c);
	return work;
}

/* That a job has ended is known by another node of it that outlived it; who goes with its own job is missed. */
static void test_ended(void **state _unused_)
{
	assert_int_equal(work_left(12, "node-02"), NODES_WORK_ENDED);
	assert_int_equal(work_left(12, NULL), NODES_WORK_GOES_ON);
	assert_int_equal(work_left(12, "node-00"), NODES_WORK_GOES_ON);
	assert_int_equal(work_left(4, "node-02"), NODES_WORK_GOES_ON); /* of another job */
	assert_int_equal(work_left(4, NULL), NODES_WORK_GOES_ON);
}

static void test_nobody(void **state _unused_)
{
	struct calls *c = calls_made();
	struct calls_jobs jobs;

	assert_int_equal(calls_jobs(c, &jobs), 0);
	assert_int_equal(jobs.count, 0);
	calls_jobs_done(&jobs);
	calls_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_are_jobs),
		cmocka_unit_test(test_overlap_is_one_job),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
