/* SPDX-License-Identifier: Apache-2.0 */
/* test_figure.c - numbers as people read them, at the edges of every unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/figure.h"
#include "base/macros.h"

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = {
		{0, "0"},
		{1, "1 ns"},
		{999, "999 ns"},
		{1000, "1.0 us"},
		{5240, "5.2 us"},
		{9949, "9.9 us"},
		{9950, "10 us"},
		{999499, "999 us"},
		{999500, "1.0 ms"},
		{16000000, "16 ms"},
		{142400000, "142 ms"},
		{999600000, "1.0 s"},
		{7500000000ULL, "7.5 s"},
		{59400000000ULL, "59 s"},
		{59600000000ULL, "1m00s"},
		{200000000000ULL, "3m20s"},
		{7500000000000ULL, "2h05m"},
		{UINT64_MAX, "5124095h34m"},
	};
	char out[FIGURE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(figure_duration(rows[i].ns, out), rows[i].text);
}

static void test_counts(void **state)
{
	char out[FIGURE_MAX];

	assert_string_equal(figure_count(0, out), "0");
	assert_string_equal(figure_count(999, out), "999");
	assert_string_equal(figure_count(1000, out), "1,000");
	assert_string_equal(figure_count(UINT64_MAX, out), "18,446,744,073,709,551,615");
}

static void test_shares(void **state)
{
	char out[FIGURE_MAX];

	assert_string_equal(figure_percent(0, out), "0 %");
	assert_string_equal(figure_percent(0.0001, out), "< 0.1 %");
	assert_string_equal(figure_percent(0.001, out), "0.1 %");
	assert_string_equal(figure_percent(0.713, out), "71 %");
	assert_string_equal(figure_percent(1, out), "100 %");
	assert_string_equal(figure_ratio(8.52, out), "8.5");
	assert_string_equal(figure_ratio(758.3, out), "758");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
