/* SPDX-License-Identifier: Apache-2.0 */
/* test_total.c - a reading comes back as it was, gains reach all who count them, and folding loses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/capture/totals.h"

static struct sketch calls(uint64_t dur_ns, uint64_t n)
{
	struct sketch s = {0};

	sketch_add(&s, dur_ns, n);
	return s;
}

static void a_reading_comes_back(void **state)
{
	static const uint32_t buckets[] = {3, 100, 101, BUCKET_COUNT - 1};
	struct wire_agg now = {.count = 900,
		.sent = 7,
		.sum_ns = 123456,
		.min_ns = 3,
		.max_ns = UINT64_C(1) << 41,
		.sum_arg0 = 4096};
	struct total_seen seen = {0};

	/* Twice: the second has less in it, as an entry that the kernel made anew. */
	for (int i = 0; i < 2; i++) {
		struct sketch counts = {.count = now.count};
		struct wire_agg back;

		for (size_t k = 0; k < 4u - (size_t)i * 2; k++)
			counts.hist[buckets[k]] = now.hist[buckets[k]] = UINT32_MAX - (uint32_t)k;
		assert_int_equal(sparse_reserve(&seen.calls, &counts), 0);
		total_seen_set(&seen, &now, &counts);
		total_seen_get(&seen, &back);
		assert_memory_equal(&back, &now, sizeof(now));
		now = (struct wire_agg){.count = 5, .sum_ns = 1};
	}
	total_seen_clear(&seen);
	assert_int_equal(seen.sent + seen.calls.count, 0);
}

static void gains_reach_all_who_count(void **state)
{
	struct total *v = calloc(1, sizeof(*v));
	struct sketch gain = calls(5000, 3);
	struct total_kind *kind;
	int r;

	assert_non_null(v);
	assert_null(total_kind_of(v, WIRE_NESTED, &r));
	assert_int_equal(r, 0);
	kind = total_kind_of(v, 2u << WIRE_AGG_KIND, &r);
	assert_non_null(kind);
	assert_ptr_equal(total_kind_of(v, 2u << WIRE_AGG_KIND, &r), kind);
	assert_int_equal(total_gain(v, kind, &gain, 10), 0);
	assert_int_equal(total_gain(v, NULL, &gain, 1), 0);
	assert_int_equal(v->all.count, 6);
	assert_int_equal(v->bucket.count, 6);
	assert_int_equal(kind->all.count, 3);
	assert_int_equal(v->bytes, 11);
	assert_int_equal(v->bucket_bytes, 11);
	assert_int_equal(kind->bytes, 10);
	total_free(v);
}

static void folding_loses_nothing(void **state)
{
	struct total *to = calloc(1, sizeof(*to)), *from = calloc(1, sizeof(*from));
	struct sketch few = calls(100, 2), many = calls(90000, 50);
	int r;

	assert_true(to && from);
	assert_int_equal(total_gain(to, NULL, &few, 1), 0);
	assert_int_equal(
		total_gain(from, total_kind_of(from, 1u << WIRE_AGG_KIND, &r), &many, 20), 0);
	assert_int_equal(total_fold(to, from), 0);
	assert_int_equal(to->all.count, 52);
	assert_int_equal(to->all.min, 100);
	assert_int_equal(to->all.max, 90000);
	assert_int_equal(to->bytes, 21);
	assert_int_equal(to->kinds[1]->all.count, 50);
	assert_int_equal(to->kinds[1]->bytes, 20);
	assert_int_equal(total_fold(to, from), 0); /* nothing is left to be counted twice */
	assert_int_equal(to->all.count, 52);
	assert_int_equal(to->bytes + to->kinds[1]->bytes, 41);
	total_free(to);
	total_free(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reading_comes_back),
		cmocka_unit_test(gains_reach_all_who_count),
		cmocka_unit_test(folding_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
