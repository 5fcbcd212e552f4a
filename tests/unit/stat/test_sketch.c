/* SPDX-License-Identifier: Apache-2.0 */
/* test_sketch.c - error bound, merging, kernel differences, and blobs that lie. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "stat/robust.h"
#include "stat/sketch.h"

#define N           20000
#define ERROR_BOUND 0.032

static uint64_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 11;
}

/* Spread over all magnitudes from 1 ns to 18 minutes. */
static uint64_t random_duration(uint64_t *seed)
{
	return (random_next(seed) & ((UINT64_C(1) << 40) - 1)) >> (random_next(seed) >> 20) % 40;
}

static void test_bucket_bounds(void **state)
{
	for (unsigned b = 0; b < BUCKET_COUNT; b++) {
		assert_int_equal(bucket_of(bucket_low(b)), b);
		if (b > 0)
			assert_int_equal(bucket_of(bucket_low(b) - 1), b - 1);
	}
	assert_int_equal(bucket_of(UINT64_MAX), BUCKET_COUNT - 1);
}

static void test_quantile_error_bound(void **state)
{
	static uint64_t values[N];
	static const double q[] = {0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1};
	struct sketch s = {0};
	uint64_t seed = 7;

	for (int i = 0; i < N; i++) {
		values[i] = random_duration(&seed);
		sketch_add(&s, values[i], 1);
	}
	robust_sort(values, N);
	for (size_t i = 0; i < ARRAY_SIZE(q); i++) {
		double want = (double)robust_quantile(values, N, q[i]);
		double got = (double)sketch_quantile(&s, q[i]);

		assert_true(fabs(got - want) <= ERROR_BOUND * want);
	}
	assert_int_equal(s.count, N);
	assert_int_equal(sketch_quantile(&s, 1), values[N - 1]);
	assert_int_equal(s.min, values[0]);
}

static void test_empty_and_single(void **state)
{
	struct sketch s = {0};

	assert_int_equal(sketch_quantile(&s, 0.5), 0);
	sketch_add(&s, 1234567, 3);
	assert_int_equal(sketch_quantile(&s, 0.01), 1234567);
	assert_int_equal(sketch_quantile(&s, 0.5), 1234567);
	assert_int_equal(sketch_quantile(&s, 1), 1234567);
	assert_int_equal(s.sum, 3 * 1234567);
	sketch_add(&s, 5, 0);
	assert_int_equal(s.min, 1234567);
	sketch_add(&s, UINT64_MAX, 2);
	assert_int_equal(s.sum, UINT64_MAX);
	assert_int_equal(s.max, UINT64_MAX);
	assert_int_equal(s.count, 5);
}

static void test_merge_equals_adding_all(void **state)
{
	struct sketch all = {0}, a = {0}, b = {0}, empty = {0};
	uint64_t seed = 11;

	for (int i = 0; i < 1000; i++) {
		uint64_t v = random_duration(&seed);

		sketch_add(&all, v, 1);
		sketch_add(i % 3 ? &a : &b, v, 1);
	}
	sketch_merge(&a, &b);
	sketch_merge(&a, &empty);
	assert_memory_equal(&a, &all, sizeof(a));
	sketch_merge(&empty, &all);
	assert_memory_equal(&empty, &all, sizeof(all));
}

static void agg_add(struct wire_agg *a, uint64_t v)
{
	a->min_ns = a->count && a->min_ns < v ? a->min_ns : v;
	a->max_ns = MAX((uint64_t)a->max_ns, v);
	a->count++;
	a->sum_ns += v;
	a->hist[bucket_of(v)]++;
}

static void test_kernel_difference(void **state)
{
	struct wire_agg before = {0}, now;
	struct sketch s = {0};

	agg_add(&before, 100);
	agg_add(&before, 9000);
	now = before;
	agg_add(&now, 1000);
	agg_add(&now, 2000);
	sketch_add_delta(&s, &now, &before);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.sum, 3000);
	assert_in_range(s.min, 968, 1000);
	assert_in_range(s.max, 2000, 2064);

	/* New extremes are exact; nothing before means all of it; a shrunken entry is a new one. */
	s = (struct sketch){0};
	agg_add(&now, 50);
	agg_add(&now, 70000);
	sketch_add_delta(&s, &now, &before);
	assert_int_equal(s.min, 50);
	assert_int_equal(s.max, 70000);
	s = (struct sketch){0};
	sketch_add_delta(&s, &before, NULL);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.max, 9000);
	s = (struct sketch){0};
	sketch_add_delta(&s, &before, &now);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.sum, 9100);
	sketch_add_delta(&s, &now, &now);
	assert_int_equal(s.count, 2);
}

static void test_kernel_counter_wraps(void **state)
{
	struct wire_agg before = {.count = 10, .min_ns = 20, .max_ns = 20, .sum_ns = 200}, now;
	struct sketch s = {0};

	before.hist[bucket_of(20)] = UINT32_MAX;
	now = before;
	now.count += 3;
	now.sum_ns += 60;
	now.hist[bucket_of(20)] += 3;
	sketch_add_delta(&s, &now, &before);
	assert_int_equal(s.hist[bucket_of(20)], 3);
}

/* Calls that were counted and not timed are spoken for by those that were. */
static void test_kernel_untimed(void **state)
{
	struct wire_agg before = {0}, now;
	struct sketch s = {0};

	agg_add(&before, 100);
	before.count += 6;
	now = before;
	agg_add(&now, 1000);
	agg_add(&now, 1000);
	agg_add(&now, 3000);
	now.count += 17;
	sketch_add_delta(&s, &now, &before);
	assert_int_equal(s.count, 20);
	assert_int_equal(s.hist[bucket_of(1000)], 13);
	assert_int_equal(s.hist[bucket_of(3000)], 7);
	assert_in_range(s.sum, 33333, 33334);
	assert_int_equal(s.max, 3000);

	/* None was timed between the readings: all that ever were stand for them. */
	s = (struct sketch){0};
	before = now;
	now.count += 3;
	sketch_add_delta(&s, &now, &before);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.sum, 3 * 5100 / 4);
	assert_int_equal(
		s.hist[bucket_of(100)] + s.hist[bucket_of(1000)] + s.hist[bucket_of(3000)], 3);

	/* The largest buckets do not overflow, and none is lost. */
	s = (struct sketch){0};
	now.count = UINT64_C(1) << 40;
	now.hist[bucket_of(1000)] = UINT32_MAX;
	sketch_add_delta(&s, &now, NULL);
	assert_int_equal(s.hist[bucket_of(100)] + s.hist[bucket_of(1000)] + s.hist[bucket_of(3000)],
		now.count);
}

/* Read between the two counters of a call: both readings add up, and so does all of them. */
static void test_kernel_read_within_a_call(void **state)
{
	struct wire_agg before = {0}, between, now;
	struct sketch first = {0}, second = {0};

	for (int i = 0; i < 1000; i++)
		agg_add(&before, 300);
	between = before;
	agg_add(&between, 300);
	agg_add(&between, 300);
	now = between;
	between.count--;
	sketch_add_delta(&first, &between, &before);
	assert_int_equal(first.count, 1);
	assert_int_equal(first.hist[bucket_of(300)], 1);
	agg_add(&now, 300);
	sketch_add_delta(&second, &now, &between);
	assert_int_equal(second.count, 2);
	assert_int_equal(second.hist[bucket_of(300)], 2);
	assert_int_equal(first.sum + second.sum, 3 * 300);
}

static void test_round_trip(void **state)
{
	uint8_t blob[SKETCH_BLOB_MAX], again[SKETCH_BLOB_MAX];
	struct sketch s = {0}, back = {0};
	uint64_t seed = 3;
	size_t len;

	for (int i = 0; i < 5000; i++)
		sketch_add(&s, random_duration(&seed), 1 + random_next(&seed) % 1000);
	len = sketch_encode(&s, blob);
	assert_int_equal(sketch_decode(&back, blob, len), 0);
	assert_memory_equal(back.hist, s.hist, sizeof(s.hist));
	assert_int_equal(back.count, s.count);
	assert_int_equal(sketch_encode(&back, again), len);
	assert_memory_equal(blob, again, len);
	/* Decoding adds; without extremes quantiles come from the buckets alone. */
	assert_int_equal(sketch_decode(&back, blob, len), 0);
	assert_int_equal(back.count, 2 * s.count);
	assert_true(fabs((double)sketch_quantile(&back, 0.5) - (double)sketch_quantile(&s, 0.5)) <=
		    ERROR_BOUND * (double)sketch_quantile(&s, 0.5));
}

static void test_largest_blob_fits(void **state)
{
	uint8_t blob[SKETCH_BLOB_MAX];
	struct sketch s = {0}, back = {0};

	for (unsigned b = 0; b < BUCKET_COUNT; b++)
		s.hist[b] = UINT64_MAX / BUCKET_COUNT;
	assert_in_range(sketch_encode(&s, blob), 1, SKETCH_BLOB_MAX);
	assert_int_equal(sketch_decode(&back, blob, sketch_encode(&s, blob)), 0);
	assert_memory_equal(back.hist, s.hist, sizeof(s.hist));
}

static void test_hostile_blobs(void **state)
{
	static const struct {
		const char *why;
		uint8_t data[24];
		size_t len;
		int want;
	} rows[] = {
		{"control: bucket 4, 5 calls", {1, 5, 5}, 3, 0},
		{"control: empty histogram", {1}, 1, 0},
		{"control: the last bucket", {1, 0xd0, 0x04, 1}, 4, 0},
		{"no version", {0}, 0, -EBADMSG},
		{"unknown version", {2, 5, 5}, 3, -EBADMSG},
		{"distance without count", {1, 5}, 2, -EBADMSG},
		{"number cut off", {1, 5, 0x85}, 3, -EBADMSG},
		{"distance 0", {1, 0, 5}, 3, -EBADMSG},
		{"count 0", {1, 5, 0}, 3, -EBADMSG},
		{"overlong 5", {1, 5, 0x85, 0x00}, 4, -EBADMSG},
		{"bucket past the end", {1, 0xd1, 0x04, 1}, 4, -EBADMSG},
		{"second bucket past the end", {1, 0xd0, 0x04, 1, 1, 1}, 6, -EBADMSG},
		{"distance 2^63", {1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 1},
			12, -EBADMSG},
		{"more than 64 bits",
			{1, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, 12,
			-EBADMSG},
		{"eleven bytes",
			{1, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0}, 13,
			-EBADMSG},
		{"counts overflow",
			{1, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 1}, 14,
			-EBADMSG},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sketch s = {0}, before;
		int r;

		sketch_add(&s, 77, 9);
		before = s;
		r = sketch_decode(&s, rows[i].data, rows[i].len);
		if (r != rows[i].want)
			fail_msg("%s: %d", rows[i].why, r);
		if (r < 0)
			assert_memory_equal(&s, &before, sizeof(s));
	}
}

static void test_random_blobs_never_break_invariants(void **state)
{
	uint64_t seed = 99;
	int accepted = 0;

	for (int i = 0; i < 20000; i++) {
		uint8_t blob[64];
		struct sketch s = {0};
		size_t len = 1 + random_next(&seed) % (sizeof(blob) - 1);
		uint64_t sum = 0;

		for (size_t k = 0; k < len; k++)
			blob[k] = (uint8_t)(random_next(&seed) % (i % 2 ? 256 : 40));
		blob[0] = 1;
		if (sketch_decode(&s, blob, len) < 0)
			continue;
		accepted++;
		for (unsigned b = 0; b < BUCKET_COUNT; b++)
			sum += s.hist[b];
		assert_int_equal(sum, s.count);
	}
	assert_in_range(accepted, 100, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bucket_bounds),
		cmocka_unit_test(test_quantile_error_bound),
		cmocka_unit_test(test_empty_and_single),
		cmocka_unit_test(test_merge_equals_adding_all),
		cmocka_unit_test(test_kernel_difference),
		cmocka_unit_test(test_kernel_counter_wraps),
		cmocka_unit_test(test_kernel_untimed),
		cmocka_unit_test(test_kernel_read_within_a_call),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_largest_blob_fits),
		cmocka_unit_test(test_hostile_blobs),
		cmocka_unit_test(test_random_blobs_never_break_invariants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
