/* SPDX-License-Identifier: Apache-2.0 */
/* test_pattern.c - each row of the table: what a delay is called, by its kind and what else is known of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/findings/pattern.h"
#include "base/macros.h"

enum { JOB = 7, OTHER = 8 };

static const struct process_home homes[] = {{.pid = JOB, .container_id = "aaaaaaaaaaaa"},
	{.pid = OTHER, .container_id = "bbbbbbbbbbbb"}};

struct row {
	enum delay_kind kind;
	enum resource end;
	enum time_contrast contrast;
	enum step_origin origin;
	enum problem want;
};

static enum problem problem_of(const struct row *r)
{
	const struct recording rec = {0};
	const struct step_account a = {.pid = JOB, .origin = r->origin};
	const struct delay d = {
		.kind = r->kind, .slow_ns = 100, .share = 0.9, .end.resource = r->end};

	return pattern_problem(&rec, &a, r->contrast, &d);
}

static void test_rows(void **state)
{
	static const struct row rows[] = {
		{DELAY_BY_CHECKPOINT, .want = PROBLEM_CHECKPOINT},
		{DELAY_BY_COMPILE, .want = PROBLEM_KERNEL_COMPILER},
		{DELAY_BY_HOST, .end = RESOURCE_COMPILER, .want = PROBLEM_KERNEL_COMPILER},
		{DELAY_BY_PROCESS, .end = RESOURCE_COMPILER, .want = PROBLEM_KERNEL_COMPILER},
		{DELAY_BY_GPU, .end = RESOURCE_GPU_CLOCK, .want = PROBLEM_THROTTLE},
		{DELAY_BY_GPU, .end = RESOURCE_GPU_POWER, .want = PROBLEM_THROTTLE},
		{DELAY_BY_GPU, .end = RESOURCE_GPU_HEAT, .want = PROBLEM_THROTTLE},
		{DELAY_BY_GPU, .end = RESOURCE_GPU_PROCESS, .want = PROBLEM_GPU_SHARING},
		{DELAY_BY_COPY, .end = RESOURCE_GPU_PROCESS, .want = PROBLEM_GPU_SHARING},
		{DELAY_BY_GPU, .want = PROBLEM_GOODPUT},
		{DELAY_BY_COPY, .want = PROBLEM_PCIE},
		{DELAY_BY_ALLOCATION, .want = PROBLEM_GPU_MEMORY},
		{DELAY_BY_CPU, .want = PROBLEM_CPU_CONTENTION},
		{DELAY_BY_GIL, .want = PROBLEM_CPU_CONTENTION},
		{DELAY_BY_LOADER, .want = PROBLEM_STARVATION},
		{DELAY_BY_DISK, .end = RESOURCE_DISK_READ, .want = PROBLEM_STARVATION},
		{DELAY_BY_DISK, .end = RESOURCE_DISK_WRITE, .want = PROBLEM_GOODPUT},
		{DELAY_BY_NETWORK, .want = PROBLEM_TOOL_CALLS},
		{DELAY_BY_NETWORK, .contrast = CONTRAST_WHOLE, .origin = STEP_BY_WAIT,
			.want = PROBLEM_AGENT_COST},
		{DELAY_BY_NETWORK, .contrast = CONTRAST_WHOLE, .origin = STEP_BY_OPTIMIZER,
			.want = PROBLEM_TOOL_CALLS},
		{DELAY_BY_ASLEEP, .contrast = CONTRAST_WHOLE, .want = PROBLEM_STARVATION},
		{DELAY_BY_ASLEEP, .contrast = CONTRAST_SLOW, .want = PROBLEM_GOODPUT},
		{DELAY_BY_HOST, .want = PROBLEM_GOODPUT},
		{DELAY_BY_UNKNOWN, .want = PROBLEM_GOODPUT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (problem_of(&rows[i]) != rows[i].want)
			fail_msg("row %zu: %s, not %s", i, problem_row(problem_of(&rows[i]))->id,
				problem_row(rows[i].want)->id);
}

/* Whatever a delay is and wherever it leads, it is something. */
static void test_every_delay_is_a_problem(void **state)
{
	for (int kind = 0; kind < DELAY_KINDS; kind++)
		for (int end = 0; end < RESOURCE_COUNT; end++)
			for (int contrast = 0; contrast < 2; contrast++) {
				const struct row r = {.kind = (enum delay_kind)kind,
					.end = (enum resource)end,
					.contrast = (enum time_contrast)contrast};

				assert_non_null(problem_row(problem_of(&r)));
				assert_int_not_equal(problem_of(&r), PROBLEM_SLOW_CALL);
			}
}

/* A rival in another container is a neighbour; where nothing is known of containers it is a rival. */
static void test_neighbours(void **state)
{
	static const enum delay_kind kinds[] = {DELAY_BY_CPU, DELAY_BY_DISK};
	const struct account_entry lead = {.culprit_pid = OTHER, .culprit = "burner"};
	const struct step_account a = {.pid = JOB};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct delay d = {.kind = kinds[i], .slow_ns = 100, .lead = &lead};
		struct recording rec = {.homes = homes, .home_count = ARRAY_SIZE(homes)};

		assert_int_equal(
			pattern_problem(&rec, &a, CONTRAST_SLOW, &d), PROBLEM_NOISY_NEIGHBOUR);
		rec.home_count = 1;
		assert_int_not_equal(
			pattern_problem(&rec, &a, CONTRAST_SLOW, &d), PROBLEM_NOISY_NEIGHBOUR);
	}
}

/* Another model is copied to the GPU in a few units, whatever line its time is on. */
static void test_another_model_is_loaded(void **state)
{
	const struct recording rec = {0};
	const struct delay d = {.kind = DELAY_BY_COPY, .slow_ns = 100};
	struct step_account a = {.pid = JOB,
		.ordinary_steps = 100,
		.slow_steps = 5,
		.ordinary_bytes = 1 << 20,
		.slow_bytes = 1 << 30};

	assert_int_equal(pattern_problem(&rec, &a, CONTRAST_SLOW, &d), PROBLEM_MODEL_SWAP);
	assert_int_equal(pattern_problem(&rec, &a, CONTRAST_WHOLE, &d), PROBLEM_PCIE);
	a.slow_steps = 500; /* no exception any more */
	assert_int_equal(pattern_problem(&rec, &a, CONTRAST_SLOW, &d), PROBLEM_PCIE);
	a.slow_steps = 5;
	a.ordinary_bytes = 1 << 29;
	assert_int_equal(pattern_problem(&rec, &a, CONTRAST_SLOW, &d), PROBLEM_PCIE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_every_delay_is_a_problem),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_another_model_is_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
