/* SPDX-License-Identifier: Apache-2.0 */
/* test_line_time.c - what one place of a program costs, whatever is done there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "diagnose/compose/gain.h"

#define MS    UINT64_C(1000000)
#define IN(k) (UINT32_C(1) << DELAY_BY_##k)
#define MAIN_AT(n)                                                                                 \
	{                                                                                          \
		.py_file = "/u/train.py", .py_func = "main", .py_line = (n)                        \
	}

/* main() calls score(), which copies and computes, on line 9, and launches on line 5. */
static struct stack_frame frames[][2] = {
	{{.py_file = "/u/train.py", .py_func = "score", .py_line = 20}, MAIN_AT(9)},
	{{.py_file = "/u/train.py", .py_func = "score", .py_line = 24}, MAIN_AT(9)},
	{MAIN_AT(5)},
};
static struct stack stacks[] = {{.hash = 1, .frames = frames[0], .count = 2},
	{.hash = 2, .frames = frames[1], .count = 2}, {.hash = 3, .frames = frames[2], .count = 1}};
static struct stack *list[] = {&stacks[0], &stacks[1], &stacks[2]};
static const struct stack_list all = {list, 3};
static const struct recording rec = {.stacks = &all};

static void put(struct step_account *a, enum account_line line, uint64_t hash, uint64_t ns)
{
	a->entries[a->entry_count++] =
		(struct account_entry){.line = line, .stack_hash = hash, .slow_ns = ns};
	a->ordinary_by[OWNER_SELF][line] += ns;
	a->ordinary_step_ns += ns;
}

static void make(struct step_account *a)
{
	put(a, ACCOUNT_COPY, 1, 30 * MS);
	put(a, ACCOUNT_HOST, 2, 20 * MS);
	put(a, ACCOUNT_HOST, 3, 5 * MS);
	put(a, ACCOUNT_GPU, 1, 8 * MS);
	put(a, ACCOUNT_LAUNCH, 3, 3 * MS);
	put(a, ACCOUNT_ASLEEP, 0, 2 * MS);
}

static void all_lines_of_a_function(void **state)
{
	const struct code_place score = {.file = "/u/train.py", .func = "score", .line = 20};
	struct step_account a = {0};
	uint64_t unplaced;

	make(&a);
	assert_int_equal(line_time_ns(&rec, &a, &score, 0, &unplaced), 50 * MS);
	assert_int_equal(unplaced, 2 * MS);
	assert_int_equal(line_time_ns(&rec, &a, &score, IN(COPY), &unplaced), 20 * MS);
	assert_int_equal(
		line_time_ns(&rec, &a, &score, IN(COPY) | IN(HOST) | IN(ASLEEP), &unplaced), 0);
	assert_int_equal(unplaced, 0);
}

/* All of the program is below its loop: of that the one line counts. */
static void one_line_of_the_loop(void **state)
{
	const struct code_place loop = {.file = "/u/train.py", .func = "main", .line = 5};
	struct step_account a = {0};
	uint64_t unplaced;

	make(&a);
	assert_int_equal(line_time_ns(&rec, &a, &loop, 0, &unplaced), 8 * MS);
}

/* Of a line of the account the largest entries are kept: their places stand for the rest. */
static void the_largest_entries_stand_for_all(void **state)
{
	const struct code_place score = {.file = "/u/train.py", .func = "score", .line = 20};
	struct step_account a = {0};
	uint64_t unplaced;

	make(&a);
	a.ordinary_by[OWNER_SELF][ACCOUNT_HOST] = 50 * MS;
	assert_int_equal(line_time_ns(&rec, &a, &score, IN(COPY), &unplaced), 40 * MS);
}

static void whose_line_is_the_cause(void **state)
{
	assert_true(line_time_is_own(DELAY_BY_COPY));
	assert_true(line_time_is_own(DELAY_BY_PROCESS));
	assert_false(line_time_is_own(DELAY_BY_CPU));
	assert_false(line_time_is_own(DELAY_BY_GIL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lines_of_a_function),
		cmocka_unit_test(one_line_of_the_loop),
		cmocka_unit_test(the_largest_entries_stand_for_all),
		cmocka_unit_test(whose_line_is_the_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
