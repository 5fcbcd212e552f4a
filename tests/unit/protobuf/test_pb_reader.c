/* SPDX-License-Identifier: Apache-2.0 */
/* test_pb_reader.c - what the writer wrote is read back; what is damaged is refused and never read
 * beyond its end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "protobuf/pb.h"

#define MUTATIONS 20000

static void test_values(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	static const uint64_t numbers[] = {1, UINT64_MAX};
	static const double reals[] = {0.5, -1e300};
	size_t message, len;
	struct pb_reader r, inner;
	struct pb_field f;
	double d;
	uint64_t bits;

	pb_put_varint(&b, 1, (uint64_t)-5);
	pb_put_fixed64(&b, 2, UINT64_C(0x0123456789abcdef));
	pb_put_double(&b, 3, 2.5);
	pb_put_string(&b, 4, "gr\xc3\xbc\xc3\x9f");
	pb_put_packed_fixed64(&b, 5, numbers, 2);
	pb_put_packed_double(&b, 6, reals, 2);
	message = pb_put_begin(&b, 15);
	pb_put_varint(&b, 536870911, 7); /* the largest number */
	pb_put_end(&b, message);
	assert_int_equal(b.err, 0);
	r = pb_reader_of(b.data, b.len);
	assert_true(pb_next(&r, &f) && f.number == 1 && pb_int(&r, &f) == -5);
	assert_true(pb_next(&r, &f) && f.number == 2);
	assert_true(pb_fixed64(&r, &f) == UINT64_C(0x0123456789abcdef));
	assert_true(pb_next(&r, &f) && f.number == 3 && pb_double(&r, &f) == 2.5);
	assert_true(pb_next(&r, &f) && f.number == 4);
	assert_memory_equal(pb_string(&r, &f, &len), "gr\xc3\xbc\xc3\x9f", 6);
	assert_int_equal(len, 6);
	assert_true(pb_next(&r, &f) && f.number == 5 && pb_packed(&r, &f) == 2);
	assert_true(pb_packed_at(&f, 1) == UINT64_MAX);
	assert_true(pb_next(&r, &f) && f.number == 6 && pb_packed(&r, &f) == 2);
	bits = pb_packed_at(&f, 1);
	memcpy(&d, &bits, sizeof(d));
	assert_true(d == -1e300);
	assert_true(pb_next(&r, &f) && f.number == 15);
	inner = pb_enter(&r, &f);
	assert_true(pb_next(&inner, &f) && f.number == 536870911 && pb_int(&inner, &f) == 7);
	assert_false(pb_next(&inner, &f));
	pb_leave(&r, &inner);
	assert_false(pb_next(&r, &f));
	assert_int_equal(r.err, 0);
}

/* Lengths of one, two and three bytes, nested: what is moved stays whole. */
static void test_long_messages(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	_cleanup_free_ char *text = calloc(1, 20001);
	size_t outer = pb_put_begin(&b, 1), inner;
	struct pb_reader r, in;
	struct pb_field f;

	for (int i = 0; i < 3; i++) {
		static const size_t sizes[] = {100, 200, 20000};

		memset(text, 'a' + i, sizes[i]);
		inner = pb_put_begin(&b, 2);
		pb_put_bytes(&b, 3, text, sizes[i]);
		pb_put_end(&b, inner);
	}
	pb_put_end(&b, outer);
	r = pb_reader_of(b.data, b.len);
	assert_true(pb_next(&r, &f));
	in = pb_enter(&r, &f);
	for (int i = 0; i < 3; i++) {
		struct pb_reader deepest;
		struct pb_field g;

		assert_true(pb_next(&in, &f));
		deepest = pb_enter(&in, &f);
		assert_true(pb_next(&deepest, &g));
		assert_int_equal(g.data[0], 'a' + i);
		assert_int_equal(g.data[g.len - 1], 'a' + i);
		assert_false(pb_next(&deepest, &g));
		assert_int_equal(deepest.err, 0);
	}
	assert_false(pb_next(&in, &f));
	assert_int_equal(in.err, 0);
}

static int read_err(const char *bytes, size_t len)
{
	struct pb_reader r = pb_reader_of(bytes, len);
	struct pb_field f;

	while (pb_next(&r, &f))
		continue;
	assert_false(pb_next(&r, &f)); /* it stays ended */
	return r.err;
}

static void test_faults(void **state)
{
	assert_int_equal(read_err("", 0), 0);
	assert_int_equal(read_err(NULL, 0), 0);
	assert_int_equal(read_err("\x08", 1), -EBADMSG);               /* no value */
	assert_int_equal(read_err("\x08\x80", 2), -EBADMSG);           /* a varint cut off */
	assert_int_equal(read_err("\x08\x01", 2), 0);                  /* (control) */
	assert_int_equal(read_err("\x00\x01", 2), -EBADMSG);           /* field 0 */
	assert_int_equal(read_err("\x0b\x0c", 2), -EBADMSG);           /* a group */
	assert_int_equal(read_err("\x0c", 1), -EBADMSG);               /* its end */
	assert_int_equal(read_err("\x0e\x01", 2), -EBADMSG);           /* type 6 */
	assert_int_equal(read_err("\x12\x02\x41", 3), -EBADMSG);       /* bytes cut off */
	assert_int_equal(read_err("\x12\x01\x41", 3), 0);              /* (control) */
	assert_int_equal(read_err("\x09\1\2\3\4\5\6\7", 8), -EBADMSG); /* 7 of 8 */
	assert_int_equal(read_err("\x0d\1\2\3", 4), -EBADMSG);         /* 3 of 4 */
	assert_int_equal(read_err("\x0d\1\2\3\4", 5), 0);              /* (control) */
	assert_int_equal(read_err("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), 0);
	assert_int_equal(read_err("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11), -EBADMSG);
	assert_int_equal(
		read_err("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x41", 12), -EBADMSG);
}

static void test_a_wrong_type_is_a_fault_that_stays(void **state)
{
	struct pb_reader r = pb_reader_of("\x08\x01\x10\x02", 4), inner;
	struct pb_field f;
	size_t len;

	assert_true(pb_next(&r, &f));
	assert_int_equal(pb_fixed64(&r, &f), 0);
	assert_int_equal(r.err, -EBADMSG);
	assert_false(pb_next(&r, &f));
	r = pb_reader_of("\x08\x01\x10\x02", 4);
	assert_true(pb_next(&r, &f));
	inner = pb_enter(&r, &f);
	assert_int_equal(inner.err, -EBADMSG);
	assert_int_equal(r.err, -EBADMSG);
	r = pb_reader_of("\x0a\x02\xc3\x28", 4);
	assert_true(pb_next(&r, &f));
	assert_null(pb_string(&r, &f, &len)); /* not UTF-8 */
	assert_int_equal(r.err, -EBADMSG);
	r = pb_reader_of("\x0a\x01\x41", 3);
	assert_true(pb_next(&r, &f));
	assert_int_equal(pb_packed(&r, &f), 0); /* not a multiple of 8 */
	assert_int_equal(r.err, -EBADMSG);
}

/* Walks everything that can be entered, as deep as it goes. */
static void walk(struct pb_reader *r, uint64_t *sum)
{
	struct pb_field f;

	while (pb_next(r, &f)) {
		struct pb_reader inner;
		struct pb_reader copy = *r;
		size_t len = 0;

		*sum += f.number + f.value + f.len;
		if (f.type != PB_BYTES)
			continue;
		for (size_t i = 0, n = pb_packed(&copy, &f); i < n; i++)
			*sum += pb_packed_at(&f, i);
		copy = *r;
		if (pb_string(&copy, &f, &len))
			*sum += len;
		inner = pb_enter(r, &f);
		walk(&inner, sum);
		if (inner.err == -E2BIG)
			pb_leave(r, &inner);
	}
}

static void test_depth(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct pb_reader r;
	uint64_t sum = 0;
	size_t begun[PB_DEPTH_MAX + 1];

	for (int i = 0; i < PB_DEPTH_MAX; i++)
		begun[i] = pb_put_begin(&b, 1);
	for (int i = PB_DEPTH_MAX; i-- > 0;)
		pb_put_end(&b, begun[i]);
	r = pb_reader_of(b.data, b.len);
	walk(&r, &sum);
	assert_int_equal(r.err, 0);
	buf_clear(&b);
	for (int i = 0; i <= PB_DEPTH_MAX; i++)
		begun[i] = pb_put_begin(&b, 1);
	for (int i = PB_DEPTH_MAX + 1; i-- > 0;)
		pb_put_end(&b, begun[i]);
	r = pb_reader_of(b.data, b.len);
	walk(&r, &sum);
	assert_int_equal(r.err, -E2BIG);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Bytes changed, cut off and repeated, in memory that ends where the message does: a reading beyond
 * it is seen by the sanitizers. */
static void test_damaged_messages(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	static const uint64_t numbers[] = {1, 2, 3};
	uint64_t random = 0x9e3779b97f4a7c15ULL, sum = 0, faults = 0;
	size_t outer, inner;

	for (int i = 0; i < 5; i++) {
		outer = pb_put_begin(&b, 1);
		pb_put_string(&b, 1, "service.name");
		inner = pb_put_begin(&b, 2);
		pb_put_varint(&b, 3, (uint64_t)-1);
		pb_put_packed_fixed64(&b, 6, numbers, 3);
		pb_put_double(&b, 4, 0.25);
		pb_put_end(&b, inner);
		pb_put_end(&b, outer);
	}
	for (int i = 0; i < MUTATIONS; i++) {
		size_t len = b.len - (i % 3 ? 0 : next_random(&random) % b.len);
		uint8_t *copy = malloc(MAX(len, (size_t)1));
		struct pb_reader r;

		memcpy(copy, b.data, len);
		for (uint64_t n = next_random(&random) % 4; len && n > 0; n--)
			copy[next_random(&random) % len] = (uint8_t)next_random(&random);
		r = pb_reader_of(copy, len);
		walk(&r, &sum);
		faults += r.err < 0;
		free(copy);
	}
	assert_in_range(faults, MUTATIONS / 4, MUTATIONS); /* damage was done, and seen */
	assert_true(sum > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_long_messages),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_a_wrong_type_is_a_fault_that_stays),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_damaged_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
