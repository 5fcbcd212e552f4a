/* SPDX-License-Identifier: Apache-2.0 */
/* test_job_hard.c - a hard job is what its traits say, and nothing else of it changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/simulate/play.h"
#include "cluster/simulate/job.h"
#include "wire/ids.h"

#define MS 1000000

static struct job_spec small(void)
{
	return (struct job_spec){.seed = 11,
		.data = 4,
		.tensor = 1,
		.pipeline = 1,
		.microbatches = 1,
		.buckets = 2,
		.clips = true,
		.steps = 12,
		.step_ns = 100 * MS};
}

/* Times at which the worker's calls of @op began; how many. */
static size_t enters(const struct job_trace *t, uint32_t worker, uint16_t op, int64_t ret[1024])
{
	size_t n = 0;

	for (size_t i = 0; i < t->call_count && n < 1024; i++)
		if (t->calls[i].worker == worker && t->calls[i].c.op == op)
			ret[n++] = t->calls[i].c.enter_ns;
	return n;
}

static void test_ends_are_apart_but_not_farther(void **state)
{
	struct job_spec s = small();
	_cleanup_(job_trace_done) struct job_trace t = {0};
	int64_t least = INT64_MAX, most = 0;

	s.ends_ns = 5 * MS;
	assert_int_equal(job_run(&s, &t), 0);
	for (uint64_t seq = 0; seq < 20; seq++) {
		int64_t first = INT64_MAX, last = 0;

		for (size_t i = 0; i < t.call_count; i++)
			if (t.calls[i].c.seq == seq && t.calls[i].c.bytes > 4) {
				first = MIN(first, t.calls[i].c.leave_ns);
				last = MAX(last, t.calls[i].c.leave_ns);
			}
		least = MIN(least, last - first);
		most = MAX(most, last - first);
	}
	assert_true(least > 0);
	assert_in_range(most, MS, 5 * MS);
}

static void test_a_barrier_is_felt_and_not_recorded(void **state)
{
	struct job_spec s = small();
	_cleanup_(job_trace_done) struct job_trace without = {0}, with = {0};
	int64_t a[1024], b[1024];

	s.data = 2;
	s.clips = false;
	s.ends_ns = 20 * MS; /* what the barrier makes up for */
	assert_int_equal(job_run(&s, &without), 0);
	s.traits = 1U << JOB_TRAIT_BARRIER;
	assert_int_equal(job_run(&s, &with), 0);
	assert_int_equal(with.call_count, without.call_count);
	assert_int_equal(enters(&with, 0, NCCL_ALL_REDUCE, a), 24);
	assert_int_equal(enters(&with, 1, NCCL_ALL_REDUCE, b), 24);
	for (size_t i = 0; i < 24; i += 2)
		assert_int_equal(a[i], b[i]); /* the first of a step: all set out together */
	enters(&without, 0, NCCL_ALL_REDUCE, a);
	enters(&without, 1, NCCL_ALL_REDUCE, b);
	assert_int_not_equal(a[2], b[2]);
}

static void test_a_recv_is_posted_under_compute(void **state)
{
	struct job_spec s = small();
	_cleanup_(job_trace_done) struct job_trace t = {0};
	size_t covered = 0;

	s.pipeline = 3;
	s.data = 1;
	s.microbatches = 6;
	s.traits = 1U << JOB_TRAIT_POSTED;
	assert_int_equal(job_run(&s, &t), 0);
	for (size_t i = 1; i < t.call_count; i++) {
		const struct push_call *c = &t.calls[i].c, *before = &t.calls[i - 1].c;

		if (t.calls[i].worker != t.calls[i - 1].worker || c->op != NCCL_RECV)
			continue;
		covered += c->enter_ns < before->leave_ns;
		/* what is exposed is no more than what came after the last call */
		assert_true(c->wait_ns <= (uint64_t)(c->leave_ns - before->leave_ns));
	}
	assert_true(covered > 50);
}

static void test_a_late_gpu_is_on_time_by_its_calls(void **state)
{
	struct job_spec s = small();
	_cleanup_(job_trace_done) struct job_trace t = {0};
	int64_t late[1024], other[1024];
	size_t n;

	s.async = true;
	s.fault = JOB_GPU;
	s.faulty[0] = 2;
	s.faulty_count = 1;
	s.amount = 0.5;
	s.host_share = 0.1;
	assert_int_equal(job_run(&s, &t), 0);
	n = enters(&t, 2, NCCL_ALL_REDUCE, late);
	assert_int_equal(enters(&t, 0, NCCL_ALL_REDUCE, other), n);
	assert_true(n > 30);
	for (size_t i = 0; i < n; i++)
		assert_in_range(late[i] - other[i] + MS, 0, 2 * MS);
	assert_true((int64_t)t.span_ns > 12 * (int64_t)(140 * MS));
}

/* Its node's clock tells it, or that it has come to launch more than the others while the job takes longer for its steps. */
static void test_a_late_gpu_is_told_by_its_node(void **state)
{
	static const uint64_t played[] = {53000018, 51000018}; /* a low clock; more launches */

	for (size_t i = 0; i < ARRAY_SIZE(played); i++) {
		struct verdict v;

		assert_int_equal(verdict_of_random(played[i], JOB_GPU,
					 &(struct verdict_how){.stretch = 1, .is_hard = true}, &v),
			0);
		print_message("# %s: %s\n", v.truth, v.said);
		assert_true(v.right);
		assert_int_equal(v.false_alarms, 0);
		assert_int_equal(strstr(v.said, "kernels than the others") != NULL, i);
	}
}

static void test_who_comes_late_counts_by_himself(void **state)
{
	struct job_spec s = small();
	_cleanup_(job_trace_done) struct job_trace whole = {0}, named = {0}, nameless = {0};
	int64_t last[4] = {0};

	s.pipeline = 2;
	assert_int_equal(job_run(&s, &whole), 0);
	assert_int_equal(job_run(&s, &named), 0);
	s.met_ns = 400 * MS;
	s.met_for_ns = 200 * MS;
	job_trace_meet(&named, &s, 1);
	assert_in_range(named.call_count, 1, whole.call_count - 1);
	for (size_t i = 0; i < named.call_count; i++) {
		assert_true(named.calls[i].c.enter_ns >= 400 * MS);
		assert_int_not_equal(named.calls[i].c.comm, 0);
	}
	s.traits = 1U << JOB_TRAIT_NAMELESS;
	assert_int_equal(job_run(&s, &nameless), 0);
	job_trace_meet(&nameless, &s, 1);
	assert_int_equal(nameless.call_count, named.call_count);
	for (size_t i = 0; i < nameless.call_count; i++) {
		const struct push_call *c = &nameless.calls[i].c;
		int64_t own = -(int64_t)c->seq;

		assert_int_equal(c->comm, 0);
		assert_true(own > 0 && own >> 40 > 0);
		if (c->op == NCCL_ALL_REDUCE && c->bytes == 4 && nameless.calls[i].worker < 4) {
			assert_true(own > last[nameless.calls[i].worker]);
			last[nameless.calls[i].worker] = own;
		}
	}
	for (size_t i = 0; i < 4; i++)
		assert_true(last[i] > 0);
}

static void test_traits_come_with_the_seed(void **state)
{
	uint32_t seen[JOB_TRAIT_COUNT] = {0};

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct job_spec s = job_spec_random(
					seed, (enum job_fault)(seed % (JOB_EXPERT + 1))),
				again = s;

		job_spec_harden(&s);
		job_spec_harden(&again);
		assert_memory_equal(&s, &again, sizeof(s));
		assert_true(s.ends_ns <= 10 * MS && s.step_ns <= UINT64_C(47000) * MS);
		assert_true(s.fault != JOB_GPU || (s.async && s.per_node == 1));
		for (int t = 0; t < JOB_TRAIT_COUNT; t++)
			seen[t] += job_has(&s, (enum job_trait)t);
	}
	for (int t = 0; t < JOB_TRAIT_COUNT; t++)
		assert_in_range(seen[t], 20, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_are_apart_but_not_farther),
		cmocka_unit_test(test_a_barrier_is_felt_and_not_recorded),
		cmocka_unit_test(test_a_recv_is_posted_under_compute),
		cmocka_unit_test(test_a_late_gpu_is_on_time_by_its_calls),
		cmocka_unit_test(test_a_late_gpu_is_told_by_its_node),
		cmocka_unit_test(test_who_comes_late_counts_by_himself),
		cmocka_unit_test(test_traits_come_with_the_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
