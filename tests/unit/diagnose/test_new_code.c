/* SPDX-License-Identifier: Apache-2.0 */
/* test_new_code.c - which function began to run. */
#include "diagnose/chains/host_code.h"
#include "verdict.h"

#define STACKS 4

static const struct stack_frame frames[STACKS][2] = {
	{{.py_file = "/w/train.py", .py_func = "forward", .py_line = 10},
		{.py_file = "/w/train.py", .py_func = "main", .py_line = 90}},
	{{.py_file = "/w/train.py", .py_func = "keep", .py_line = 20},
		{.py_file = "/w/train.py", .py_func = "main", .py_line = 91}},
	{{.py_file = "/v/site-packages/torch/x.py", .py_func = "zeros", .py_line = 30},
		{.py_file = "/w/train.py", .py_func = "main", .py_line = 92}},
	{{.py_file = "/w/train.py", .py_func = "log", .py_line = 40},
		{.py_file = "/w/train.py", .py_func = "main", .py_line = 93}},
};

enum { FORWARD = 1, KEEP, ZEROS, LOG };

static void add(struct scene *s, int n, int stack, int64_t at_s)
{
	for (int i = 0; i < n; i++)
		scene_call(s, CUDA_LAUNCH, at_s * 1000000 + i, 1)->stack_hash = (uint64_t)stack;
}

/* What is new since the 10th second. */
static struct new_code find(const struct scene *s, bool with_stacks)
{
	struct stack stacks[STACKS], *items[STACKS];
	struct stack_list list = {items, STACKS};
	struct recording rec = scene_recording(s);
	struct new_code found = {.rows = 99};

	for (size_t i = 0; i < STACKS; i++) {
		stacks[i] = (struct stack){i + 1, frames[i], 2, ""};
		items[i] = &stacks[i];
	}
	rec.stacks = with_stacks ? &list : NULL;
	assert_int_equal(
		new_code_find(&rec, VICTIM, SCENE_T0_NS + INT64_C(10000000000), &found), 0);
	return found;
}

static void test_one_is_new(void **state)
{
	SCENE;
	add(&s, 20, FORWARD, 1);
	add(&s, 15, FORWARD, 11);
	add(&s, 3, KEEP, 12);
	struct new_code found = find(&s, true);

	assert_non_null(found.frame);
	assert_string_equal(found.frame->py_func, "keep");
	assert_int_equal(found.rows, 3);
	assert_null(find(&s, false).frame);
}

/* A function that calls for the first time what it always could is not new, nor is a library's. */
static void test_none_is_new(void **state)
{
	SCENE;
	add(&s, 20, FORWARD, 1);
	add(&s, 5, ZEROS, 12);
	assert_null(find(&s, true).frame);
	add(&s, 1, KEEP, 2);
	add(&s, 5, KEEP, 13);
	assert_null(find(&s, true).frame);
}

static void test_of_several_the_most_seen(void **state)
{
	SCENE;
	add(&s, 20, FORWARD, 1);
	add(&s, 2, KEEP, 12);
	add(&s, 2, LOG, 13);
	assert_null(find(&s, true).frame);
	add(&s, 1, KEEP, 14);
	assert_string_equal(find(&s, true).frame->py_func, "keep");
}

static void test_seen_too_little_before(void **state)
{
	SCENE;
	add(&s, 4, FORWARD, 1);
	add(&s, 4, FORWARD, 11);
	add(&s, 1, KEEP, 12);
	assert_null(find(&s, true).frame);
	add(&s, 1, FORWARD, 2);
	assert_string_equal(find(&s, true).frame->py_func, "keep");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_is_new),
		cmocka_unit_test(test_none_is_new),
		cmocka_unit_test(test_of_several_the_most_seen),
		cmocka_unit_test(test_seen_too_little_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
