/* SPDX-License-Identifier: Apache-2.0 */
/* test_pb_writer.c - the very bytes, as protobuf's documentation of its encoding gives them. What
 * is longer is read back in test_pb_reader.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "otlp/pb_writer.h"

static void assert_bytes(const struct buf *b, const char *bytes, size_t len)
{
	assert_int_equal(b->len, len);
	assert_memory_equal(b->data, bytes, len);
}

static void test_bytes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 10);
	size_t begun;

	pb_put_varint(&b, 1, 150);
	assert_bytes(&b, "\x08\x96\x01", 3);
	buf_clear(&b);
	pb_put_varint(&b, 1, (uint64_t)-2);
	assert_bytes(&b, "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	buf_clear(&b);
	pb_put_string(&b, 2, "testing");
	assert_bytes(&b, "\x12\x07testing", 9);
	buf_clear(&b);
	begun = pb_begin(&b, 3);
	pb_put_varint(&b, 1, 150);
	pb_end(&b, begun);
	assert_bytes(&b, "\x1a\x03\x08\x96\x01", 5);
	buf_clear(&b);
	pb_put_fixed64(&b, 16, 1);
	assert_bytes(&b, "\x81\x01\x01\0\0\0\0\0\0\0", 10);
	buf_clear(&b);
	pb_put_double(&b, 1, 1.0);
	assert_bytes(&b, "\x09\0\0\0\0\0\0\xf0\x3f", 9);
	buf_clear(&b);
	pb_put_packed_fixed64(&b, 6, NULL, 0);
	assert_int_equal(b.len, 0);
}

static void test_an_empty_message(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 10);

	pb_end(&b, pb_begin(&b, 1));
	assert_bytes(&b, "\x0a\x00", 2);
}

static void test_no_room_sticks(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(130);
	char text[128] = {0};
	size_t begun = pb_begin(&b, 1);

	pb_put_bytes(
		&b, 2, text, 126); /* 128 bytes: the length needs a second byte, just not here */
	assert_int_equal(b.err, 0);
	pb_end(&b, begun);
	assert_int_equal(b.err, -ENOBUFS);
	pb_end(&b, begun);
	assert_int_equal(b.err, -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_an_empty_message),
		cmocka_unit_test(test_no_room_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
