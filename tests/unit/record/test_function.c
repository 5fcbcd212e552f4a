/* SPDX-License-Identifier: Apache-2.0 */
/* test_function.c - the function tables hold together: known ops, unique symbols, cookies that fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/attach/uprobe.h"
#include "record/probe/function.h"
#include "wire/names.h"

static const struct probe_library *const libraries[] = {
	&probe_cuda_rt, &probe_cuda_drv, &probe_nccl};

static void test_rows_name_known_ops(void **state)
{
	for (size_t l = 0; l < 3; l++)
		for (const struct probe_function *f = libraries[l]->functions; f->symbols[0]; f++) {
			assert_non_null(wire_op_find(f->cookie.source, f->cookie.op));
			assert_in_range(f->cookie.op, 1, WIRE_OP_MAX - 1);
			assert_in_range(f->cookie.arg0, 0, 11);
			assert_in_range(f->cookie.arg1, 0, 11);
			assert_in_range(f->cookie.stream, 0, 11);
		}
}

static bool has_condition(const struct probe_function *f)
{
	for (int v = 0; v < FUNCTION_VARIANTS && f->symbols[v]; v++)
		if (f->symbols[v][0] == '+')
			return true;
	return false;
}

/* But for those that an earlier row has under a condition. */
static void test_symbols_are_unique(void **state)
{
	const char *seen[UPROBE_POINTS_MAX * 3];
	size_t n = 0, twice = 0;

	for (size_t l = 0; l < 3; l++) {
		size_t of_library = 0;

		for (const struct probe_function *f = libraries[l]->functions; f->symbols[0]; f++)
			for (int v = 0; v < FUNCTION_VARIANTS && f->symbols[v]; v++) {
				if (f->symbols[v][0] == '+')
					continue;
				of_library++;
				for (size_t i = 0; i < n; i++)
					assert_string_not_equal(seen[i], f->symbols[v]);
				if (has_condition(f))
					twice++;
				else
					seen[n++] = f->symbols[v];
			}
		assert_true(of_library <= UPROBE_POINTS_MAX);
	}
	assert_true(n > 300 && twice == 6);
}

static void test_cookie_carries_the_row(void **state)
{
	const struct probe_function *f = probe_cuda_rt.functions;
	int row = 0;
	union wire_cookie k;

	while (strcmp(f[row].symbols[0], "cudaMemcpy2DAsync"))
		row++;
	k = probe_cookie(&probe_cuda_rt, row, 9);
	assert_int_equal(k.source, SOURCE_CUDA);
	assert_int_equal(k.op, CUDA_MEMCPY_2D_ASYNC);
	assert_int_equal(k.arg0, 5);
	assert_int_equal(k.arg1, 7);
	assert_int_equal(k.stream, 8);
	assert_int_equal(k.function, row);
	assert_int_equal(k.library, 9);
	assert_true(k.flags & COOKIE_AREA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_name_known_ops),
		cmocka_unit_test(test_symbols_are_unique),
		cmocka_unit_test(test_cookie_carries_the_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
