/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_change.c - kernels that came with slow steps are told, and none that were there before, that were counted late
 * or that a library chose for another shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "diagnose/chains/gpu_change.h"
#include "base/clock.h"
#include "base/macros.h"

#define JOB     100
#define T0      INT64_C(1700000000000000000)
#define STEP_NS ((int64_t)(20 * NS_PER_MS))
#define STEPS   100
#define SLOW    20 /* the last ones */
#define SINCE   (T0 + (STEPS - SLOW) * STEP_NS)

enum { GEMM, COPY, ADD, CAME, ALSO, KERNELS };

struct scene {
	struct kernel_use kernels[KERNELS];
	struct event launch; /* a row of it */
	struct recording rec;
	struct step_account account;
};

static void scene_init(struct scene *s)
{
	static const char *const names[] = {
		"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128>()",
		"void at::native::vectorized_elementwise_kernel<8, bfloat16_copy_kernel_cuda>(int)",
		"void add<float>(int)", "void reduce<float>(int)", "void reduce<float>(int)"};

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < KERNELS; i++)
		s->kernels[i] = (struct kernel_use){.pid = JOB,
			.function = 0x10 + i,
			.first.ns = T0,
			.launches = (uint64_t)STEPS * 10,
			.name = names[i]};
	s->launch = (struct event){.start.ns = T0 + NS_PER_MS,
		.pid = JOB,
		.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH,
		.arg0 = 0x10 + GEMM};
	s->account = (struct step_account){.pid = JOB,
		.steps = STEPS,
		.ordinary_steps = STEPS - SLOW,
		.slow_steps = SLOW,
		.slow_first.ns = SINCE};
}

/* @name is launched @each times in a slow step, for the first time @first_ns after these have begun. */
static void came(struct scene *s, int kernel, const char *name, int64_t first_ns, uint64_t each)
{
	s->kernels[kernel].name = name;
	s->kernels[kernel].first.ns = SINCE + first_ns;
	s->kernels[kernel].launches = SLOW * each;
}

static struct kernel_change find(struct scene *s)
{
	struct kernel_change c;

	s->rec = (struct recording){.events = &s->launch,
		.event_count = 1,
		.kernels = s->kernels,
		.kernel_count = KERNELS};
	assert_int_equal(kernel_change_find(&s->rec, &s->account, &c), 0);
	return c;
}

static void test_the_same_kernels(void **state)
{
	struct scene s;

	scene_init(&s);
	assert_int_equal(find(&s).added_count, 0);
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
		struct scene s;
		struct kernel_change c;

		scene_init(&s);
		came(&s, CAME, rows[i].name, rows[i].first_ns, rows[i].each);
		if (!rows[i].all_named)
			s.kernels[GEMM].name = NULL;
		c = find(&s);
		assert_int_equal(c.added_count, rows[i].expected);
		assert_int_equal(c.to, KERNEL_OF_UNKNOWN);
		if (c.added_count)
			assert_float_equal(c.added[0].in_step, 17, 0.01);
	}
}

/* Counts are read every few seconds: a kernel whose rows are older than its count did not come with the slow steps. */
static void test_a_kernel_that_was_counted_late(void **state)
{
	for (int rows = 0; rows < 2; rows++) {
		struct scene s;

		scene_init(&s);
		came(&s, CAME, "cat", (int64_t)NS_PER_MS, 17);
		s.launch.arg0 = rows ? s.kernels[CAME].function : 0;
		assert_int_equal(find(&s).added_count, !rows);
	}
}

/* A library asks for the same kernel again and gets another number. */
static void test_the_same_kernel_by_another_number(void **state)
{
	struct scene s;

	scene_init(&s);
	came(&s, CAME, s.kernels[ADD].name, NS_PER_MS, 17);
	assert_int_equal(find(&s).added_count, 0);
}

static void test_another_precision(void **state)
{
	static const char sgemm[] = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256>()";
	struct scene s;
	struct kernel_change c;

	scene_init(&s);
	came(&s, CAME, sgemm, NS_PER_MS, 20);
	came(&s, ALSO, "void reduce<float>(int)", NS_PER_MS, 10);
	c = find(&s);
	assert_int_equal(c.from, KERNEL_OF_BF16);
	assert_int_equal(c.to, KERNEL_OF_FP32);
	assert_int_equal(c.added_count, 2);
	assert_string_equal(c.added[0].name, sgemm);
	s.kernels[COPY].name =
		"sgemm_64x64"; /* some were in that precision before: a few, or many */
	s.kernels[COPY].launches = s.kernels[GEMM].launches / 20;
	assert_int_equal(find(&s).to, KERNEL_OF_FP32);
	s.kernels[COPY].launches = s.kernels[GEMM].launches / 5;
	c = find(&s);
	assert_int_equal(c.to, KERNEL_OF_UNKNOWN);
	assert_int_equal(c.added_count, 1);
}

/* A quarter more to copy makes steps a quarter longer, and not six times as long: that is the kernels. */
static void test_a_little_more_work(void **state)
{
	struct scene s;
	struct gpu_change gpu;

	scene_init(&s);
	came(&s, CAME, "sgemm_128x128", NS_PER_MS, 20);
	find(&s);
	s.account.ordinary_bytes = 800e6;
	s.account.slow_bytes = 1000e6;
	s.account.ordinary_step_ns = 50 * NS_PER_MS;
	s.account.slow_step_ns = 300 * NS_PER_MS;
	assert_int_equal(gpu_change_find(&s.rec, &s.account, &gpu), 0);
	assert_int_equal(gpu.reason, GPU_BY_KERNELS);
	s.account.slow_step_ns = 60 * NS_PER_MS;
	assert_int_equal(gpu_change_find(&s.rec, &s.account, &gpu), 0);
	assert_int_equal(gpu.reason, GPU_BY_WORK);
}

static void test_no_names(void **state)
{
	struct scene s;
	struct kernel_change c;

	scene_init(&s);
	came(&s, CAME, "cat", NS_PER_MS, 17);
	assert_int_equal(find(&s).added_count, 1);
	s.rec.kernel_count = 0;
	assert_int_equal(kernel_change_find(&s.rec, &s.account, &c), 0);
	assert_int_equal(c.added_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_kernels),
		cmocka_unit_test(test_a_kernel_that_came),
		cmocka_unit_test(test_a_kernel_that_was_counted_late),
		cmocka_unit_test(test_the_same_kernel_by_another_number),
		cmocka_unit_test(test_another_precision),
		cmocka_unit_test(test_a_little_more_work),
		cmocka_unit_test(test_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
