/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_steps.c - whether what looks like steps are whole ones: not while a job is in its first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blame/blame.h"
#include "cluster/simulate/job.h"

#define SECOND INT64_C(1000000000)

/* Two stages of two replicas with steps of 24 s: each passes 8 micro-batches over 6 layers. */
static struct job_spec of_long_steps(void)
{
	return (struct job_spec){.seed = 5,
		.data = 2,
		.tensor = 1,
		.pipeline = 1,
		.microbatches = 8,
		.layers = 6,
		.buckets = 2,
		.steps = 8,
		.step_ns = 24 * SECOND,
		.jitter = 0.01};
}

/* What blame says of the calls that workers below @workers have made in the first @seconds. */
static struct blame blame_after(const struct job_spec *s, int64_t seconds, uint32_t workers)
{
	struct job_trace t;
	struct blame b;
	size_t n = 0;

	assert_int_equal(job_run(s, &t), 0);
	for (size_t i = 0; i < t.call_count; i++)
		if (t.calls[i].c.leave_ns < seconds * SECOND && t.calls[i].worker < workers)
			t.calls[n++] = t.calls[i];
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, n, &b), 0);
	job_trace_done(&t);
	return b;
}

static void assert_steady(
	const struct job_spec *s, int64_t seconds, uint32_t workers, bool is_steady)
{
	struct blame b = blame_after(s, seconds, workers);

	if (b.is_steady != is_steady)
		print_error("after %lld s: %u steps of %llu ms\n", (long long)seconds, b.steps,
			(unsigned long long)b.step_ns / 1000000);
	assert_int_equal(b.is_steady, is_steady);
	blame_done(&b);
}

/* The collectives of layers are many and alike, messages come between some of them. */
static void test_layers_of_a_pipeline(void **state)
{
	struct job_spec s = of_long_steps();
	struct blame b;

	s.tensor = 2;
	s.pipeline = 2;
	assert_steady(&s, 3, 8, false); /* hardly a message has come */
	b = blame_after(&s, 20, 8);
	assert_true(b.steps > 8); /* it does look like steps */
	assert_false(b.is_steady);
	blame_done(&b);
	assert_steady(&s, 60, 8, false);
	b = blame_after(&s, 220, 8);
	assert_true(b.is_steady);
	assert_in_range(b.step_ns, 20 * SECOND, 60 * SECOND);
	blame_done(&b);
}

/* Micro-batches are messages alone. */
static void test_messages(void **state)
{
	struct job_spec s = of_long_steps();
	struct blame b;

	s.pipeline = 2;
	b = blame_after(&s, 20, 4);
	assert_true(b.steps > 3);
	assert_false(b.is_steady);
	blame_done(&b);
	assert_steady(&s, 60, 4, false);
	assert_steady(&s, 220, 4, true);
}

/* The gradients come for the first time, and once more: layers were not steps. */
static void test_what_has_just_come(void **state)
{
	struct job_spec s = of_long_steps();

	s.tensor = 2;
	assert_steady(&s, 30, 4, false);
	assert_steady(&s, 60, 4, false);
	assert_steady(&s, 140, 4, true);
}

/* An evaluation that comes every now and then changes that for a while only. */
static void test_what_comes_rarely(void **state)
{
	struct job_spec s = of_long_steps();

	s.step_ns = SECOND;
	s.steps = 100;
	s.evaluate_every = 20;
	assert_steady(&s, 19, 2, true);
	assert_steady(&s, 24, 2, false);
	assert_steady(&s, 50, 2, true);
	assert_steady(&s, 90, 2, true);
}

/* What comes once after the first step, as when a framework hands out buckets anew, hides none of the others. */
static void test_what_comes_once(void **state)
{
	struct job_spec s = of_long_steps();
	struct blame_call *calls;
	struct job_trace t;
	struct blame b;
	size_t n;

	s.step_ns = SECOND / 2;
	s.microbatches = 1;
	assert_int_equal(job_run(&s, &t), 0);
	calls = calloc(t.call_count + t.worker_count, sizeof(*calls));
	assert_non_null(calls);
	for (n = 0; n < t.call_count; n++)
		calls[n] = t.calls[n];
	for (uint32_t w = 0; w < t.worker_count; w++) {
		calls[n] = (struct blame_call){.worker = w, .c = t.calls[0].c};
		calls[n].c.comm = 77;
		calls[n].c.rank = (int32_t)w;
		calls[n].c.nranks = (int32_t)t.worker_count;
		calls[n].c.enter_ns = SECOND * 55 / 100;
		calls[n++].c.leave_ns = SECOND * 551 / 1000;
	}
	assert_int_equal(blame_find(t.workers, t.worker_count, calls, n, &b), 0);
	assert_in_range(b.steps, s.steps - 3, s.steps);
	assert_true(b.is_steady);
	blame_done(&b);
	free(calls);
	job_trace_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers_of_a_pipeline),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_what_has_just_come),
		cmocka_unit_test(test_what_comes_rarely),
		cmocka_unit_test(test_what_comes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
