/* SPDX-License-Identifier: Apache-2.0 */
/* test_python_code.c - code objects in made-up memory: what is kept of them, and which are refused.
 * Real ones are read in test_python_walk.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "python_fake.h"

static struct fake f;

static struct stack_record_code *fetch(void)
{
	struct stack_record_code *c = NULL;

	assert_int_equal(python_code_fetch(&f.memory, &f.p, fake_code(0), &c), 0);
	return c;
}

static void refused(int err)
{
	struct stack_record_code *c = NULL;

	assert_int_equal(python_code_fetch(&f.memory, &f.p, fake_code(0), &c), err);
	assert_null(c);
}

static void init(unsigned minor)
{
	const struct stack_python p = fake_row(minor);

	fake_init(&f, &p);
}

static void test_what_is_kept(void **state)
{
	for (unsigned minor = 9; minor <= 12; minor++) {
		_cleanup_free_ struct stack_record_code *c = NULL;

		init(minor);
		fake_lines_put(&f, "\1\2\3\4\5\6", 6);
		c = fetch();
		assert_int_equal(c->h.kind, STACK_RECORD_CODE);
		assert_int_equal(c->h.size, sizeof(*c) + 6);
		assert_int_equal(c->code, fake_code(0));
		assert_int_equal(c->lines, FAKE_LINES);
		assert_int_equal(c->first_line, 10);
		assert_int_equal(c->lines_size, 6);
		assert_int_equal(c->lines_bytes, 6);
		assert_memory_equal(c->line_table, "\1\2\3\4\5\6", 6);
		assert_int_equal(c->file_kind, 1);
		assert_int_equal(c->file_bytes, 7);
		assert_memory_equal(c->file, "file.py", 7);
		assert_int_equal(c->name_kind, 1);
		assert_int_equal(c->name_bytes, 5);
		assert_memory_equal(c->name, "inner", 5);
		assert_false(c->file_cut || c->name_cut);
	}
}

static void test_wide_texts(void **state)
{
	static const uint16_t two[] = {0x65e5, 0x672c};
	static const uint32_t four[] = {0x20000, 'x', 0x1f600};
	_cleanup_free_ struct stack_record_code *c = NULL, *d = NULL;

	init(12);
	fake_text_put(&f, fake_text(0), two, 2, 2, false);
	fake_text_put(&f, fake_text(1), four, 3, 4, false);
	c = fetch();
	assert_int_equal(c->file_kind, 2);
	assert_int_equal(c->file_bytes, 4);
	assert_memory_equal(c->file, two, 4);
	assert_int_equal(c->name_kind, 4);
	assert_int_equal(c->name_bytes, 12);
	assert_memory_equal(c->name, four, 12);
	/* Latin-1 that is not ASCII lies where the wide ones do */
	fake_text_put(&f, fake_text(1), "gr\xf6\xdf", 4, 1, false);
	d = fetch();
	assert_int_equal(d->name_bytes, 4);
	assert_memory_equal(d->name, "gr\xf6\xdf", 4);
}

static void test_long_texts_are_cut(void **state)
{
	static uint32_t wide[200];
	char text[300];
	_cleanup_free_ struct stack_record_code *c = NULL, *d = NULL;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	for (size_t i = 0; i < ARRAY_SIZE(wide); i++)
		wide[i] = 0x20000 + (uint32_t)i;
	init(11);
	fake_text_put(&f, fake_text(0), text, STACK_TEXT_BYTES, 1, true);
	fake_text_put(&f, fake_text(1), text, STACK_TEXT_BYTES + 1, 1, true);
	c = fetch();
	assert_int_equal(c->file_bytes, STACK_TEXT_BYTES);
	assert_int_equal(c->file_cut, 0);
	assert_int_equal(c->name_bytes, STACK_TEXT_BYTES);
	assert_int_equal(c->name_cut, 1);
	assert_memory_equal(c->name, text, STACK_TEXT_BYTES);
	fake_text_put(&f, fake_text(0), wide, ARRAY_SIZE(wide), 4, false);
	d = fetch();
	assert_int_equal(d->file_bytes, STACK_TEXT_BYTES);
	assert_int_equal(d->file_cut, 1);
	assert_memory_equal(d->file, wide, STACK_TEXT_BYTES);
}

static void test_long_line_tables_are_cut(void **state)
{
	static uint8_t table[STACK_LINES_BYTES + 1];
	_cleanup_free_ struct stack_record_code *c = NULL;

	for (size_t i = 0; i < sizeof(table); i++)
		table[i] = (uint8_t)(i * 7);
	init(11);
	fake_lines_put(&f, table, sizeof(table));
	c = fetch();
	assert_int_equal(c->lines_size, STACK_LINES_BYTES + 1);
	assert_int_equal(c->lines_bytes, STACK_LINES_BYTES);
	assert_int_equal(c->h.size, sizeof(*c) + STACK_LINES_BYTES);
	assert_memory_equal(c->line_table, table, STACK_LINES_BYTES);
}

static void test_texts_that_are_none(void **state)
{
	/* kind 0, 3, 5; not compact; ASCII of two bytes */
	const uint32_t states[] = {0 | 8, 3 | 8, 5 | 8, 1 | 16, 2 | 8 | 16};

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		init(11);
		fake_put(&f, fake_text(1) + f.p.text_state, states[i] << f.p.text_kind_shift, 4);
		refused(-EBADMSG);
	}
	init(11);
	fake_u64(&f, fake_text(0) + f.p.text_length, UINT64_C(1) << 62); /* times 4 it is 0 */
	refused(-EBADMSG);
	init(11);
	fake_u64(&f, fake_code(0) + f.p.code_file, 0);
	refused(-EFAULT);
	fake_u64(&f, fake_code(0) + f.p.code_file, FAKE_END - 48); /* its head, but no text */
	fake_text_put(&f, FAKE_END - 48, "", 0, 1, true);
	free(fetch());
	fake_u64(&f, FAKE_END - 48 + f.p.text_length, 1);
	refused(-EFAULT);
}

static void test_numbers_that_are_none(void **state)
{
	init(11);
	fake_put(&f, fake_code(0) + f.p.code_first_line, (uint32_t)-5, 4);
	refused(-EBADMSG);
	init(11);
	fake_u64(&f, FAKE_LINES + f.p.bytes_length, UINT64_MAX);
	refused(-EBADMSG);
	init(11);
	fake_u64(&f, FAKE_LINES + f.p.bytes_length, 0);
	free(fetch());
	fake_u64(&f, fake_code(0) + f.p.code_lines, FAKE_END - 34);
	fake_u64(&f, FAKE_END - 34 + f.p.bytes_length, 100);
	refused(-EFAULT);
	fake_u64(&f, fake_code(0) + f.p.code_lines, 8);
	refused(-EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_wide_texts),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_long_line_tables_are_cut),
		cmocka_unit_test(test_texts_that_are_none),
		cmocka_unit_test(test_numbers_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
