/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_books.c - of a file with several runs, the books are those of the time that is asked for. */
#include "store_fixture.h"

#define T0 INT64_C(1700000000000000000)
#define S  ((int64_t)NS_PER_S)

/* Three runs of 10 s, 100 s apart, with 1000, 200 and 30 hits; the second was killed, and lost 5. */
static void make_runs(const struct scratch *s)
{
	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "DELETE FROM sessions; DELETE FROM accounting;"
			     "INSERT INTO sessions (id, started_at, stopped_at) VALUES"
			     " (1, 1700000000000000000, 1700000010000000000),"
			     " (2, 1700000100000000000, 0),"
			     " (3, 1700000200000000000, 1700000210000000000);"
			     "INSERT INTO accounting VALUES (1, 'n1', 1, 1000, 1000, 0, 0),"
			     " (2, 'n1', 1, 200, 195, 0, 5), (3, 'n1', 1, 30, 30, 0, 0);"
			     "INSERT INTO losses VALUES (2, 'n1', 1, 'ring_full', 5);"
			     "INSERT INTO overhead (timestamp, node, launch_watched, launch_error)"
			     " VALUES (1700000009000000000, 'n1', 0.5, 0.3),"
			     " (1700000209000000000, 'n1', 1, 0);");
}

static struct account load(const struct scratch *s, int64_t from, int64_t to, uint32_t *ret_unclean)
{
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	struct nodedb_filter f = {.scope = {.from_ns = from, .to_ns = to}};

	assert_int_equal(nodedb_read(s->path, &f, &c, NULL), 0);
	assert_true(c.has_books);
	*ret_unclean = c.books.unclean;
	return c.books.source[SOURCE_CUDA];
}

static double launch_error_of(const struct scratch *s, const char *node, int64_t from, int64_t to)
{
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	struct nodedb_filter f = {.scope = {.from_ns = from, .to_ns = to, .node = node}};

	assert_int_equal(nodedb_read(s->path, &f, &c, NULL), 0);
	return c.books.launch_error;
}

static double load_launch_error(const struct scratch *s, int64_t from, int64_t to)
{
	return launch_error_of(s, NULL, from, to);
}

static void test_the_run_that_is_asked_for(void **state)
{
	static const struct {
		int64_t from, to;
		uint64_t hits, lost;
		uint32_t unclean;
	} rows[] = {
		{0, 0, 1230, 5, 1},                      /* all */
		{T0 + 200 * S, T0 + 210 * S, 30, 0, 0},  /* the newest */
		{T0 + 205 * S, 0, 30, 0, 0},             /* part of it */
		{0, T0 + 5 * S, 1000, 0, 0},             /* the first */
		{T0 + 150 * S, T0 + 160 * S, 200, 5, 1}, /* killed: nobody knows when */
		{T0 + 150 * S, T0 + 205 * S, 230, 5, 1}, {T0 + 5 * S, T0 + 150 * S, 1200, 5, 1},
		{T0 + 500 * S, T0 + 600 * S, 1230, 5, 1}, /* none: times that make no sense */
	};
	const struct scratch *s = *state;

	make_runs(s);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t unclean;
		struct account a = load(s, rows[i].from, rows[i].to, &unclean);

		assert_int_equal(a.hits, rows[i].hits);
		assert_int_equal(account_lost(&a), rows[i].lost);
		assert_int_equal(unclean, rows[i].unclean);
	}
}

/* An estimate of an earlier run is none of this one's. */
static void test_launches_of_the_run(void **state)
{
	const struct scratch *s = *state;

	make_runs(s);
	assert_true(load_launch_error(s, T0, T0 + 10 * S) == 0.3);
	assert_true(load_launch_error(s, 0, 0) == 0.3); /* all: the worst */
	assert_true(load_launch_error(s, T0 + 200 * S, T0 + 210 * S) == 0);
}

/* Two nodes at one time, one of which wrote last, and both at once before. */
static void test_launches_of_the_node(void **state)
{
	const struct scratch *s = *state;

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "CREATE TABLE node_clocks (node TEXT, offset_ns INTEGER);"
			     "DELETE FROM sessions; DELETE FROM accounting;"
			     "INSERT INTO sessions (id, node, started_at, stopped_at) VALUES"
			     " (1, 'a', 1700000000000000000, 1700000010000000000),"
			     " (2, 'b', 1700000000000000000, 1700000010000000000),"
			     " (3, 'c', 1700000000000000000, 1700000010000000000);"
			     "INSERT INTO overhead (timestamp, node, launch_watched, launch_error)"
			     " VALUES (1700000005000000000, 'a', 0.5, 0.3),"
			     " (1700000005000000000, 'b', 0.5, 0.2),"
			     " (1700000009000000000, 'b', 0.5, 0.1);");
	assert_true(launch_error_of(s, "a", 0, 0) == 0.3);
	assert_true(launch_error_of(s, "b", 0, 0) == 0.1);
	assert_true(launch_error_of(s, "c", 0, 0) == 0);
	assert_true(launch_error_of(s, NULL, 0, 0) == 0.3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_the_run_that_is_asked_for),
		TEST(test_launches_of_the_run), TEST(test_launches_of_the_node)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
