/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_jobs.c - who meets whom in communicators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/rows/rank_jobs.h"
#include "base/macros.h"

static struct collective_row row(uint32_t pid, uint64_t comm, int32_t nranks)
{
	return (struct collective_row){.pid = pid, .c = {.comm_hash = comm, .nranks = nranks}};
}

static void test_directly_and_through_others(void **state)
{
	const struct collective_row rows[] = {row(1, 7, 2), row(2, 7, 2), row(3, 8, 2),
		row(4, 8, 2), row(2, 9, 2), row(3, 9, 2), row(1, 7, 2), row(10, 11, 2),
		row(11, 11, 2)};
	const struct recording rec = {.collectives = rows, .collective_count = ARRAY_SIZE(rows)};
	struct rank_jobs j;

	rank_jobs_find(&rec, &j);
	assert_true(rank_jobs_meet(&j, 1, 2));
	assert_true(rank_jobs_meet(&j, 1, 4)); /* by 2 and 3 */
	assert_true(rank_jobs_meet(&j, 4, 1));
	assert_true(rank_jobs_meet(&j, 10, 11));
	assert_false(rank_jobs_meet(&j, 1, 10));
	assert_false(rank_jobs_meet(&j, 1, 1)); /* itself */
	assert_false(rank_jobs_meet(&j, 1, 99));
}

/* Communicators that were made before the trace have no name, only a size; one of a single rank is none. */
static void test_without_a_name(void **state)
{
	const struct collective_row rows[] = {
		row(1, 0, 4), row(2, 0, 4), row(3, 0, 2), row(4, 5, 1), row(5, 5, 1)};
	const struct recording rec = {.collectives = rows, .collective_count = ARRAY_SIZE(rows)};
	struct rank_jobs j;

	rank_jobs_find(&rec, &j);
	assert_true(rank_jobs_meet(&j, 1, 2));
	assert_false(rank_jobs_meet(&j, 1, 3));
	assert_false(rank_jobs_meet(&j, 4, 5));
}

static void test_too_many(void **state)
{
	static struct collective_row rows[4 * RANK_JOBS_MAX];
	const struct recording rec = {.collectives = rows, .collective_count = ARRAY_SIZE(rows)};
	struct rank_jobs j;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = row((uint32_t)i + 1, 7, 2);
	rank_jobs_find(&rec, &j);
	assert_int_equal(j.count, RANK_JOBS_MAX);
	assert_true(rank_jobs_meet(&j, 1, RANK_JOBS_MAX));
	assert_false(rank_jobs_meet(&j, 1, RANK_JOBS_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directly_and_through_others),
		cmocka_unit_test(test_without_a_name),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
