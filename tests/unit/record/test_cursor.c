/* SPDX-License-Identifier: Apache-2.0 */
/* test_cursor.c - numbers of every format, and that nothing is read behind the end. */
#include "elf_fixture.h"

#include "record/symbol/eh_frame.h"

#define CURSOR(...)                                                                                \
	cursor_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void test_numbers(void **state)
{
	struct cursor c = CURSOR(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);

	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 0x0302);
	assert_int_equal(cursor_u32(&c), 0x07060504);
	assert_int_equal(cursor_u64(&c), 0x0f0e0d0c0b0a0908);
	assert_int_equal(cursor_left(&c), 1);
	assert_false(c.bad);
	assert_int_equal(cursor_u16(&c), 0);
	assert_true(c.bad);
	assert_int_equal(cursor_left(&c), 0);
	assert_int_equal(cursor_u8(&c), 0); /* the byte that was left is not given any more */
}

static void test_leb(void **state)
{
	struct cursor c = CURSOR(0x7f, 0xe5, 0x8e, 0x26, 0x80, 0x00);

	assert_int_equal(cursor_uleb(&c), 127);
	assert_int_equal(cursor_uleb(&c), 624485);
	assert_int_equal(cursor_uleb(&c), 0);
	assert_false(c.bad);
	c = CURSOR(0x7f, 0x9b, 0xf1, 0x59, 0x3f, 0x80, 0x7f);
	assert_int_equal(cursor_sleb(&c), -1);
	assert_int_equal(cursor_sleb(&c), -624485);
	assert_int_equal(cursor_sleb(&c), 63);
	assert_int_equal(cursor_sleb(&c), -128);
	assert_false(c.bad);
}

static void test_leb_limits(void **state)
{
	struct cursor c = CURSOR(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);

	assert_true(cursor_uleb(&c) == UINT64_MAX);
	assert_false(c.bad);
	c = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f);
	assert_true(cursor_sleb(&c) == INT64_MIN);
	assert_false(c.bad);
	c = CURSOR(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00);
	assert_true(cursor_sleb(&c) == INT64_MAX);
	assert_false(c.bad);
	/* a 65th bit; an eleventh byte; no last byte */
	c = CURSOR(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02);
	assert_int_equal(cursor_uleb(&c), 0);
	assert_true(c.bad);
	c = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
	assert_int_equal(cursor_sleb(&c), 0);
	assert_true(c.bad);
	c = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
	assert_int_equal(cursor_uleb(&c), 0);
	assert_true(c.bad);
	c = CURSOR(0x80, 0x80);
	assert_int_equal(cursor_sleb(&c), 0);
	assert_true(c.bad);
}

static void test_block(void **state)
{
	struct cursor c = CURSOR(1, 2, 3, 4), block = cursor_block(&c, 3);

	assert_int_equal(cursor_left(&block), 3);
	assert_int_equal(cursor_u8(&block), 1);
	assert_int_equal(cursor_u8(&c), 4);
	assert_false(c.bad || block.bad);
	c = CURSOR(1, 2, 3, 4);
	block = cursor_block(&c, UINT64_MAX);
	assert_true(c.bad && block.bad);
	assert_int_equal(cursor_left(&block), 0);
}

static void test_pointers(void **state)
{
	static const struct {
		uint8_t encoding;
		uint64_t value;
	} cases[] = {
		{EH_ABSOLUTE, 0xf8f7f6f5f4f3f2f1},
		{EH_UDATA2, 0xf2f1},
		{EH_UDATA4, 0xf4f3f2f1},
		{EH_UDATA8, 0xf8f7f6f5f4f3f2f1},
		{EH_SDATA2, 0xfffffffffffff2f1},
		{EH_SDATA4, 0xfffffffff4f3f2f1},
		{EH_SDATA8, 0xf8f7f6f5f4f3f2f1},
		{EH_PC_RELATIVE | EH_SDATA4, 0x1000 + 0xfffffffff4f3f2f1},
		{EH_PC_RELATIVE | EH_UDATA2, 0x1000 + 0xf2f1},
		{EH_DATA_RELATIVE | EH_SDATA4, 0x5000 + 0xfffffffff4f3f2f1},
	};
	const uint64_t base = 0x5000;
	struct cursor c;

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		c = CURSOR(0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8);
		assert_int_equal(
			cursor_pointer(&c, cases[k].encoding, 0x1000, &base), cases[k].value);
		assert_false(c.bad);
	}
	c = CURSOR(0x85, 0x01);
	assert_int_equal(cursor_pointer(&c, EH_PC_RELATIVE | EH_ULEB, 0x1000, NULL), 0x1085);
	c = CURSOR(0x7e);
	assert_int_equal(cursor_pointer(&c, EH_PC_RELATIVE | EH_SLEB, 0x1000, NULL), 0xffe);
}

static void test_pointers_refused(void **state)
{
	static const uint8_t refused[] = {EH_INDIRECT | EH_SDATA4,
		EH_INDIRECT | EH_PC_RELATIVE | EH_SDATA4,
		EH_DATA_RELATIVE | EH_SDATA4, /* no base */
		0x20 | EH_SDATA4,             /* relative to the text */
		0x40 | EH_SDATA4,             /* relative to the function */
		EH_ALIGNED, 0x05, EH_OMITTED};

	for (size_t k = 0; k < sizeof(refused); k++) {
		struct cursor c = CURSOR(1, 2, 3, 4, 5, 6, 7, 8);

		cursor_pointer(&c, refused[k], 0x1000, NULL);
		assert_true(c.bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_leb),
		cmocka_unit_test(test_leb_limits),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_pointers_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
