/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/macros.h"

#define S(n) ((int64_t)(n) * (int64_t)NS_PER_S)

/* 2026-03-24 13:48:44 UTC for 29 s, as one of the published recordings. */
#define T0 1774360124
static const struct when_span span = {S(T0), S(T0 + 29)};

static void zone(const char *name)
{
	setenv("TZ", name, 1);
	tzset();
}

static void expect(const char *text, bool end, int64_t want)
{
	int64_t got = -1;
	int r = when_parse(text, &span, end, &got);

	if (r != 0 || got != want)
		fail_msg("%s: %d, %lld, not %lld", text, r, (long long)got, (long long)want);
}

static void test_zones_are_explicit(void **state)
{
	zone("UTC0");
	expect("2026-03-24T13:48:44Z", false, S(T0));
	expect("2026-03-24 13:48:44.25", false, S(T0) + 250000000);
	expect("2026-03-24T13:48:44.000000001Z", false, S(T0) + 1);
	expect("2026-03-24 13:48:44 UTC", false, S(T0));
	expect("2026-03-24 15:48:44+02:00", false, S(T0));
	expect("2026-03-24T12:18:44-0130", false, S(T0));
	expect("2026-03-24 13:48", false, S(T0 - 44));
	expect("2026-03-24", false, S(T0 - 44 - 48 * 60 - 13 * 3600));
}

/* W20: a full date-time and a clock-only one name the same moment in every zone. */
static void test_both_forms_are_local(void **state)
{
	static const char *const zones[] = {"UTC0", "XST-5:30", "PST8", "XXX-14"};

	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		char full[64], clock[64];
		time_t t = T0;
		struct tm tm;

		zone(zones[i]);
		localtime_r(&t, &tm);
		strftime(full, sizeof(full), "%Y-%m-%d %H:%M:%S", &tm);
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
		expect(full, false, S(T0));
		expect(clock, false, S(T0));
		expect(clock, true, S(T0));
		expect("13:48:44Z", false, S(T0));
	}
	zone("UTC0");
}

static void test_clock_on_the_recordings_day(void **state)
{
	static const struct when_span night = {S(T0 + 10 * 3600), S(T0 + 11 * 3600)}; /* 23:48 on */
	int64_t t;

	zone("UTC0");
	expect("13:48:50.5", false, S(T0 + 6) + 500000000);
	expect("13:00", false, S(T0 - 44 - 48 * 60));
	expect("14:00", true, S(T0 - 44 + 12 * 60));
	assert_int_equal(when_parse("23:50", &night, false, &t), 0);
	assert_int_equal(t, S(T0 + 36000 + 76));
	assert_int_equal(when_parse("00:10:00", &night, false, &t), 0); /* after midnight */
	assert_int_equal(t, S(T0 + 36000 + 76 + 1200));
	assert_int_equal(when_parse("23:00", &night, false, &t), 0); /* before it: the first day */
	assert_int_equal(t, S(T0 + 36000 + 76 - 3000));
	assert_int_equal(when_parse("01:00", &night, true, &t), 0); /* after it: the last day */
	assert_int_equal(t, S(T0 + 36000 + 76 + 4200));
}

/* Clocks in central Europe show 02:00 to 03:00 twice on 2026-10-25, and not at all on 2026-03-29. */
static void test_the_hour_that_comes_twice(void **state)
{
	static const struct when_span around = {S(1792888200 - 1200), S(1792888200 + 4800)};
	int64_t t;

	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	expect("2026-10-25 02:30", false, S(1792888200));
	expect("2026-10-25 02:30", true, S(1792888200 + 3600));
	expect("2026-10-25 01:59:59", true,
		S(1792888200 - 1801)); /* control: before and after there is one */
	expect("2026-10-25 03:00", false, S(1792888200 + 5400));
	assert_int_equal(when_parse("02:30", &around, false, &t), 0);
	assert_int_equal(t, S(1792888200));
	assert_int_equal(when_parse("02:30", &around, true, &t), 0);
	assert_int_equal(t, S(1792888200 + 3600));
	assert_int_equal(when_parse("2026-03-29 02:30", &around, false, &t), 0);
	assert_in_range(t / (int64_t)NS_PER_S, 1774747800 - 3600, 1774747800);
	zone("UTC0");
}

static void test_epochs(void **state)
{
	expect("1774360124", false, S(T0));
	expect("1774360124.5", false, S(T0) + 500000000);
	expect("1774360124500", false, S(T0) + 500000000);
	expect("1774360124500000", false, S(T0) + 500000000);
	expect("1774360124500000001", false, S(T0) + 500000001);
}

static void test_what_is_no_time(void **state)
{
	static const char *const bad[] = {"", " ", "now", "10", "1", "5m", "-5", "2026-02-30",
		"2026-13-01", "2026-03-24T24:00:00", "2026-03-24T13:60", "13:48:61", "13", "13:4",
		"13:48:", "13:48:44.", "13:48:44.1234567890", "13:48x", "2026-03-24T",
		"2026-03-24 13:48:44 CET", "2026-03-24T13:48:44+25:00", "2026-03-24T13:48:44+0",
		"1774360124x", "1774360124500.5", "1..5", "2026-3-4", "1969-12-31", "\xff",
		"99999999999999999999", "9223372036854775807"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int64_t t = 77;
		int r = when_parse(bad[i], &span, false, &t);

		if (r != -EINVAL && r != -ERANGE)
			fail_msg("'%s' was taken for %lld", bad[i], (long long)t);
		assert_int_equal(t, 77);
	}
}

static void test_utc(void **state)
{
	char out[WHEN_UTC_MAX];

	assert_string_equal(
		when_utc(out, (wall_time){S(T0) + 500000001}), "2026-03-24T13:48:44.500000001Z");
	assert_string_equal(when_utc(out, (wall_time){0}), "1970-01-01T00:00:00.000000000Z");
	assert_string_equal(when_utc(out, (wall_time){-1}), "1969-12-31T23:59:59.999999999Z");
	assert_non_null(when_utc(out, (wall_time){INT64_MIN}));
	assert_non_null(when_utc(out, (wall_time){INT64_MAX}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zones_are_explicit),
		cmocka_unit_test(test_both_forms_are_local),
		cmocka_unit_test(test_clock_on_the_recordings_day),
		cmocka_unit_test(test_the_hour_that_comes_twice),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_what_is_no_time),
		cmocka_unit_test(test_utc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
