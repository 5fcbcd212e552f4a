/* SPDX-License-Identifier: Apache-2.0 */
/* test_sort.c - the order is qsort()'s, whatever came in, and equal ones stay as they were. */
#include "base/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"

#define N 5000

struct row {
	int64_t ns;
	uint32_t pid, tid;
	uint32_t at; /* where it was; not compared */
};

static uint64_t seed;
static size_t compared;

static uint32_t draw(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

static int by_thread(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	compared++;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static int by_thread_and_place(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int r = by_thread(a, b);

	return r ? r : (x->at > y->at) - (x->at < y->at);
}

static void sort(struct row *rows, size_t n)
{
	SORT_DEALT(rows, n, by_thread, offsetof(struct row, pid), offsetof(struct row, tid));
}

static void expect_sorted(const struct row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		assert_true(by_thread_and_place(&rows[i - 1], &rows[i]) < 0);
}

/* @jitter: how far a row's time may be from its turn. */
static void fill(struct row *rows, size_t n, uint32_t jitter)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t tid = draw(7) * 0x01020305u + 0xfffffff0u; /* every byte differs */

		rows[i] = (struct row){(int64_t)i + draw(jitter), draw(3), tid, (uint32_t)i};
	}
}

static void test_any_order(void **state)
{
	static const uint32_t jitters[] = {1, 4, 100, 100000};
	_cleanup_free_ struct row *rows = calloc(N, sizeof(*rows));

	assert_non_null(rows);
	for (size_t i = 0; i < ARRAY_SIZE(jitters); i++)
		for (size_t n = 0; n <= N; n = n * 3 + 1) {
			uint64_t sum = 0;

			fill(rows, n, jitters[i]);
			sort(rows, n);
			expect_sorted(rows, n);
			for (size_t k = 0; k < n; k++)
				sum += rows[k].at;
			assert_int_equal(sum, n ? n * (n - 1) / 2 : 0); /* each is there */
		}
}

/* In order but for the threads: two looks at each, not log n. */
static void test_dealt_is_cheap(void **state)
{
	_cleanup_free_ struct row *rows = calloc(N, sizeof(*rows));

	assert_non_null(rows);
	fill(rows, N, 1);
	compared = 0;
	sort(rows, N);
	assert_in_range(compared, N - 1, 2 * N);
	compared = 0;
	fill(rows, N, 1);
	qsort(rows, N, sizeof(*rows), by_thread); /* control */
	assert_true(compared > 4 * N);
}

static void test_nothing(void **state)
{
	sort(NULL, 0);
	sort(&(struct row){0}, 1);
}

/* Elements larger than what is held at once are qsort()'s. */
static int by_first(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

static void test_wide(void **state)
{
	_cleanup_free_ char *items = calloc(100, 2000);

	assert_non_null(items);
	for (int i = 0; i < 100; i++)
		items[i * 2000] = (char)(99 - i);
	sort_dealt(items, 100, 2000, NULL, 0, by_first);
	for (int i = 0; i < 100; i++)
		assert_int_equal(items[i * 2000], i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_dealt_is_cheap),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_wide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
