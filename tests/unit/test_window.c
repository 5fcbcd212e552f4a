/* SPDX-License-Identifier: Apache-2.0 */
/* test_window.c - what a thread did in given windows, to the microsecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/calls/window.h"
#include "scene.h"

#define SCENE _cleanup_(scene_done) struct scene s = {.seed = 1}

static struct window window_at(int64_t from_us, int64_t to_us)
{
	return (struct window){SCENE_T0_NS + from_us * 1000, SCENE_T0_NS + to_us * 1000, VICTIM};
}

static void uses_are_told_apart(void **state)
{
	struct window w[] = {window_at(0, 10000), window_at(20000, 30000)};
	struct window_use u;
	struct recording rec;
	char text[160];
	SCENE;

	scene_stay(&s, VICTIM, 1000, 2000, 2000, WIRE_PREEMPTED, HOG, "hog");
	scene_stay(&s, VICTIM, 21000, 7000, 0, WIRE_UNINTERRUPTIBLE, 0, "");
	scene_io(&s, IO_READ, VICTIM, "python3", 21000, 7000, 1024);
	scene_call(&s, CUDA_STREAM_SYNC, 9000, 12000); /* 1 ms in each */
	scene_call(&s, CUDA_STREAM_SYNC, 11000, 5000); /* between them */
	rec = scene_recording(&s);
	assert_int_equal(window_examine(&rec, VICTIM, w, 2, &u), 0);
	assert_int_equal(u.total_ns, 20000000);
	assert_int_equal(u.cpu_ns, 2000000);
	assert_int_equal(u.disk_ns, 7000000);
	assert_int_equal(u.call_ns, 2000000);
	window_describe(&u, VICTIM, text, sizeof(text));
	assert_string_equal(text, "its thread was blocked on disk I/O for 35 % of that");
}

static void the_cpu_has_a_name(void **state)
{
	struct window w = window_at(0, 10000);
	struct window_use u;
	struct recording rec;
	char text[160];
	SCENE;

	scene_stay(&s, VICTIM, 1000, 8000, 8000, WIRE_PREEMPTED, HOG, "hog");
	rec = scene_recording(&s);
	assert_int_equal(window_examine(&rec, VICTIM, &w, 1, &u), 0);
	window_describe(&u, VICTIM, text, sizeof(text));
	assert_string_equal(
		text, "its thread was waiting for a CPU used by hog (pid 8821) for 80 % of that");
}

static void nothing_recorded_is_not_guessed(void **state)
{
	struct window w = window_at(0, 10000);
	struct window_use u;
	struct recording rec;
	char text[160];
	SCENE;

	rec = scene_recording(&s);
	assert_int_equal(window_examine(&rec, VICTIM, NULL, 0, &u), 0);
	assert_int_equal(u.total_ns, 0);
	window_describe(&u, VICTIM, text, sizeof(text));
	assert_non_null(strstr(text, "no delay by CPU or disk was recorded"));
	scene_call(&s, CUDA_MEMCPY, 0, 9000);
	rec = scene_recording(&s);
	assert_int_equal(window_examine(&rec, VICTIM, &w, 1, &u), 0);
	window_describe(&u, VICTIM, text, sizeof(text));
	assert_string_equal(text, "its thread was in cudaMemcpy for 90 % of that");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uses_are_told_apart),
		cmocka_unit_test(the_cpu_has_a_name),
		cmocka_unit_test(nothing_recorded_is_not_guessed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
