/* SPDX-License-Identifier: Apache-2.0 */
/* Who came last to one collective: by arrival on one clock, by waits across clocks, together with others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose/accounts/lateness.h"

#define RANKS_MAX 32
#define MS        INT64_C(1000000)

struct scene {
	struct collective_row rows[RANKS_MAX];
	const struct collective_row *list[RANKS_MAX];
	struct match_table table;
	struct match match;
	struct lateness late;
};

/* A collective of @n ranks that arrived at @at_ms; it ends at @end_ms for all. */
static void scene_of(struct scene *s, const int *at_ms, size_t n, int end_ms)
{
	*s = (struct scene){.match = {.count = n, .one_node = true}};
	for (size_t i = 0; i < n; i++) {
		s->rows[i].start.ns = at_ms[i] * MS;
		s->rows[i].c.rank = (int32_t)i;
		s->rows[i].c.wait_ns = (end_ms - at_ms[i]) * MS;
		s->list[i] = &s->rows[i];
	}
	s->table.rows = s->list;
	s->table.row_count = n;
}

static bool find(struct scene *s)
{
	return lateness_find(&s->table, &s->match, &s->late);
}

static void test_one_is_late(void **state)
{
	static const int at[] = {10, 12, 11, 90, 10, 13, 12, 11};
	struct scene s;

	scene_of(&s, at, ARRAY_SIZE(at), 91);
	assert_true(find(&s));
	assert_int_equal(s.late.row->c.rank, 3);
	assert_int_equal(s.late.late, 1);
	assert_int_equal(s.late.gap_ns, 77 * MS); /* after the last of the others */
	assert_int_equal(s.late.lost_ns, 7 * 77 * MS);
}

/* Clocks of other nodes are not compared: who waited least came last. */
static void test_across_clocks(void **state)
{
	static const int at[] = {10, 12, 90, 11};
	struct scene s;

	scene_of(&s, at, ARRAY_SIZE(at), 91);
	s.match.one_node = false;
	s.rows[0].start.ns += 5000 * MS; /* by its clock it was the last by far */
	assert_true(find(&s));
	assert_int_equal(s.late.row->c.rank, 2);
	assert_int_equal(s.late.gap_ns, 78 * MS);
	s.match.one_node = true; /* the control: on one clock it would be */
	assert_true(find(&s));
	assert_int_equal(s.late.row->c.rank, 0);
}

static void test_waits_that_are_not_known(void **state)
{
	static const int at[] = {10, 12, 90, 11};
	struct scene s;

	scene_of(&s, at, ARRAY_SIZE(at), 91);
	s.rows[1].c.wait_ns = -1;
	s.match.one_node = false;
	assert_false(find(&s)); /* nobody can tell */
	s.match.one_node = true;
	assert_true(find(&s));
	assert_int_equal(s.late.row->c.rank, 2);
	assert_int_equal(s.late.lost_ns, 2 * 78 * MS); /* of those who say how long they waited */
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		s.rows[i].c.wait_ns = -1;
	assert_true(find(&s));
	assert_int_equal(s.late.gap_ns, 78 * MS);
	assert_int_equal(s.late.lost_ns, 0);
}

/* Hosts that run ahead did not wait for it, however late it came. */
static void test_nobody_waited(void **state)
{
	static const int at[] = {10, 12, 90, 11};
	struct scene s;

	scene_of(&s, at, ARRAY_SIZE(at), 91);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		s.rows[i].c.wait_ns = (int64_t)i * MS;
	assert_true(find(&s));
	assert_int_equal(s.late.gap_ns, 3 * MS); /* the longest wait of the others */
	assert_int_equal(s.late.lost_ns, (0 + 1 + 3) * MS);
}

/* Ranks that share what delays them are late together, the distance between them means nothing. */
static void test_late_together(void **state)
{
	static const int two[] = {10, 12, 90, 11, 85, 10, 12, 11};
	static const int all_apart[] = {10, 20, 30, 40, 50, 60, 70, 80};
	struct scene s;

	scene_of(&s, two, ARRAY_SIZE(two), 91);
	assert_true(find(&s));
	assert_int_equal(s.late.row->c.rank, 2);
	assert_int_equal(s.late.late, 2);
	assert_int_equal(s.late.gap_ns, 78 * MS);
	assert_int_equal(s.late.lost_ns, 6 * 78 * MS); /* rank 4 lost nothing by it */
	scene_of(&s, all_apart, ARRAY_SIZE(all_apart), 81);
	assert_true(find(&s));
	assert_int_equal(s.late.late, 4); /* never more than half of them */
}

static void test_of_two(void **state)
{
	static const int at[] = {40, 10};
	struct scene s;

	scene_of(&s, at, ARRAY_SIZE(at), 41);
	assert_true(find(&s));
	assert_int_equal(s.late.row->c.rank, 0);
	assert_int_equal(s.late.late, 1);
	assert_int_equal(s.late.gap_ns, 30 * MS);
	assert_int_equal(s.late.lost_ns, 30 * MS);
}

/* More are late than are told apart: eight at most, and no memory beyond them is touched. */
static void test_many(void **state)
{
	int at[RANKS_MAX];
	struct scene s;

	for (int i = 0; i < RANKS_MAX; i++)
		at[i] = i < 20 ? 10 : 100 + i;
	scene_of(&s, at, RANKS_MAX, 200);
	assert_true(find(&s));
	assert_int_equal(s.late.row->c.rank, RANKS_MAX - 1);
	assert_in_range(s.late.late, 1, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_is_late),
		cmocka_unit_test(test_across_clocks),
		cmocka_unit_test(test_waits_that_are_not_known),
		cmocka_unit_test(test_nobody_waited),
		cmocka_unit_test(test_late_together),
		cmocka_unit_test(test_of_two),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
