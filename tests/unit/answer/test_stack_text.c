/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "answer/stacks.h"
#include "stack_fixture.h"

static void frames_as_people_write_them(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	stack_text(&b, &stack_a, 2, SIZE_MAX);
	assert_string_equal(buf_str(&b), "  cudaStreamSynchronize [libcudart.so.12]\n"
					 "  at::native::copy_(at::Tensor&) (Copy.cpp:31)\n"
					 "  0x3 [libfoo.so]\n  0x4 [libfoo.so]\n"
					 "  forward() at train.py:142\n"
					 "  <module> at train.py:9\n");
}

static void names_are_escaped_and_an_early_end_is_told(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	stack_text(&b, &stack_c, 0, SIZE_MAX);
	assert_string_equal(buf_str(&b), "load;\\x1b[2J<b>&\\n [lib\\x07x.so]\n0xabc\n"
					 "(not complete: no unwind table)\n");
}

static void places_have_no_argument_types(void **state)
{
	static const struct {
		const char *symbol, *text;
	} names[] = {{"at::native::copy_(at::Tensor&)", "at::native::copy_()"},
		{"ns::(anonymous namespace)::f(std::function<void (int)> const&, bool)",
			"ns::(anonymous namespace)::f()"},
		{"S::get(int) const", "S::get()"}, {"S::operator()(int)", "S::operator()()"},
		{"plain", "plain"}, {"odd)", "odd)"}, {"(", "("}, {"()", "()"}, {"", ""}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 12);

		stack_text_place(&b,
			&(struct stack_frame){.symbol = names[i].symbol, .file = "/usr/lib/x.so"});
		assert_int_equal(strncmp(buf_str(&b), names[i].text, strlen(names[i].text)), 0);
		assert_string_equal(buf_str(&b) + strlen(names[i].text), " [x.so]");
	}
}

static void odd_frames(void **state)
{
	static const struct stack_frame odd[] = {{0}, {.py_file = "", .py_func = ""},
		{.py_file = "a.py", .py_func = "f"}, {.symbol = "g"}};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	stack_text(&b, &(struct stack){1, odd, 4, ""}, 0, SIZE_MAX);
	assert_string_equal(buf_str(&b), "?\n?()\nf() at a.py\ng\n");
	buf_clear(&b);
	stack_text(&b, &(struct stack){1, odd, 0, NULL}, 1, SIZE_MAX);
	assert_string_equal(buf_str(&b), " (no frame)\n");
}

static void a_deep_stack_is_folded_with_a_note(void **state)
{
	static struct stack_frame deep[100];
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	size_t lines = 0;

	for (size_t i = 0; i < 100; i++)
		deep[i].symbol = i == 19 ? "inner" : i == 90 ? "outer" : i == 50 ? "middle" : "f";
	stack_text(&b, &(struct stack){1, deep, 100, ""}, 0, SIZE_MAX);
	for (const char *s = buf_str(&b); *s; s++)
		lines += *s == '\n';
	assert_int_equal(lines, 31);
	assert_non_null(strstr(buf_str(&b), "inner\n… 70 frames in between; --json has them all\n"
					    "outer\n"));
	assert_null(strstr(buf_str(&b), "middle"));
	buf_clear(&b);
	stack_text(&b, &(struct stack){1, deep, 30, ""}, 0, SIZE_MAX); /* control: fits */
	assert_null(strstr(buf_str(&b), "in between"));
}

static void long_names_are_cut_for_a_terminal(void **state)
{
	static const struct stack_frame wide[] = {{.symbol = "ééééééééééééééééééééééééééééééé"}};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	stack_text(&b, &(struct stack){1, wide, 1, ""}, 4, 30);
	assert_string_equal(buf_str(&b), "    ééééééééééééééééééééééééé…\n");
	buf_clear(&b);
	stack_text(&b, &(struct stack){1, wide, 1, ""}, 4, SIZE_MAX);
	assert_null(strstr(buf_str(&b), "…"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_as_people_write_them),
		cmocka_unit_test(names_are_escaped_and_an_early_end_is_told),
		cmocka_unit_test(odd_frames),
		cmocka_unit_test(places_have_no_argument_types),
		cmocka_unit_test(a_deep_stack_is_folded_with_a_note),
		cmocka_unit_test(long_names_are_cut_for_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
