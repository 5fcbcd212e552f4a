/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "record/stack/code.h"
#include "base/macros.h"

#define LOOP "_PyEval_EvalFrameDefault"

static struct merge_native native(const char *symbol)
{
	return (struct merge_native){.frame = {.ip = 0x1000, .symbol = symbol}};
}

static struct merge_python python(const char *name, bool is_entry)
{
	return (struct merge_python){
		.frame = {.py_func = name, .py_file = "t.py"}, .is_entry = is_entry};
}

/* The merged names, innermost first, joined by spaces. */
static const char *merged(const struct merge_native *n, size_t natives,
	const struct merge_python *p, size_t pythons, size_t max)
{
	static char text[512];
	struct stack_frame out[32];
	size_t count = merge_frames(n, natives, p, pythons, out, max);
	size_t at = 0;

	text[0] = 0;
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "",
			out[i].py_func ? out[i].py_func : out[i].symbol);
	return text;
}
#define MERGED(n, p) merged(n, ARRAY_SIZE(n), p, ARRAY_SIZE(p), 32)

static void one_loop_takes_all_its_functions(void **state)
{
	struct merge_native n[] = {
		native("cudaFree"), native("call"), native(LOOP), native("main")};
	struct merge_python p[] = {python("inner", false), python("outer", true)};

	assert_string_equal(MERGED(n, p), "cudaFree call inner outer main");
}

static void functions_called_from_c_stand_where_they_were(void **state)
{
	struct merge_native n[] = {
		native("cudaFree"), native(LOOP), native("sorted"), native(LOOP), native("main")};
	struct merge_python p[] = {
		python("key", true), python("train", false), python("module", true)};

	assert_string_equal(MERGED(n, p), "cudaFree key sorted train module main");
}

static void a_clone_of_the_loop_is_the_loop(void **state)
{
	struct merge_native n[] = {native("cudaFree"), native(LOOP ".cold"),
		native("_TAIL_CALL_CALL_FUNCTION_EX"), native("main")};
	struct merge_python p[] = {python("a", true), python("b", true)};

	assert_string_equal(MERGED(n, p), "cudaFree a b main");
}

static void what_is_left_follows_a_walk_that_ended_early(void **state)
{
	struct merge_native n[] = {native("cudaFree"), native(LOOP)};
	struct merge_python p[] = {python("a", true), python("b", false), python("c", true)};

	assert_string_equal(MERGED(n, p), "cudaFree a b c");
}

static void more_loops_than_functions_stay_visible(void **state)
{
	struct merge_native n[] = {native("cudaFree"), native(LOOP), native(LOOP), native("main")};
	struct merge_python p[] = {python("a", true)};

	assert_string_equal(MERGED(n, p), "cudaFree a " LOOP " main");
}

static void without_a_loop_python_stands_before_the_interpreter(void **state)
{
	struct merge_native n[] = {
		native("cudaFree"), native("ffi_call"), native("x"), native("y")};
	struct merge_python p[] = {python("a", false), python("b", true)};

	n[2].is_interpreter = n[3].is_interpreter = true;
	assert_string_equal(MERGED(n, p), "cudaFree ffi_call a b x y");
}

static void an_inlined_name_is_no_loop(void **state)
{
	struct merge_native n[] = {native("cudaFree"), native(LOOP), native(LOOP), native("main")};
	struct merge_python p[] = {python("a", true)};

	n[1].is_inlined = true;
	assert_string_equal(MERGED(n, p), "cudaFree " LOOP " a main");
}

static void no_more_than_fits_is_written(void **state)
{
	struct merge_native n[] = {native("cudaFree"), native(LOOP), native("main")};
	struct merge_python p[] = {python("a", false), python("b", true)};

	assert_string_equal(merged(n, 3, p, 2, 2), "cudaFree a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_loop_takes_all_its_functions),
		cmocka_unit_test(functions_called_from_c_stand_where_they_were),
		cmocka_unit_test(a_clone_of_the_loop_is_the_loop),
		cmocka_unit_test(what_is_left_follows_a_walk_that_ended_early),
		cmocka_unit_test(more_loops_than_functions_stay_visible),
		cmocka_unit_test(without_a_loop_python_stands_before_the_interpreter),
		cmocka_unit_test(an_inlined_name_is_no_loop),
		cmocka_unit_test(no_more_than_fits_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
