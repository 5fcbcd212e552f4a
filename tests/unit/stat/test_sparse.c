/* SPDX-License-Identifier: Apache-2.0 */
/* test_sparse.c - what is kept sparsely is what a sketch would have, and takes memory for what is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "stat/sketch.h"

static void same(const struct sparse *s, const struct sketch *whole)
{
	struct sketch got = {0};

	sparse_merge(&got, s);
	assert_memory_equal(&got, whole, sizeof(got));
}

static void add(struct sparse *s, struct sketch *whole, const struct sketch *more)
{
	assert_int_equal(sparse_reserve(s, more), 0);
	sparse_add(s, more);
	sketch_merge(whole, more);
	same(s, whole);
}

static void it_is_what_a_sketch_is(void **state)
{
	uint64_t x = 88172645463325252u;
	struct sparse s = {0};
	struct sketch whole = {0};

	same(&s, &whole);
	for (int i = 0; i < 300; i++) {
		struct sketch more = {0};

		for (int k = 0; k < i % 7; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			sketch_add(&more, x >> (20 + x % 40), 1 + x % 5);
		}
		add(&s, &whole, &more);
	}
	assert_true(s.used > 200 && s.used <= s.room && s.room <= BUCKET_COUNT);
	sparse_done(&s);
	assert_int_equal(s.count + s.used, 0);
}

static void few_durations_take_little(void **state)
{
	struct sparse s = {0};
	struct sketch whole = {0}, more = {0};

	sketch_add(&more, 4000, 17);
	sketch_add(&more, 9000000, 1);
	for (int i = 0; i < 1000; i++)
		add(&s, &whole, &more);
	assert_int_equal(s.used, 2);
	assert_true(s.room <= 4);
	assert_int_equal(s.count, 18000);
	sparse_done(&s);
}

static void full_counts_stay_full(void **state)
{
	struct sparse s = {0};
	struct sketch whole = {0}, more = {0};

	sketch_add(&more, 5, UINT64_MAX);
	add(&s, &whole, &more);
	add(&s, &whole, &more);
	assert_int_equal(s.buckets[0].count, UINT64_MAX);
	sparse_done(&s);
}

static void all_buckets_fit(void **state)
{
	struct sparse s = {0};
	struct sketch whole = {0}, more = {0};

	for (unsigned b = 0; b < BUCKET_COUNT; b++)
		sketch_add(&more, bucket_low(b), b + 1);
	add(&s, &whole, &more);
	add(&s, &whole, &more);
	assert_int_equal(s.used, BUCKET_COUNT);
	sparse_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_what_a_sketch_is),
		cmocka_unit_test(few_durations_take_little),
		cmocka_unit_test(full_counts_stay_full),
		cmocka_unit_test(all_buckets_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
