/* SPDX-License-Identifier: Apache-2.0 */
/* test_pb_writer.c - bytes by the format's own rules: keys, numbers, lengths, nesting, ceilings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "protobuf/pb.h"

static void check(const struct buf *b, const char *bytes, size_t len)
{
	assert_int_equal(b->err, 0);
	assert_int_equal(b->len, len);
	assert_memory_equal(b->data, bytes, len);
}
#define CHECK(b, text) check(b, text, sizeof(text) - 1)

static void test_numbers(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	pb_put_varint(&b, 1, 150);
	CHECK(&b, "\x08\x96\x01");
	buf_clear(&b);
	pb_put_varint(&b, 2047, 0); /* the key takes two bytes, and two more from 2048 on */
	pb_put_varint(&b, 2048, 1);
	CHECK(&b, "\xf8\x7f\x00\x80\x80\x01\x01");
	buf_clear(&b);
	pb_put_varint(&b, 1, UINT64_MAX);
	CHECK(&b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	buf_clear(&b);
	pb_put_sint(&b, 1, -1);
	pb_put_sint(&b, 1, 1);
	pb_put_sint(&b, 1, INT64_MIN);
	CHECK(&b, "\x08\x01\x08\x02\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	buf_clear(&b);
	pb_put_fixed64(&b, 3, 0x0102030405060708);
	pb_put_fixed32(&b, 3, 0x01020304);
	pb_put_double(&b, 4, 1.0);
	CHECK(&b, "\x19\x08\x07\x06\x05\x04\x03\x02\x01\x1d\x04\x03\x02\x01"
		  "\x21\x00\x00\x00\x00\x00\x00\xf0\x3f");
}

static void test_strings(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	pb_put_string(&b, 2, "testing");
	CHECK(&b, "\x12\x07testing");
	buf_clear(&b);
	pb_put_bytes(&b, 2, "\xff\x00\x01", 3);
	CHECK(&b, "\x12\x03\xff\x00\x01");
	buf_clear(&b);
	pb_put_string_len(&b, 2,
		"a\xff"
		"b\xc3",
		4);
	CHECK(&b, "\x12\x08"
		  "a\xef\xbf\xbd"
		  "b\xef\xbf\xbd");
	buf_clear(&b);
	pb_put_string(&b, 2, "");
	CHECK(&b, "\x12\x00");
}

/* Lengths at the borders of one, two and three bytes. */
static void test_lengths(void **state)
{
	static const struct {
		size_t len;
		const char *head;
	} cases[] = {{127, "\x0a\x7f"}, {128, "\x0a\x80\x01"}, {16383, "\x0a\xff\x7f"},
		{16384, "\x0a\x80\x80\x01"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
		size_t mark = pb_put_begin(&b, 1), head = strlen(cases[i].head);

		for (size_t n = 0; n < cases[i].len; n++)
			buf_putc(&b, (char)('a' + n % 26));
		pb_put_end(&b, mark);
		assert_int_equal(b.err, 0);
		assert_int_equal(b.len, head + cases[i].len);
		assert_memory_equal(b.data, cases[i].head, head);
		for (size_t n = 0; n < cases[i].len; n++)
			assert_int_equal(b.data[head + n], 'a' + n % 26);
	}
}

static void test_nesting(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	size_t outer = pb_put_begin(&b, 1), inner = pb_put_begin(&b, 2);

	pb_put_varint(&b, 1, 270);
	pb_put_end(&b, inner);
	pb_put_end(&b, pb_put_begin(&b, 3));
	pb_put_end(&b, outer);
	CHECK(&b, "\x0a\x07\x12\x03\x08\x8e\x02\x1a\x00");

	/* A long message inside another: both lengths grow by a byte. */
	buf_clear(&b);
	outer = pb_put_begin(&b, 1);
	inner = pb_put_begin(&b, 1);
	for (int i = 0; i < 126; i++)
		buf_putc(&b, 'x');
	pb_put_end(&b, inner);
	pb_put_end(&b, outer);
	assert_int_equal(b.len, 1 + 2 + 2 + 126);
	assert_memory_equal(b.data, "\x0a\x80\x01\x0a\x7exx", 7);
}

static void test_packed(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	pb_put_packed_fixed64(&b, 6, (const uint64_t[]){1, 258}, 2);
	CHECK(&b, "\x32\x10\x01\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0");
	buf_clear(&b);
	pb_put_packed_double(&b, 7, (const double[]){1.0}, 1);
	CHECK(&b, "\x3a\x08\0\0\0\0\0\0\xf0\x3f");
	buf_clear(&b);
	pb_put_packed_fixed64(&b, 6, NULL, 0);
	assert_int_equal(b.len, 0);
}

static void test_ceiling(void **state)
{
	for (size_t max = 0; max < 160; max++) {
		_cleanup_buf_ struct buf b = BUF_INIT(max);
		size_t outer = pb_put_begin(&b, 1), inner = pb_put_begin(&b, 2);

		for (int i = 0; i < 130; i++)
			buf_putc(&b, 1);
		pb_put_string(&b, 3, "end");
		pb_put_end(&b, inner);
		pb_put_end(&b, outer);
		assert_true(b.len <= max);
		assert_int_equal(b.err, max < 141 ? -ENOBUFS : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
