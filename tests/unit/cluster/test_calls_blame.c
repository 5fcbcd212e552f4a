/* SPDX-License-Identifier: Apache-2.0 */
/* test_calls_blame.c - what agents push, in any order and by clocks that are wrong, leads to the verdict
 * that the same calls give when they are all at hand with one clock. */
#include "calls_fixture.h"
#include "cluster/simulate/job.h"

#define SEEDS 6

/* Each worker is a node. */
static struct calls *push_all(const struct job_trace *t, struct job *j)
{
	struct calls *c = calls_made();
	struct calls_taken n;

	job_init(j, (int)t->worker_count, 1);
	job_skew(j, 20 * MS);
	for (size_t i = 0; i < t->call_count; i++) {
		struct push_call call = t->calls[i].c;
		uint32_t worker = t->calls[i].worker, node = worker % JOB_NODES;

		call.pid = worker + 1;
		call.enter_ns = job_clock(j, node, call.enter_ns + BEGIN_NS);
		call.leave_ns = job_clock(j, node, call.leave_ns + BEGIN_NS);
		j->now_ns = MAX(j->now_ns, call.leave_ns);
		job_add(j, node, call);
	}
	job_shuffle(j);
	n = job_push(j, c);
	assert_int_equal(n.taken, t->call_count);
	calls_tick(c, j->now_ns);
	return c;
}

/* False: the job has more workers than there are nodes here. */
static bool compare(uint64_t seed, enum job_fault fault)
{
	struct job_spec spec = job_spec_random(seed, fault);
	struct blame_worker *workers = NULL;
	struct blame direct, through;
	struct job_trace t;
	struct calls *c;
	struct job j;
	size_t count;

	spec.clock_error_ns = 0;
	spec.seq_per_comm = false; /* push.h: counted for each peer */
	if (spec.data * spec.tensor * spec.pipeline > JOB_NODES)
		return false;
	assert_int_equal(job_run(&spec, &t), 0);
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, t.call_count, &direct), 0);
	c = push_all(&t, &j);
	assert_int_equal(calls_blame(c, &workers, &count, &through), 0);
	assert_int_equal(count, t.worker_count);
	assert_int_equal(through.kind, direct.kind);
	if (direct.kind == BLAME_WORKERS) {
		uint32_t who = direct.suspects[0].worker;

		assert_int_equal(workers[through.suspects[0].worker].rank, t.workers[who].rank);
		assert_int_equal(workers[through.suspects[0].worker].pid, who + 1);
	}
	free(workers);
	blame_done(&direct);
	blame_done(&through);
	job_trace_done(&t);
	job_done(&j);
	calls_free(c);
	return true;
}

static void test_same_verdict(void **state)
{
	static const enum job_fault faults[] = {
		JOB_NONE, JOB_SLOW, JOB_LATE, JOB_STAGE, JOB_MOVING};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		int compared = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			compared += compare(seed, faults[i]);
		assert_true(compared >= SEEDS / 3);
	}
}

/* Agents that came while the job ran have not seen its first collectives alike: these hold up nothing. */
static void test_met_late(void **state)
{
	struct job_spec spec = {.seed = 3,
		.data = 4,
		.tensor = 1,
		.pipeline = 1,
		.microbatches = 1,
		.buckets = 3,
		.steps = 12,
		.step_ns = 200 * MS};
	struct blame_worker *workers = NULL;
	struct job_trace t;
	struct blame b;
	struct calls *c;
	struct job j;
	size_t count, kept = 0;

	assert_int_equal(job_run(&spec, &t), 0);
	for (size_t i = 0; i < t.call_count; i++) /* the others have not seen the first bucket */
		if (t.calls[i].worker == 0 || t.calls[i].c.seq > 0)
			t.calls[kept++] = t.calls[i];
	assert_int_equal(kept, t.call_count - 3);
	t.call_count = kept;
	c = push_all(&t, &j);
	assert_int_equal(calls_blame(c, &workers, &count, &b), 0);
	assert_int_equal(b.steps, 0); /* it may still be on its way */
	free(workers);
	blame_done(&b);
	calls_tick(c, j.now_ns + 1500 * MS);
	assert_int_equal(calls_blame(c, &workers, &count, &b), 0);
	assert_in_range(b.steps, 9, 12);
	free(workers);
	blame_done(&b);
	job_trace_done(&t);
	job_done(&j);
	calls_free(c);
}

/* Nothing to go by. */
static void test_empty(void **state)
{
	struct calls *c = calls_made();
	struct blame_worker *workers = NULL;
	struct blame b;
	size_t count = 7;

	assert_int_equal(calls_blame(c, &workers, &count, &b), 0);
	assert_int_equal(b.kind, BLAME_NONE);
	assert_int_equal(count, 0);
	free(workers);
	blame_done(&b);
	calls_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_verdict),
		cmocka_unit_test(test_met_late),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
