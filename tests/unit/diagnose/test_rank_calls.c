/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_calls.c - rows of communicators that were in use before the trace, as older tracers and this one write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diagnose/accounts/rank_calls.h"
#include "base/macros.h"

#define STEPS   50
#define STEP_NS 6000000
#define MS      1000000

struct job {
	struct collective_row rows[8 * STEPS];
	size_t count;
};

/* Rank @rank comes @late_ns after the first to every collective and is @ahead numbers ahead. */
static void add_rank(struct job *j, int rank, int nranks, uint32_t pid, int64_t late_ns,
	int64_t latest_ns, int ahead)
{
	for (int i = 0; i < STEPS; i++)
		j->rows[j->count++] = (struct collective_row){
			.start.ns = 1000000000LL + (int64_t)i * STEP_NS + late_ns,
			.node = "a",
			.pid = pid,
			.op = NCCL_ALL_REDUCE,
			.c = {.seq = (uint64_t)(10 + i + ahead),
				.rank = rank,
				.nranks = nranks,
				.wait_ns = latest_ns - late_ns + 200000},
		};
}

static struct collective_row *adopt(const struct job *j, size_t *ret_count)
{
	struct recording rec = {.collectives = j->rows, .collective_count = j->count};
	_cleanup_(rank_calls_done) struct rank_calls c;

	assert_int_equal(rank_calls_find(&rec, &c), 0);
	*ret_count = c.late_count;
	assert_true(c.unknown == 0 || c.late_count == 0);
	assert_true(j->rows[0].c.comm_hash == 7 || c.unknown + c.late_count == j->count);
	assert_int_equal(c.count + c.unknown, j->count);
	for (size_t i = 0; i < c.count; i++)
		assert_true(rank_calls_row(&rec, &c, c.rows[i]) < j->count);
	return c.late_count ? TAKE(c.late) : NULL;
}

/* Rows of the same step have the same number, and all the same hash. */
static void assert_together(const struct collective_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int64_t step = (rows[i].start.ns - 1000000000LL) / STEP_NS;

		assert_int_equal(rows[i].c.seq, rows[0].c.seq + (uint64_t)step);
		assert_true(rows[i].c.comm_hash);
		assert_int_equal(rows[i].c.comm_hash, rows[0].c.comm_hash);
	}
}

static void numbers_are_brought_together(void **state)
{
	static const int aheads[] = {-2, -1, 0, 1, 2, 79};

	for (size_t i = 0; i < ARRAY_SIZE(aheads); i++) {
		struct job j = {.count = 0};
		_cleanup_free_ struct collective_row *rows = NULL;
		size_t n;

		add_rank(&j, 0, 3, 100, 0, 5 * MS, 0);
		add_rank(&j, 1, 3, 101, 100000, 5 * MS, 1);
		add_rank(&j, 2, 3, 102, 5 * MS, 5 * MS, aheads[i]); /* the late one */
		rows = adopt(&j, &n);
		assert_int_equal(n, 3 * STEPS);
		assert_together(rows, n);
	}
}

/* The names are known, the numbers are the ranks' own. */
static void own_numbers_are_brought_together(void **state)
{
	struct job j = {.count = 0};
	_cleanup_free_ struct collective_row *rows = NULL;
	size_t n;

	add_rank(&j, 0, 2, 100, 5 * MS, 5 * MS, 1);
	add_rank(&j, 1, 2, 101, 0, 5 * MS, 30);
	for (size_t i = 0; i < j.count; i++) {
		j.rows[i].c.comm_hash = 9;
		j.rows[i].c.seq = -j.rows[i].c.seq;
	}
	rows = adopt(&j, &n);
	assert_int_equal(n, 2 * STEPS);
	assert_together(rows, n);
	assert_int_equal(rows[0].c.comm_hash, 9);
}

static void messages_are_numbered_by_peer(void **state)
{
	struct job j = {.count = 0};
	_cleanup_free_ struct collective_row *rows = NULL;
	size_t n;

	add_rank(&j, 0, 2, 100, 0, 2 * MS, 0);
	add_rank(&j, 1, 2, 101, 0, 2 * MS, 0);
	for (size_t i = 0; i < j.count; i++) {
		j.rows[i].op = i < STEPS ? NCCL_SEND : NCCL_RECV;
		j.rows[i].c.peer = i < STEPS;
		j.rows[i].c.comm_hash = 9;
		j.rows[i].c.seq = -UINT64_C(1);
	}
	memmove(j.rows, j.rows + 5, (j.count - 5) * sizeof(j.rows[0])); /* its tracer came later */
	j.count -= 5;
	rows = adopt(&j, &n);
	assert_int_equal(n, j.count);
	for (size_t i = 0; i < STEPS - 5;
		i++) /* the first Send that was seen belongs to the sixth Recv */
		assert_int_equal(rows[i].c.seq, rows[STEPS + i].c.seq);
}

static void the_late_rank_may_be_the_first(void **state)
{
	struct job j = {.count = 0};
	_cleanup_free_ struct collective_row *rows = NULL;
	size_t n;

	add_rank(&j, 0, 2, 100, 5 * MS, 5 * MS, 1);
	add_rank(&j, 1, 2, 101, 0, 5 * MS, 0);
	rows = adopt(&j, &n);
	assert_int_equal(n, 2 * STEPS);
	assert_together(rows, n);
}

static void several_communicators_of_a_size_are_left_out(void **state)
{
	struct job two = {.count = 0}, pids = {.count = 0};
	size_t n;

	add_rank(&two, 0, 2, 100, 0, MS, 0);
	add_rank(&two, 0, 2, 100, 300000, MS, 0); /* the same numbers once more */
	add_rank(&two, 1, 2, 101, MS, MS, 0);
	assert_null(adopt(&two, &n));
	add_rank(&pids, 0, 2, 100, 0, MS, 0);
	add_rank(&pids, 0, 2, 200, 0, MS, 60); /* another job */
	add_rank(&pids, 1, 2, 101, MS, MS, 0);
	assert_null(adopt(&pids, &n));
	assert_int_equal(n, 0);
}

/* A rank that is later by far less than a step: no wait need be known of it. */
static void entries_are_brought_together(void **state)
{
	struct job j = {.count = 0};
	_cleanup_free_ struct collective_row *rows = NULL;
	size_t n;

	add_rank(&j, 0, 2, 100, 0, MS, 0);
	add_rank(&j, 1, 2, 101, MS, MS, 3);
	for (size_t i = 0; i < j.count; i++)
		j.rows[i].c.wait_ns = -1;
	rows = adopt(&j, &n);
	assert_non_null(rows);
	assert_together(rows, n);
}

static void what_is_not_clear_is_left_out(void **state)
{
	struct job alone = {.count = 0}, no_waits = {.count = 0}, known = {.count = 0};
	size_t n;

	add_rank(&alone, 0, 2, 100, 0, MS, 0);
	assert_null(adopt(&alone, &n));
	add_rank(&no_waits, 0, 2, 100, 0, MS, 0); /* half a step later, or half a step before */
	add_rank(&no_waits, 1, 2, 101, STEP_NS / 2, MS, 0);
	for (size_t i = 0; i < no_waits.count; i++)
		no_waits.rows[i].c.wait_ns = -1;
	assert_null(adopt(&no_waits, &n));
	add_rank(&known, 0, 2, 100, 0, MS, 0);
	add_rank(&known, 1, 2, 101, MS, MS, 0);
	for (size_t i = 0; i < known.count; i++)
		known.rows[i].c.comm_hash = 7; /* made during the trace: nothing to adopt */
	assert_null(adopt(&known, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_brought_together),
		cmocka_unit_test(own_numbers_are_brought_together),
		cmocka_unit_test(messages_are_numbered_by_peer),
		cmocka_unit_test(the_late_rank_may_be_the_first),
		cmocka_unit_test(several_communicators_of_a_size_are_left_out),
		cmocka_unit_test(entries_are_brought_together),
		cmocka_unit_test(what_is_not_clear_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
