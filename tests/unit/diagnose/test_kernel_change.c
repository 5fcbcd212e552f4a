/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_change.c - whether slow steps run other kernels: said where the launches show it, and not where
 * they are few, are of the same kernels under other numbers, or were picked so that a kernel showed late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/chains/kernel_change.h"
#include "base/clock.h"
#include "base/macros.h"

#define JOB     100
#define T0      INT64_C(1700000000000000000)
#define STEP_NS ((int64_t)(20 * NS_PER_MS))
#define STEPS   100
#define SLOW    20 /* the last ones */

enum { GEMM_BF16 = 0x10, COPY_BF16, ADD, SGEMM, SGEMM_AGAIN, REDUCE, RARE, KERNELS_END };

struct scene {
	struct event events[4096];
	size_t event_count;
	struct kernel_use kernels[KERNELS_END - GEMM_BF16];
	struct step_mark marks[STEPS];
	struct recording rec;
	struct step_account account;
};

static void scene_init(struct scene *s)
{
	static const char *const names[] = {
		"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128>()",
		"void at::native::vectorized_elementwise_kernel<8, bfloat16_copy_kernel_cuda>(int)",
		"void add<float>(int)", "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256>()",
		"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256>()", "void reduce<float>(int)",
		"rare"};

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		s->kernels[i] = (struct kernel_use){
			.pid = JOB, .function = GEMM_BF16 + i, .name = names[i]};
	for (int i = 0; i < STEPS; i++)
		s->marks[i] = (struct step_mark){.start.ns = T0 + i * STEP_NS,
			.dur_ns = (uint64_t)STEP_NS,
			.is_slow = i >= STEPS - SLOW};
	s->account = (struct step_account){.pid = JOB,
		.steps = STEPS,
		.slow_steps = SLOW,
		.marks = s->marks,
		.mark_count = STEPS};
}

/* A launch of @function in step @step; its row has @flags. */
static void launch(struct scene *s, int step, uint64_t function, uint32_t flags)
{
	s->events[s->event_count++] =
		(struct event){.start.ns = T0 + step * STEP_NS + (int64_t)NS_PER_MS,
			.pid = JOB,
			.source = SOURCE_CUDA,
			.op = CUDA_LAUNCH,
			.arg0 = function,
			.flags = (uint16_t)flags};
}

/* Each of its steps shows @rows launches of @function, which stand for 10 each. */
static void launches(struct scene *s, int from, int to, int rows, uint64_t function)
{
	for (int i = from; i < to; i++)
		for (int k = 0; k < rows; k++)
			launch(s, i, function, WIRE_SAMPLE);
	s->kernels[function - GEMM_BF16].launches += (uint64_t)(to - from) * (uint64_t)rows * 10;
}

static struct kernel_change find(struct scene *s)
{
	struct kernel_change c;

	s->rec.events = s->events;
	s->rec.event_count = s->event_count;
	s->rec.kernels = s->kernels;
	s->rec.kernel_count = ARRAY_SIZE(s->kernels);
	assert_int_equal(kernel_change_find(&s->rec, &s->account, &c), 0);
	return c;
}

static void bf16_steps(struct scene *s, int from, int to)
{
	launches(s, from, to, 2, GEMM_BF16);
	launches(s, from, to, 1, COPY_BF16);
	launches(s, from, to, 1, ADD);
}

static void test_another_precision(void **state)
{
	struct scene s;
	struct kernel_change c;

	scene_init(&s);
	bf16_steps(&s, 0, STEPS - SLOW);
	launches(&s, STEPS - SLOW, STEPS, 1, REDUCE);
	launches(&s, STEPS - SLOW, STEPS, 2, SGEMM);
	launches(&s, STEPS - SLOW, STEPS, 1, ADD);
	c = find(&s);
	assert_int_equal(c.slow_rows, 4 * SLOW);
	assert_int_equal(c.new_rows, 3 * SLOW);
	assert_int_equal(c.from, KERNEL_OF_BF16);
	assert_int_equal(c.to, KERNEL_OF_FP32);
	assert_int_equal(c.added_count, 2);
	assert_non_null(strstr(c.added[0].name, "sgemm")); /* matrix products first */
	assert_float_equal(c.added[0].in_step, 20, 0.01);
	assert_non_null(strstr(c.added[1].name, "reduce"));
	assert_non_null(strstr(c.gone.name, "bf16_s16816gemm"));
}

static void test_the_same_mix(void **state)
{
	struct scene s;

	scene_init(&s);
	bf16_steps(&s, 0, STEPS);
	assert_int_equal(find(&s).new_rows, 0);
}

/* A library asks for the same kernel again and gets another number. */
static void test_the_same_kernel_by_another_number(void **state)
{
	struct scene s;

	scene_init(&s);
	launches(&s, 0, STEPS - SLOW, 2, SGEMM);
	launches(&s, STEPS - SLOW, STEPS, 2, SGEMM_AGAIN);
	assert_int_equal(find(&s).new_rows, 0);
}

/* Every step runs the second kernel, but only its first launches were picked before something shifted. */
static void test_launches_that_were_picked_later(void **state)
{
	struct scene s;

	scene_init(&s);
	launches(&s, 0, STEPS - SLOW, 2, GEMM_BF16);
	launches(&s, STEPS - SLOW, STEPS, 2, SGEMM);
	assert_int_equal(find(&s).new_rows, 2 * SLOW); /* the control */
	s.kernels[SGEMM - GEMM_BF16].launches = s.kernels[GEMM_BF16 - GEMM_BF16].launches;
	assert_int_equal(find(&s).new_rows, 0);
}

/* Slow launches, first ones and those inside another call say nothing about how often a kernel runs. */
static void test_rows_that_were_not_picked(void **state)
{
	static const uint32_t flags[] = {WIRE_SLOW, WIRE_AFTER_GAP, 0, WIRE_SAMPLE | WIRE_NESTED};

	for (size_t k = 0; k < ARRAY_SIZE(flags); k++) {
		struct scene s;

		scene_init(&s);
		bf16_steps(&s, 0, STEPS);
		for (int i = STEPS - SLOW; i < STEPS; i++)
			for (int n = 0; n < 8; n++)
				launch(&s, i, SGEMM, flags[k]);
		assert_int_equal(find(&s).new_rows, 0);
	}
}

static void test_too_few_to_tell(void **state)
{
	struct scene s;

	scene_init(&s);
	bf16_steps(&s, 0, STEPS - SLOW);
	launches(&s, STEPS - 3, STEPS, 1, SGEMM);
	assert_int_equal(find(&s).new_rows, 0);
}

/* Where many kernels were seen once, that some are first seen in slow steps is chance. */
static void rare_kernels(int times, uint32_t expected)
{
	struct kernel_use kernels[STEPS];
	char names[STEPS][16];
	struct kernel_change c;
	struct scene s;

	scene_init(&s);
	for (int i = 0; i < STEPS; i++) {
		snprintf(names[i], sizeof(names[i]), "rare_%d", i);
		kernels[i] = (struct kernel_use){.pid = JOB,
			.function = 0x1000 + (uint64_t)i,
			.launches = 10,
			.name = names[i]};
		for (int k = 0; k < times; k++)
			launch(&s, i, 0x1000 + (uint64_t)i, WIRE_SAMPLE);
	}
	find(&s);
	s.rec.kernels = kernels;
	s.rec.kernel_count = STEPS;
	assert_int_equal(kernel_change_find(&s.rec, &s.account, &c), 0);
	assert_int_equal(c.new_rows, expected);
}

static void test_a_program_with_many_rare_kernels(void **state)
{
	rare_kernels(1, 0);
	rare_kernels(4, 4 * SLOW); /* the control: what runs is seen more than once */
}

static void test_no_names(void **state)
{
	struct scene s;

	scene_init(&s);
	launches(&s, 0, STEPS - SLOW, 2, GEMM_BF16);
	launches(&s, STEPS - SLOW, STEPS, 2, SGEMM);
	assert_int_equal(find(&s).new_rows, 2 * SLOW);
	s.rec.kernel_count = 0;
	{
		struct kernel_change c;

		assert_int_equal(kernel_change_find(&s.rec, &s.account, &c), 0);
		assert_int_equal(c.new_rows, 0);
	}
}

/* One that came with the slow steps, beside the same others. Rows do not show it: they are one in 256. */
static struct kernel_change with_added(
	const char *name, int64_t first_ns, uint64_t each, bool all_named)
{
	struct scene s;
	struct kernel_use *added = &s.kernels[REDUCE - GEMM_BF16];

	scene_init(&s);
	s.account.ordinary_steps = STEPS - SLOW;
	s.account.slow_first.ns = s.marks[STEPS - SLOW].start.ns;
	for (size_t i = 0; i < ARRAY_SIZE(s.kernels); i++)
		s.kernels[i].first.ns = T0;
	bf16_steps(&s, 0, STEPS);
	added->name = name;
	if (!all_named)
		s.kernels[0].name = NULL;
	added->first.ns = s.account.slow_first.ns + first_ns;
	added->launches = SLOW * each;
	return find(&s);
}

static void test_a_kernel_that_came(void **state)
{
	static const struct {
		const char *name;
		int64_t first_ns;
		uint64_t each;
		int expected;
		bool all_named;
	} rows[] = {{"void CatArrayBatchedCopy<float, 4>(int)", NS_PER_S, 17, 1, true},
		{"void CatArrayBatchedCopy<float, 4>(int)", NS_PER_S, 17, 0, false},
		{"void CatArrayBatchedCopy<float, 4>(int)", -(int64_t)NS_PER_S, 17, 0, true},
		{"void CatArrayBatchedCopy<float, 4>(int)", 9 * NS_PER_S, 17, 0, true},
		{"void CatArrayBatchedCopy<float, 4>(int)", NS_PER_S, 0, 0, true},
		/* another shape or type of a known one */
		{"void add<double>(int)", NS_PER_S, 17, 0, true},
		{"nvjet_sm90_64x8_bias", NS_PER_S, 17, 0, true}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kernel_change c =
			with_added(rows[i].name, rows[i].first_ns, rows[i].each, rows[i].all_named);

		assert_int_equal(c.new_rows, 0);
		assert_int_equal(c.added_count, rows[i].expected);
		if (c.added_count)
			assert_float_equal(c.added[0].in_step, 17, 0.01);
	}
}

/* Counts are read every few seconds: a kernel whose rows are older than its count did not come with the slow steps. */
static void test_a_kernel_that_was_counted_late(void **state)
{
	for (int rows = 0; rows < 2; rows++) {
		struct scene s;
		struct kernel_change c;

		scene_init(&s);
		s.account.ordinary_steps = STEPS - SLOW;
		s.account.slow_first.ns = s.marks[STEPS - SLOW].start.ns;
		for (size_t i = 0; i < ARRAY_SIZE(s.kernels); i++)
			s.kernels[i].first.ns = T0;
		s.kernels[REDUCE - GEMM_BF16].first.ns =
			s.account.slow_first.ns + (int64_t)NS_PER_MS;
		s.kernels[REDUCE - GEMM_BF16].launches = SLOW * 17;
		if (rows)
			launch(&s, 3, REDUCE, WIRE_SAMPLE);
		c = find(&s);
		assert_int_equal(c.added_count, !rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_precision),
		cmocka_unit_test(test_the_same_mix),
		cmocka_unit_test(test_the_same_kernel_by_another_number),
		cmocka_unit_test(test_launches_that_were_picked_later),
		cmocka_unit_test(test_rows_that_were_not_picked),
		cmocka_unit_test(test_too_few_to_tell),
		cmocka_unit_test(test_a_program_with_many_rare_kernels),
		cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_a_kernel_that_came),
		cmocka_unit_test(test_a_kernel_that_was_counted_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
