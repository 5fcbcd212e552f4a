/* SPDX-License-Identifier: Apache-2.0 */
/* test_launch_window.c - launches seen part of the time stand for those of all the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/trace/launch_window.h"
#include "base/macros.h"

static mono_time ms(uint64_t n)
{
	return (mono_time){1000 * NS_PER_S + n * NS_PER_MS};
}

static void open_all_the_time_each_counts_once(void **state)
{
	struct launch_window w;

	launch_window_init(&w, ms(0));
	for (uint64_t s = 1; s <= 5; s++)
		assert_float_equal(launch_window_weight(&w, 8, ms(s * 1000)), 1, 1e-9);
}

static void a_part_stands_for_the_whole(void **state)
{
	struct launch_window w;

	launch_window_init(&w, ms(0));
	assert_float_equal(launch_window_weight(&w, 1, ms(1000)), 1, 1e-9);
	launch_window_close(&w, ms(1000));
	assert_float_equal(launch_window_weight(&w, 4, ms(2000)), 1, 1e-9); /* nothing came */
	launch_window_open(&w, ms(2500));
	launch_window_close(&w, ms(2750));
	/* 250 ms were seen of the 1,750 since the last launches that were counted */
	assert_float_equal(launch_window_weight(&w, 4, ms(3000)), 7, 1e-9);
	assert_float_equal(launch_window_weight(&w, 4, ms(4000)), 1, 1e-9);
	launch_window_open(&w, ms(4750));
	assert_float_equal(launch_window_weight(&w, 4, ms(5000)), 9, 1e-9); /* still open */
	assert_float_equal(launch_window_weight(&w, 4, ms(6000)), 1, 1e-9);
}

/* At a constant rate the launches that are counted are those that were made, however the windows
 * lie in the readings. */
static void weights_times_windows_are_all_the_time(void **state)
{
	static const struct {
		uint64_t open, close;
	} windows[] = {{1300, 1400}, {2600, 2900}, {3950, 4100}, {5200, 5250}};
	struct launch_window w;
	double counted = 0;
	uint64_t seen = 0; /* ms since the last reading */
	size_t at = 0;

	launch_window_init(&w, ms(0));
	for (uint64_t now = 1; now <= 6000; now++) {
		seen += w.is_open; /* in the millisecond that is over */
		if (now == 700)
			launch_window_close(&w, ms(now));
		if (at < ARRAY_SIZE(windows) && now == windows[at].open)
			launch_window_open(&w, ms(now));
		if (at < ARRAY_SIZE(windows) && now == windows[at].close) {
			launch_window_close(&w, ms(now));
			at++;
		}
		if (now % 1000)
			continue;
		counted += launch_window_weight(&w, 4, ms(now)) * (double)seen;
		seen = 0;
	}
	assert_float_equal(counted, 5250, 1); /* up to the last window's end */
}

/* Opened and closed more than once between two readings: all of the open time was seen. */
static void short_windows_between_readings_add_up(void **state)
{
	struct launch_window w;

	launch_window_init(&w, ms(0));
	launch_window_close(&w, ms(250));
	launch_window_open(&w, ms(500));
	launch_window_close(&w, ms(750));
	assert_float_equal(launch_window_weight(&w, 2, ms(1000)), 1.5, 1e-9);
	launch_window_open(&w, ms(1250));
	launch_window_close(&w, ms(1500));
	launch_window_open(&w, ms(1750));
	assert_float_equal(launch_window_weight(&w, 2, ms(2000)), 2.5, 1e-9); /* still open */
}

static void a_moment_does_not_speak_for_itself(void **state)
{
	struct launch_window w;

	launch_window_init(&w, ms(0));
	launch_window_weight(&w, 1, ms(1000));
	launch_window_close(&w, ms(1001));
	launch_window_open(&w, ms(1990));
	assert_float_equal(launch_window_weight(&w, 16, ms(2000)), 16, 1e-9); /* not 100 */
	/* and it is part of the next reading, like the one before it was closed */
	assert_float_equal(launch_window_weight(&w, 16, ms(3000)), 2000.0 / 1011, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_all_the_time_each_counts_once),
		cmocka_unit_test(a_part_stands_for_the_whole),
		cmocka_unit_test(weights_times_windows_are_all_the_time),
		cmocka_unit_test(short_windows_between_readings_add_up),
		cmocka_unit_test(a_moment_does_not_speak_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
