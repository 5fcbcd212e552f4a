/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_pcie.c - copies that take a process's time: because of the link, of memory, of bytes; and
 * copies that only look long because they wait. */
#include "ranks_fixture.h"

#define MIB (1u << 20)

/* @n steps of 10 ms: a copy of @bytes that takes @us, then a wait of 2 ms. */
static void steps(struct scene *s, int n, uint64_t bytes, int64_t us)
{
	for (int i = 0; i < n; i++) {
		struct event *e = scene_call(s, CUDA_MEMCPY, i * 10000, us);

		e->arg0 = bytes;
		e->arg1 = 1;
		scene_call(s, CUDA_STREAM_SYNC, i * 10000 + 7000, 2000);
	}
}

static void sum_bytes(struct scene *s)
{
	scene_aggregate(s);
	for (size_t i = 0; i < s->event_count; i++)
		for (size_t k = 0; k < s->aggregate_count; k++)
			if (s->events[i].op == s->aggregates[k].op &&
				s->events[i].start.ns - s->events[i].start.ns % 5000000000 ==
					s->aggregates[k].bucket.ns &&
				s->events[i].op == CUDA_MEMCPY)
				s->aggregates[k].sum_arg0 += s->events[i].arg0;
}

static struct gpu_sample link_of(int64_t gen, int64_t width)
{
	struct gpu_sample g;

	gpu_sample_init(&g);
	g.time.ns = SCENE_T0_NS;
	g.pcie_gen = gen;
	g.pcie_width = width;
	return g;
}

#define SCENE _cleanup_(scene_done) struct scene s = {.seed = 1}

static void a_slow_link(void **state)
{
	struct gpu_sample narrow = link_of(1, 1), wide = link_of(5, 16);
	struct recording rec;
	SCENE;

	steps(&s, 1000, MIB, 5000); /* 210 MB/s, half of the time */
	sum_bytes(&s);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.list[0].problem, PROBLEM_PCIE);
	assert_int_equal(a.list[0].severity, SEVERITY_MEDIUM);
	assert_non_null(strstr(a.list[0].summary, "memcpy 50 % of wall time"));
	assert_non_null(strstr(a.list[0].root_cause, "a slow link or unpinned memory"));
	rec.gpus = &narrow;
	rec.gpu_count = 1;
	ANSWER b = answer_to(&rec);
	assert_non_null(strstr(b.list[0].root_cause, "slow link: 1000 MiB"));
	assert_non_null(strstr(b.list[0].root_cause, "PCIe 1 x1"));
	rec.gpus = &wide;
	ANSWER c = answer_to(&rec);
	assert_non_null(strstr(c.list[0].root_cause, "unpinned memory"));
}

static void many_bytes_at_the_speed_of_the_link(void **state)
{
	struct gpu_sample wide = link_of(4, 16);
	struct recording rec;
	SCENE;

	steps(&s, 1000, 100 * MIB, 4000); /* 26 GB/s */
	sum_bytes(&s);
	rec = scene_recording(&s);
	rec.gpus = &wide;
	rec.gpu_count = 1;
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	assert_non_null(strstr(a.list[0].root_cause, "large transfers"));
}

static void large_but_quick(void **state)
{
	struct recording rec;
	SCENE;

	steps(&s, 1000, 16 * MIB, 800);
	sum_bytes(&s);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 0);
}

/* Kernels before the copy make it long; the first copy shows what it takes itself. */
static void copies_that_wait_are_not_certain(void **state)
{
	struct recording rec;
	SCENE;

	steps(&s, 1000, MIB, 5000);
	s.events[0].dur_ns = 50000;
	sum_bytes(&s);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	for (size_t i = 0; i < a.count; i++)
		assert_int_equal(a.list[i].severity, SEVERITY_LOW);
}

/* Results that are fetched wait for their kernel: the copies the other way show what bytes take. */
static void results_that_wait_for_their_kernel(void **state)
{
	struct recording rec;
	SCENE;

	for (int i = 0; i < 1000; i++) {
		struct event *in = scene_call(&s, CUDA_MEMCPY, i * 10000, 200), *back;

		in->arg0 = 2 * MIB;
		in->arg1 = 1;
		back = scene_call(&s, CUDA_MEMCPY, i * 10000 + 300, 5000);
		back->arg0 = 2 * MIB;
		back->arg1 = 2;
		scene_call(&s, CUDA_STREAM_SYNC, i * 10000 + 7000, 2000);
	}
	sum_bytes(&s);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_non_null(answer_of(&a, PROBLEM_PCIE));
	assert_int_equal(answer_of(&a, PROBLEM_PCIE)->severity, SEVERITY_LOW);
	assert_non_null(strstr(
		answer_of(&a, PROBLEM_PCIE)->root_cause, "wait for work queued before them"));
}

static void small_copies_are_waits(void **state)
{
	struct recording rec;
	SCENE;

	steps(&s, 1000, 4, 5000);
	sum_bytes(&s);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_null(answer_of(&a, PROBLEM_PCIE));
}

static void without_aggregates_nothing_is_said(void **state)
{
	struct recording rec;
	SCENE;

	steps(&s, 1000, MIB, 5000);
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	assert_null(answer_of(&a, PROBLEM_PCIE));
	sum_bytes(&s); /* control */
	rec = scene_recording(&s);
	ANSWER b = answer_to(&rec);
	assert_non_null(answer_of(&b, PROBLEM_PCIE));
}

static void huge_values_do_no_harm(void **state)
{
	struct recording rec;
	SCENE;

	steps(&s, 100, UINT64_MAX, 5000);
	sum_bytes(&s);
	for (size_t i = 0; i < s.aggregate_count; i++)
		s.aggregates[i].sum_arg0 = UINT64_MAX;
	rec = scene_recording(&s);
	ANSWER a = answer_to(&rec);
	for (size_t i = 0; i < a.count; i++) /* no sane copy to know a rate from */
		assert_null(strstr(a.list[i].summary, "B/s"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_link),
		cmocka_unit_test(many_bytes_at_the_speed_of_the_link),
		cmocka_unit_test(large_but_quick),
		cmocka_unit_test(copies_that_wait_are_not_certain),
		cmocka_unit_test(results_that_wait_for_their_kernel),
		cmocka_unit_test(small_copies_are_waits),
		cmocka_unit_test(without_aggregates_nothing_is_said),
		cmocka_unit_test(huge_values_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
