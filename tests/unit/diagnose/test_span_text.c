/* SPDX-License-Identifier: Apache-2.0 */
/* test_span_text.c - lengths of time in sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/sentences/span_text.h"

#define MS UINT64_C(1000000)

static void one(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = {{0, "0 µs"}, {870, "0.9 µs"}, {850000, "850 µs"}, {4200000, "4.2 ms"},
		{174 * MS, "174 ms"}, {1300 * MS, "1.3 s"}, {12000 * MS, "12 s"},
		{119000 * MS, "119 s"}, {600000 * MS, "10 min"}, {7200000 * MS, "2.0 h"}};
	char out[SPAN_TEXT_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(span_text_one(out, rows[i].ns), rows[i].text);
}

static void two(void **state)
{
	char out[SPAN_TEXT_MAX];

	assert_string_equal(
		span_text(out, " instead of ", 174 * MS, 44 * MS), "174 ms instead of 44");
	assert_string_equal(
		span_text(out, " instead of ", 1300 * MS, 44 * MS), "1.3 s instead of 44 ms");
	assert_string_equal(span_text(out, " of ", 61 * MS, 72 * MS), "61 of 72 ms");
}

static void a_gain(void **state)
{
	char out[SPAN_GAIN_MAX];

	assert_string_equal(span_text_gain(out, 174 * MS, 46 * MS, 44 * MS, 52 * MS),
		"174 → about 46 ms (44–52)");
	assert_string_equal(span_text_gain(out, 1500 * MS, 97 * MS, 90 * MS, 1100 * MS),
		"1.5 s → about 97 ms (90 ms–1.1 s)");
	assert_string_equal(
		span_text_gain(out, 174 * MS, 46 * MS, 46 * MS, 46 * MS), "174 → about 46 ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one),
		cmocka_unit_test(two),
		cmocka_unit_test(a_gain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
