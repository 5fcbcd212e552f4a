/* SPDX-License-Identifier: Apache-2.0 */
/* test_measure.c - the figure a demo is about: right on made-up recordings, absent where there is
 * nothing to measure. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cli/demo_scenario.h"
#include "diagnose/compose/diagnose.h"
#include "scene.h"

static const char *sentence(enum measure m, const struct scene *s)
{
	static char text[512];
	struct recording rec = scene_recording(s);
	_cleanup_buf_ struct buf b = BUF_INIT(sizeof(text));
	_cleanup_free_ struct incident *list = NULL;
	size_t count = 0;

	assert_int_equal(diagnose_run(&rec, &list, &count), 0);
	if (!measure_put(&b, m, &rec, list, count)) {
		assert_int_equal(b.len, 0);
		return "";
	}
	assert_int_equal(b.err, 0);
	snprintf(text, sizeof(text), "%s", buf_str(&b));
	return text;
}

/* A job that reads its own files much is not "beside" itself. */
static void a_job_is_not_its_own_culprit(void **state)
{
	struct incident inc = {.pid = 7,
		.unit = "steps",
		.slow_p50_ns = 3000000,
		.baseline_ns = 1000000,
		.cause_count = 1};
	struct scene s = {0};
	struct recording rec = scene_recording(&s);

	snprintf(inc.causes[0].culprit, sizeof(inc.causes[0].culprit), "sim-train");
	for (uint32_t pid = 7; pid <= 8; pid++) {
		_cleanup_buf_ struct buf b = BUF_INIT(512);

		inc.causes[0].culprit_pid = pid;
		assert_true(measure_put(&b, MEASURE_SLOWDOWN, &rec, &inc, 1));
		assert_int_equal(strstr(buf_str(&b), "beside sim-train") != NULL, pid == 8);
	}
	scene_done(&s);
}

static void a_slowdown_names_the_culprit(void **state)
{
	struct scene s = {0};

	scene_hog(&s);
	scene_aggregate(&s);
	assert_string_equal(sentence(MEASURE_SLOWDOWN, &s),
		"steps take 69ms instead of 50ms beside sim-cpu-hog, 400 context switches");
	scene_done(&s);
}

static void first_calls_are_compared_with_later_ones(void **state)
{
	struct scene s = {0};

	scene_call(&s, CUDA_MALLOC, 0, 30000);
	for (int i = 1; i < 200; i++)
		scene_call(&s, CUDA_MALLOC, 50000 + i * 1000, 100);
	scene_aggregate(&s);
	assert_non_null(
		strstr(sentence(MEASURE_FIRST_CALLS, &s), "the first cudaMalloc took 30ms, "));
	scene_done(&s);

	scene_call(&s, CUDA_MALLOC, 0, 110);
	for (int i = 1; i < 200; i++)
		scene_call(&s, CUDA_MALLOC, 50000 + i * 1000, 100);
	scene_aggregate(&s);
	assert_string_equal(sentence(MEASURE_FIRST_CALLS, &s), "");
	scene_done(&s);
}

static void copies_are_a_share_of_wall_time(void **state)
{
	struct scene s = {0};

	for (int i = 0; i < 100; i++) {
		scene_call(&s, CUDA_MEMCPY, i * 10000, 4000);
		scene_call(&s, CUDA_STREAM_SYNC, i * 10000 + 4000, 6000);
	}
	scene_aggregate(&s);
	assert_non_null(
		strstr(sentence(MEASURE_COPIES, &s), "40 % of wall time (1.0s) in 100 copies"));
	scene_done(&s);
}

static void spikes_have_a_period_in_calls(void **state)
{
	struct scene s = {0};

	for (int i = 1; i <= 2000; i++)
		scene_call(&s, CUDA_MALLOC, i * 10000, i % 200 == 0 ? 2500 : 50);
	scene_aggregate(&s);
	assert_non_null(strstr(sentence(MEASURE_PERIOD, &s), "cudaMalloc "));
	assert_non_null(strstr(sentence(MEASURE_PERIOD, &s), "every 200 calls"));
	/* By time where most rows are missing. */
	for (size_t i = 0, n = s.event_count; i < n; i++)
		if (s.events[i].dur_ns < 1000000 && i > 1 && i + 1 < n)
			s.events[i].op = CUDA_FREE;
	assert_non_null(strstr(sentence(MEASURE_PERIOD, &s), "every 200 calls"));
	scene_done(&s);
}

static void nothing_is_made_up(void **state)
{
	struct scene s = {0};

	for (int m = MEASURE_SLOWDOWN; m <= MEASURE_PERIOD; m++)
		assert_string_equal(sentence((enum measure)m, &s), "");
	scene_call(&s, CUDA_STREAM_SYNC, 0, 100);
	scene_aggregate(&s);
	for (int m = MEASURE_SLOWDOWN; m <= MEASURE_PERIOD; m++)
		assert_string_equal(sentence((enum measure)m, &s), "");
	scene_calm(&s, CUDA_STREAM_SYNC, 1000, 500, 5000, 1000);
	assert_string_equal(sentence(MEASURE_PERIOD, &s), "");
	assert_string_equal(sentence(MEASURE_COPIES, &s), "");
	scene_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slowdown_names_the_culprit),
		cmocka_unit_test(a_job_is_not_its_own_culprit),
		cmocka_unit_test(first_calls_are_compared_with_later_ones),
		cmocka_unit_test(copies_are_a_share_of_wall_time),
		cmocka_unit_test(spikes_have_a_period_in_calls),
		cmocka_unit_test(nothing_is_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
