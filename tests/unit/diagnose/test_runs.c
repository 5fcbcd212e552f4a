/* SPDX-License-Identifier: Apache-2.0 */
/* test_runs.c - rounds of a loop from marks of which some are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/units/runs.h"
#include "base/clock.h"

#define MARKS 4000
#define MS    ((int64_t)NS_PER_MS)

static struct run_mark marks[MARKS];
static int64_t begins[MARKS];
static size_t mark_count;

static void mark(int64_t ns, uint64_t place)
{
	marks[mark_count++] = (struct run_mark){ns, place};
}

static size_t found(int64_t least_ns)
{
	size_t n = 99;

	assert_int_equal(runs_find(marks, mark_count, least_ns, begins, &n), 0);
	mark_count = 0;
	return n;
}

/* A step: twelve layers of two lines each, then the update; every third mark is lost, by chance. */
static int64_t step(int64_t at, uint32_t *seed, int64_t each_ns)
{
	for (int i = 0; i < 24 + 20; i++) {
		*seed = *seed * 1664525u + 1013904223u;
		if ((*seed >> 8) % 3)
			mark(at, i < 24 ? 1 + (uint64_t)(i % 2) : 3);
		at += each_ns;
	}
	return at;
}

static void test_the_round_not_the_layer(void **state)
{
	uint32_t seed = 7;
	int64_t at = 0;

	for (int i = 0; i < 40; i++)
		at = step(at, &seed, 2 * MS);
	assert_in_range(found(5 * MS), 39, 40);
	for (size_t i = 1; i < 39; i++) /* the first mark of a run may be missing */
		assert_in_range(begins[i] - begins[i - 1], 70 * MS, 106 * MS);
}

/* What was compiled before the loop is a break, not a round. */
static void test_after_a_long_start(void **state)
{
	uint32_t seed = 3;
	int64_t at = step(0, &seed, MS);

	at += 60 * 1000 * MS;
	for (int i = 0; i < 30; i++)
		at = step(at, &seed, MS);
	assert_in_range(found(5 * MS), 30, 31);
}

/* A model that is made line by line, in more places than are looked at, each of them once. */
static void test_after_a_start_of_many_lines(void **state)
{
	uint32_t seed = 5;
	int64_t at = 0;

	for (uint64_t i = 0; i < 500; i++, at += MS)
		mark(at, 1000 + i);
	for (int i = 0; i < 30; i++)
		at = step(at, &seed, MS);
	assert_in_range(found(5 * MS), 29, 31);
}

static void test_nothing_comes_back(void **state)
{
	uint32_t seed = 11;
	int64_t at = 0;

	for (int i = 0; i < 300; i++) { /* at random */
		seed = seed * 1664525u + 1013904223u;
		at += (int64_t)((seed >> 8) % 50) * MS;
		mark(at, 1 + (seed >> 20) % 3);
	}
	assert_int_equal(found(5 * MS), 0);
	for (int i = 0; i < 300; i++) /* one place alone is one run */
		mark(i * MS, 1);
	assert_int_equal(found(5 * MS), 0);
	for (int i = 0; i < 300; i++) /* marks without a place end none */
		mark(i * MS, i % 2 ? 1 : 0);
	assert_int_equal(found(5 * MS), 0);
	assert_int_equal(found(5 * MS), 0); /* no marks */
}

static void test_too_short_or_too_few(void **state)
{
	for (int i = 0; i < 200; i++)
		mark(i * MS, 1 + (uint64_t)(i % 2));
	assert_int_equal(found(5 * MS), 0);
	for (int i = 0; i < 200; i++)
		mark(i * MS, 1 + (uint64_t)(i % 2));
	assert_int_equal(found(2 * MS), 100);
	for (int i = 0; i < 20; i++)
		mark(i * 10 * MS, 1 + (uint64_t)(i % 2));
	assert_int_equal(found(5 * MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_round_not_the_layer),
		cmocka_unit_test(test_after_a_long_start),
		cmocka_unit_test(test_after_a_start_of_many_lines),
		cmocka_unit_test(test_nothing_comes_back),
		cmocka_unit_test(test_too_short_or_too_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
