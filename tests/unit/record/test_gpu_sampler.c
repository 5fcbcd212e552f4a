/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler with its child, which is this program again (see main). */
#include "store_fixture.h"

#include <poll.h>

#include "record/gpu/child.h"
#include "record/gpu/sampler.h"

#define PATIENCE_NS (20 * NS_PER_S) /* a busy machine; reached only by a failure */

static void test_back_off_doubles_to_a_minute(void **state)
{
	static const uint64_t seconds[] = {0, 1, 2, 4, 8, 16, 32, 60, 60};

	for (unsigned i = 0; i < ARRAY_SIZE(seconds); i++)
		assert_int_equal(gpu_sampler_backoff_ns(i), seconds[i] * NS_PER_S);
	assert_int_equal(gpu_sampler_backoff_ns(UINT32_MAX), 60 * NS_PER_S);
	assert_int_equal(gpu_sampler_patience_ns(0), 5 * NS_PER_S);
	assert_int_equal(gpu_sampler_patience_ns(3), 40 * NS_PER_S);
	assert_int_equal(gpu_sampler_patience_ns(4), 60 * NS_PER_S);
	assert_int_equal(gpu_sampler_patience_ns(UINT32_MAX), 60 * NS_PER_S);
}

static void keep(void *arg, const struct gpu_sample *s)
{
	*(struct gpu_sample *)arg = *s;
}

static enum gpu_state state_after(
	struct gpu_sampler *s, enum gpu_state before, struct gpu_sample *ret, char text[320])
{
	uint64_t end = mono_now().ns + PATIENCE_NS;
	enum gpu_state now;

	do {
		poll(NULL, 0, 1);
		gpu_sampler_poll(s, keep, ret);
		now = gpu_sampler_state(s, text, 320);
	} while (now == before && mono_now().ns < end);
	return now;
}

static void test_a_child_answers(void **state)
{
	struct scratch *folder = *state;
	struct gpu_sample got = {0};
	struct gpu_sampler *s = NULL;
	const struct gpu_row *rows;
	char text[320];
	size_t count;
	wall_time begin = wall_now();

	chmod(folder->folder, 0755); /* the child is another user */
	scratch_write(folder->path, "gpu0.temperature 77\n", 20);
	setenv("SIM_NVML_STATE", folder->path, 1);
	assert_int_equal(gpu_sampler_start(&s, SIM_NVML, GPU_SAMPLER_PERIOD_NS), 0);
	assert_null(gpu_sampler_identity(s));
	assert_int_equal(state_after(s, GPU_STARTING, &got, text), GPU_KNOWN);
	assert_string_equal(text, "1 GPU");
	assert_int_equal(got.temperature_c, 77);
	assert_true(got.time.ns >= begin.ns && got.time.ns <= wall_now().ns);
	assert_string_equal(gpu_sampler_identity(s)->model, "NVIDIA H200");
	assert_string_equal(gpu_sampler_identity(s)->driver, "580.65.06");
	assert_string_equal(gpu_sampler_identity(s)->cuda, "13.0");
	gpu_sampler_stop(s);
	rows = gpu_sampler_rows(s, &count); /* the last reading stays */
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].sample.temperature_c, 77);
	gpu_sampler_free(s);
}

static void test_no_library_is_a_state(void **state)
{
	struct gpu_sampler *s = NULL;
	struct gpu_sample got;
	char text[320];

	assert_int_equal(
		gpu_sampler_start(&s, "/nonexistent/libnvidia-ml.so.1", GPU_SAMPLER_PERIOD_NS), 0);
	assert_int_equal(state_after(s, GPU_STARTING, &got, text), GPU_ABSENT);
	assert_non_null(strstr(text, "absent: cannot open /nonexistent/libnvidia-ml.so.1"));
	gpu_sampler_free(s);
}

static void test_a_crash_is_a_state(void **state)
{
	struct scratch *folder = *state;
	struct gpu_sampler *s = NULL;
	struct gpu_sample got;
	char text[320];
	size_t count;

	chmod(folder->folder, 0755);
	scratch_write(folder->path, "crash 1\n", 8);
	setenv("SIM_NVML_STATE", folder->path, 1);
	assert_int_equal(gpu_sampler_start(&s, SIM_NVML, GPU_SAMPLER_PERIOD_NS), 0);
	assert_int_equal(state_after(s, GPU_STARTING, &got, text), GPU_NO_ANSWER);
	assert_non_null(strstr(text, "unknown since "));
	assert_non_null(strstr(text, "(the NVML process was killed by signal 6)"));
	gpu_sampler_rows(s, &count);
	assert_int_equal(count, 0);
	gpu_sampler_free(s);
}

static void test_states_have_names(void **state)
{
	assert_string_equal(gpu_state_name(GPU_STARTING), "starting");
	assert_string_equal(gpu_state_name(GPU_ABSENT), "absent");
	assert_string_equal(gpu_state_name(GPU_KNOWN), "known");
	assert_string_equal(gpu_state_name(GPU_NO_ANSWER), "unknown");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_back_off_doubles_to_a_minute),
		TEST(test_a_child_answers),
		TEST(test_no_library_is_a_state),
		TEST(test_a_crash_is_a_state),
		TEST(test_states_have_names),
	};

	if (gpu_child_is_meant(argc, argv))
		return gpu_child_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
