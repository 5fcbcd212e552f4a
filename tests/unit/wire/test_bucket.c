/* SPDX-License-Identifier: Apache-2.0 */
/* test_bucket.c - the histogram's arithmetic: order, edges, the error bound, and the formula that
 * record.h states, computed here in another way (with the compiler's count of leading zeros). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/record.h"

#define TOP (1ULL << BUCKET_TOP_BITS)

/* A repeatable spread of values over all magnitudes (xorshift64). */
static uint64_t next_value(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> (*seed & 63);
}

static void test_top_bit_agrees_with_clz(void **state)
{
	uint64_t seed = 88172645463325252ULL;

	for (unsigned bit = 0; bit < 64; bit++) {
		assert_int_equal(bucket_top_bit(1ULL << bit), bit);
		assert_int_equal(bucket_top_bit((1ULL << bit) | ((1ULL << bit) - 1)), bit);
	}
	for (int i = 0; i < 100003; i++) {
		uint64_t v = next_value(&seed) | 1;

		assert_int_equal(bucket_top_bit(v), 63 - __builtin_clzll(v));
	}
}

static void test_small_values_have_their_own_bucket(void **state)
{
	for (unsigned v = 0; v < 2 * BUCKET_SUB; v++) /* the first octave is exact too */
		assert_int_equal(bucket_of(v), v);
	assert_int_equal(bucket_of(2 * BUCKET_SUB), bucket_of(2 * BUCKET_SUB + 1));
}

static void test_edges(void **state)
{
	assert_int_equal(BUCKET_COUNT, 592);
	assert_int_equal(bucket_of(TOP - 1), BUCKET_COUNT - 1);
	assert_int_equal(bucket_of(TOP), BUCKET_COUNT - 1);
	assert_int_equal(bucket_of(UINT64_MAX), BUCKET_COUNT - 1);
	assert_int_equal(bucket_of(TOP / 32 * 31 - 1), BUCKET_COUNT - 2);
	assert_int_equal(bucket_of(TOP / 32 * 31), BUCKET_COUNT - 1);
}

/* Walks all edges: bucket b begins at low, and low - 1 lies in b - 1. */
static void test_buckets_follow_without_gap_or_overlap(void **state)
{
	uint64_t low = 0;

	for (unsigned b = 0; b < BUCKET_COUNT; b++) {
		uint64_t width = b < 2 * BUCKET_SUB ? 1 : 1ULL << (b / BUCKET_SUB - 1);

		assert_int_equal(bucket_of(low), b);
		assert_int_equal(bucket_of(low + width - 1), b);
		low += width;
	}
	assert_int_equal(low, TOP);
}

static void test_monotonic(void **state)
{
	uint64_t seed = 2463534242ULL;

	for (uint64_t v = 0; v < 100003; v++)
		assert_in_range(bucket_of(v + 1) - bucket_of(v), 0, 1);
	for (int i = 0; i < 100003; i++) {
		uint64_t a = next_value(&seed), b = next_value(&seed);

		assert_true(a <= b ? bucket_of(a) <= bucket_of(b) : bucket_of(a) >= bucket_of(b));
		assert_true(bucket_of(a) < BUCKET_COUNT);
	}
}

/* The middle of a bucket is within 1/32 of every value in it. */
static void test_error_bound(void **state)
{
	uint64_t low = 0;
	double worst = 0;

	for (unsigned b = 0; b < BUCKET_COUNT; b++) {
		uint64_t width = b < 2 * BUCKET_SUB ? 1 : 1ULL << (b / BUCKET_SUB - 1);
		double middle = (double)low + (double)(width - 1) / 2;

		if (low > 0 && (middle - (double)low) / (double)low > worst)
			worst = (middle - (double)low) / (double)low;
		low += width;
	}
	assert_true(worst <= 1.0 / 32);
	assert_true(worst > 1.0 / 33); /* the bound is met, so the loop measured something */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top_bit_agrees_with_clz),
		cmocka_unit_test(test_small_values_have_their_own_bucket),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_buckets_follow_without_gap_or_overlap),
		cmocka_unit_test(test_monotonic),
		cmocka_unit_test(test_error_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
