// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "knob.h"

static void test_numbers(void **state)
{
	uint64_t v = 7;

	assert_int_equal(knob_parse("20e9", 1, 1e15, &v), 0);
	assert_int_equal(v, 20000000000);
	assert_int_equal(knob_parse("0", 0, 1, &v), 0);
	assert_int_equal(v, 0);
}

static void test_bad_numbers_leave_the_value(void **state)
{
	uint64_t v = 7;

	assert_int_equal(knob_parse("", 0, 1, &v), -EINVAL);
	assert_int_equal(knob_parse("12x", 0, 100, &v), -EINVAL);
	assert_int_equal(knob_parse("nan", 0, 100, &v), -EINVAL);
	assert_int_equal(knob_parse("-1", 0, 100, &v), -ERANGE);
	assert_int_equal(knob_parse("inf", 0, 100, &v), -ERANGE);
	assert_int_equal(v, 7);
}

static void test_environment_is_read_once(void **state)
{
	assert_int_equal(knob_get()->kernel_ns, 123);
	assert_int_equal(
		knob_get()->concurrent, 32); /* set to nonsense below: the default stands */
	assert_int_equal(knob_get()->init_ns, 30000000);
	setenv("SIM_KERNEL_NS", "5", 1);
	assert_int_equal(knob_get()->kernel_ns, 123);
}

/* Every knob has a row in the README. */
static void test_readme_lists_all(void **state)
{
	char *text = NULL, *readme = calloc(1, 1 << 16);
	size_t size = 0, n;
	FILE *out = open_memstream(&text, &size), *f = fopen(SIM_README, "r");

	assert_non_null(f);
	n = fread(readme, 1, (1 << 16) - 1, f);
	fclose(f);
	assert_true(n > 1000);
	knob_print(out);
	fclose(out);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char want[64];

		snprintf(want, sizeof(want), "| `%.*s` |", (int)strcspn(line, " "), line);
		if (!strstr(readme, want))
			fail_msg("sim/README.md has no row %s", want);
	}
	assert_null(strstr(readme, "| `SIM_NO_SUCH_KNOB` |"));
	free(text);
	free(readme);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_bad_numbers_leave_the_value),
		cmocka_unit_test(test_environment_is_read_once),
		cmocka_unit_test(test_readme_lists_all),
	};

	setenv("SIM_KERNEL_NS", "123", 1);
	setenv("SIM_CONCURRENT", "many", 1);
	unsetenv("SIM_INIT_NS");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
