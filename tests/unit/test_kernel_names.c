/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "agent/answer/kernel_names.h"
#include "base/macros.h"

static void test_short_names(void **state)
{
	static const struct {
		const char *full, *brief;
	} rows[] = {
		{"softmax_warp_forward", "softmax_warp_forward"},
		{"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
		{"void at::native::elementwise_k<float, 4>(float*, int)",
			"at::native::elementwise_k"},
		{"jit_scale(float*, int)", "jit_scale"},
		{"void at::native::(anonymous namespace)::gather<int>(int)", "at::native::gather"},
		{"", ""},
	};
	char out[KERNEL_SHORT_MAX], longest[400];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(kernel_name_short(rows[i].full, out), rows[i].brief);
	memset(longest, 'k', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	kernel_name_short(longest, out);
	assert_true(strlen(out) < KERNEL_SHORT_MAX);
	assert_non_null(strstr(out, "k…"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
