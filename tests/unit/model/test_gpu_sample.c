/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/sample.h"

static void test_reasons_have_names(void **state)
{
	char text[256];

	assert_string_equal(gpu_throttle_text(0, text, sizeof(text)), "none");
	assert_string_equal(gpu_throttle_text(1, text, sizeof(text)), "none"); /* idle: no brake */
	assert_string_equal(gpu_throttle_text(4, text, sizeof(text)), "sw_power_cap");
	assert_string_equal(gpu_throttle_text(1 | 8 | 64, text, sizeof(text)),
		"hw_slowdown, hw_thermal_slowdown");
	assert_string_equal(
		gpu_throttle_text(128 | 0x4000, text, sizeof(text)), "hw_power_brake, 0x4000");
	assert_string_equal(
		gpu_throttle_text(UINT64_C(1) << 63, text, sizeof(text)), "0x8000000000000000");
	assert_string_equal(gpu_throttle_text(8 | 64, text, 8), "hw_slow");
}

static void test_every_bit_stands_once(void **state)
{
	uint64_t seen = 0;
	int rows = 0;

	for (const struct gpu_throttle *t = gpu_throttles; t->bit; t++, rows++) {
		assert_int_equal(t->bit & (t->bit - 1), 0);
		assert_int_equal(seen & t->bit, 0);
		assert_non_null(t->name);
		seen |= t->bit;
	}
	assert_int_equal(rows, 9);
	assert_int_equal(seen, 0x1ff);
}

static void test_an_empty_sample_knows_nothing(void **state)
{
	struct gpu_sample s = {.power_mw = 7, .name = "x"};
	int fields = 0;

	gpu_sample_init(&s);
#define X(field, meaning)                                                                          \
	assert_int_equal(s.field, GPU_UNKNOWN);                                                    \
	fields++;
	GPU_FIELDS(X)
#undef X
	assert_true(fields >= 20);
	assert_string_equal(s.name, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons_have_names),
		cmocka_unit_test(test_every_bit_stands_once),
		cmocka_unit_test(test_an_empty_sample_knows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
