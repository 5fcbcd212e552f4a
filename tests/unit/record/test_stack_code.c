/* SPDX-License-Identifier: Apache-2.0 */
/* test_stack_code.c - what is kept of Python code objects (record/stack/code.c): by process and
 * address, and a long line table that comes later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "record/stack/code.h"

#define CODE  0x1000
#define LINES 0x2000

static struct intern texts;
static struct stack_codes *codes;

static int setup(void **state)
{
	texts = INTERN_INIT(1 << 20);
	return stack_codes_new(&texts, &codes);
}

static int teardown(void **state)
{
	stack_codes_free(codes);
	intern_done(&texts);
	return 0;
}

/* A record of which @sent of @size bytes of the line table came along: each byte is its place. */
static void take(uint32_t pid, uint32_t sent, uint32_t size)
{
	_cleanup_free_ struct stack_record_code *r = calloc(1, sizeof(*r) + sent);

	r->h.pid = pid;
	r->code = CODE;
	r->lines = LINES;
	r->first_line = 7;
	r->minor = 11;
	r->lines_at = 32;
	r->lines_bytes = (uint16_t)sent;
	r->lines_size = size;
	r->name_kind = r->file_kind = 1;
	r->name_bytes = r->file_bytes = 1;
	r->name[0] = 'f';
	r->file[0] = 'm';
	for (uint32_t i = 0; i < sent; i++)
		r->line_table[i] = (uint8_t)i;
	assert_int_equal(stack_codes_take(codes, r, sizeof(*r) + sent), 0);
}

static uint8_t *table_new(uint32_t size)
{
	uint8_t *table = malloc(size);

	for (uint32_t i = 0; i < size; i++)
		table[i] = (uint8_t)i;
	return table;
}

static void test_the_version_is_kept_with_each(void **state)
{
	const struct stack_code *c;

	take(1, 4, 4);
	c = stack_codes_find(codes, 1, CODE, LINES);
	assert_non_null(c);
	assert_int_equal(c->minor, 11);
	assert_int_equal(c->lines_at, 32);
	assert_int_equal(c->first_line, 7);
	assert_string_equal(c->name, "f");
	assert_null(stack_codes_find(codes, 2, CODE, LINES));
	assert_null(stack_codes_find(codes, 1, CODE, LINES + 8));
}

static void test_a_long_table_comes_later(void **state)
{
	_cleanup_free_ uint8_t *table = table_new(5000);
	const struct stack_code *c;

	take(1, 100, 5000);
	assert_int_equal(stack_codes_find(codes, 1, CODE, LINES)->lines_bytes, 100);
	c = stack_codes_fill(codes, 1, CODE, LINES, table);
	assert_non_null(c);
	assert_ptr_equal(c, stack_codes_find(codes, 1, CODE, LINES));
	assert_int_equal(c->lines_bytes, 5000);
	assert_memory_equal(c->lines, table, 5000);
	assert_string_equal(c->name, "f");
	assert_null(stack_codes_fill(codes, 2, CODE, LINES, table));
}

/* Long tables have a ceiling together; a new record of the same code object gives its room back. */
static void test_long_tables_have_a_ceiling(void **state)
{
	_cleanup_free_ uint8_t *table = table_new(1 << 20);
	uint32_t filled = 0;

	for (uint32_t pid = 1; pid <= 20; pid++) {
		take(pid, 100, 1 << 20);
		filled += stack_codes_fill(codes, pid, CODE, LINES, table) != NULL;
	}
	assert_int_equal(filled, 16);
	assert_int_equal(stack_codes_find(codes, 20, CODE, LINES)->lines_bytes, 100);
	take(1, 100, 1 << 20);
	assert_non_null(stack_codes_fill(codes, 20, CODE, LINES, table));
	assert_null(stack_codes_fill(codes, 19, CODE, LINES, table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_the_version_is_kept_with_each, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_long_table_comes_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_tables_have_a_ceiling, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
