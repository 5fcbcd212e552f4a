/* SPDX-License-Identifier: Apache-2.0 */
/* test_account_parts.c - accounts as data: parts of a unit add up, keys stand once, ceilings hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ledger_fixture.h"

/* Units of 20 ms, whose every second has 5 ms at a line of its own. */
static void scene_make(struct ledger_scene *s)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/train.py", 10, NULL);

	for (int i = 0; i < 40; i++) {
		mark(&t, MARK_OPTIMIZER);
		if (i % 2)
			sample(s, JOB, MAIN, t.at + 1, stack);
		spend(&t, LEDGER_RUN, MS(15));
		spend(&t, LEDGER_GPU_WAIT, MS(5));
		mark(&t, MARK_WAIT);
	}
	mark(&t, MARK_OPTIMIZER);
}

static void test_parts_add_up(void **state)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	_cleanup_(account_set_done) struct account_set set = {0};
	const struct process_account *a;
	struct recording rec;

	scene_make(s);
	rec = ledger_recording(s);
	assert_int_equal(account_make(&rec, &set), 0);
	assert_int_equal(set.count, 1);
	a = &set.items[0];
	assert_int_equal(a->unit_count, 40);
	assert_int_equal(a->key_count, 3); /* host without a place, host with one, the GPU */
	assert_int_equal(a->part_count, a->part_end[39]);
	assert_null(a->key_numbers.slots);
	for (size_t i = 0; i < a->unit_count; i++) {
		_cleanup_(tally_done) struct tally t = {0};
		uint64_t lines[ACCOUNT_LINES] = {0}, sum = 0;

		account_lines(a, i, lines);
		for (int k = 0; k < ACCOUNT_LINES; k++)
			sum += lines[k];
		assert_int_equal(sum, a->units[i].end_ns - a->units[i].start_ns);
		assert_int_equal(account_add(a, i, &t), 0);
		assert_memory_equal(t.ns, lines, sizeof(lines));
		assert_int_equal(lines[ACCOUNT_GPU], MS(5));
	}
}

/* Of several stacks of one place the one with the largest piece stands for it, whichever unit it is in. */
static void test_the_largest_piece_names_the_stack(void **state)
{
	struct process_account a = {0};
	size_t ends[2];
	_cleanup_(tally_done) struct tally one = {0}, two = {0}, sum = {0};
	struct tally_part p = {.line = ACCOUNT_HOST, .place = 7, .stack_hash = 1, .ns = 50};

	assert_int_equal(tally_add(&one, &p), 0);
	p.ns = 10;
	assert_int_equal(tally_add(&one, &p), 0);
	p.stack_hash = 2;
	p.ns = 55;
	assert_int_equal(tally_add(&two, &p), 0);
	a.part_end = ends;
	assert_int_equal(account_end_unit(&a, 0, &one), 0);
	assert_int_equal(account_end_unit(&a, 1, &two), 0);
	assert_int_equal(a.key_count, 2);
	assert_int_equal(account_add(&a, 0, &sum), 0);
	assert_int_equal(account_add(&a, 1, &sum), 0);
	assert_int_equal(sum.count, 1);
	assert_int_equal(sum.parts[0].ns, 115);
	assert_int_equal(sum.parts[0].stack_hash, 2); /* 55 at once, the other 50 and 10 */
	a.part_end = NULL;
	process_account_done(&a);
}

/* Beyond the ceiling a part loses its culprit and place, not its time. */
static void test_too_many_keys(void **state)
{
	struct process_account a = {.part_end = calloc(1, sizeof(size_t))};
	uint64_t lines[ACCOUNT_LINES] = {0};

	for (uint64_t i = 0; i < ACCOUNT_KEYS_MAX + 100; i++) {
		_cleanup_(tally_done) struct tally t = {0};
		struct tally_part p = {
			.line = ACCOUNT_CPU, .owner = OWNER_SELF, .place = i + 1, .ns = 3};

		assert_int_equal(tally_add(&t, &p), 0);
		assert_int_equal(account_end_unit(&a, 0, &t), 0);
	}
	assert_int_equal(a.key_count, ACCOUNT_KEYS_MAX + 1);
	account_lines(&a, 0, lines);
	assert_int_equal(lines[ACCOUNT_CPU], 3 * (ACCOUNT_KEYS_MAX + 100));
	process_account_done(&a);
}

/* Stacks may be read again, as for a corpus that is judged with other thresholds: keys stay as they are. */
static void test_stacks_are_read_again(void **state)
{
	const struct stack_frame frames[] = {
		{.py_file = "/x/jax/_src/compiler.py", .py_func = "backend_compile"},
		{.py_file = "/home/u/train.py", .py_func = "main", .py_line = 3}};
	struct stack made = {5, frames, 2, ""}, *items[] = {&made};
	const struct stack_list stacks = {items, 1};
	struct tally_part keys[] = {{.line = ACCOUNT_HOST, .stack_hash = 5, .place = 77}};
	struct process_account a = {.keys = keys, .key_count = 1};
	uint64_t place;

	assert_int_equal(account_read_stacks(&a, &stacks), 0);
	place = keys[0].place;
	assert_int_not_equal(place, 77); /* code is made there */
	assert_int_equal(account_read_stacks(&a, &stacks), 0);
	assert_int_equal(keys[0].place, place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_are_read_again),
		cmocka_unit_test(test_parts_add_up),
		cmocka_unit_test(test_the_largest_piece_names_the_stack),
		cmocka_unit_test(test_too_many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
