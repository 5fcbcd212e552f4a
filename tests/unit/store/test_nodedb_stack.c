/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_stack.c - stacks written and read back, of our files, published and hostile ones. */
#include "store_fixture.h"

#include "published_fixture.h"

#define STACKS_PUBLISHED                                                                           \
	"CREATE TABLE stack_traces(hash INTEGER PRIMARY KEY, ips TEXT NOT NULL,"                   \
	" frames TEXT NOT NULL DEFAULT '');"

static void put(struct nodedb *db, uint64_t hash, const char *ips, const char *frames)
{
	struct stack_row row = {hash, ips, frames, "", strlen(ips), strlen(frames), strlen("")};
	struct errinfo err = {0};

	if (nodedb_put_stack(db, &row, &err) < 0)
		fail_msg("%s", err.text);
}

static void put_event(struct nodedb *db, uint64_t stack, uint64_t dur_ns)
{
	struct event e = {.start.ns = 1000, .pid = 7, .source = 1, .stack_hash = stack};

	e.dur_ns = dur_ns;
	assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
}

static void load(const char *path, enum nodedb_stacks which, struct nodedb_content *c)
{
	struct nodedb_filter f = {.stacks = which};
	struct errinfo err = {0};

	if (nodedb_read(path, &f, c, &err) < 0)
		fail_msg("%s", err.text);
}

static void test_names_replace_addresses_and_never_the_other_way(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	put(db, 5, "[\"0x1\"]", "[{\"i\":\"0x1\"}]");
	put(db, 5, "[\"0x2\"]", "[{\"i\":\"0x2\"}]");
	put(db, 6, "", "[{\"s\":\"old\"}]");
	put(db, 6, "", "[{\"s\":\"better\"}]");
	put(db, 6, "[\"0x1\"]", "[{\"i\":\"0x1\"}]");
	put(db, UINT64_C(0x86fc804cb7d5c14e), "", "[{\"s\":\"high bit\"}]");
	scratch_close(db);
	load(s->path, NODEDB_STACKS_ALL, &c);
	assert_int_equal(c.stacks.count, 3);
	assert_int_equal(stack_find(&c.stacks, 5)->frames[0].ip, 2);
	assert_string_equal(stack_find(&c.stacks, 6)->frames[0].symbol, "better");
	assert_string_equal(
		stack_find(&c.stacks, UINT64_C(0x86fc804cb7d5c14e))->frames[0].symbol, "high bit");
	nodedb_content_done(&c);
	assert_int_equal(scratch_int(s->path, "SELECT min(hash) FROM stack_traces"),
		(int64_t)UINT64_C(0x86fc804cb7d5c14e));
}

static void test_only_used_ones_if_so_asked(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	for (uint64_t i = 1; i <= 9; i++)
		put(db, i, "", "[{\"s\":\"f\"}]");
	put_event(db, 4, 10);
	put_event(db, 8, 20);
	put_event(db, 8, 20);
	put_event(db, 77, 20); /* not there */
	put_event(db, 0, 20);
	scratch_close(db);
	load(s->path, NODEDB_STACKS_USED, &c);
	assert_int_equal(c.stacks.count, 2);
	assert_non_null(stack_find(&c.stacks, 4));
	assert_non_null(stack_find(&c.stacks, 8));
	nodedb_content_done(&c);
	load(s->path, NODEDB_STACKS_ALL, &c);
	assert_int_equal(c.stacks.count, 9);
	nodedb_content_done(&c);
	load(s->path, NODEDB_STACKS_NONE, &c);
	assert_int_equal(c.stacks.count, 0);
	nodedb_content_done(&c);
}

static void test_bad_stacks_are_counted(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;

	scratch_sql(s->path, PUBLISHED_8
		"CREATE TABLE stack_traces(hash INTEGER PRIMARY KEY, ips, frames);"
		"INSERT INTO stack_traces VALUES (1, '', '[{\"s\":\"good\"}]'),"
		" (2, '', 'not json'), (3, '', NULL), (4, '', 17), (5, '', x'5b5d'),"
		" (6, '', '[{\"s\":1}]'), (7, NULL, '[]'), (8, '', ''),"
		" (9, '', '[{\"s\":\"' || printf('%.*c', 65536, 'x') || '\"}]'),"
		" (10, '', printf('%.*c', 60000, '['));"
		"INSERT INTO events (timestamp, pid, tid, source, op, duration, stack_hash)"
		" SELECT 1000 + hash, 1, 1, 1, 1, 10, hash FROM stack_traces;");
	for (int which = NODEDB_STACKS_USED; which <= NODEDB_STACKS_ALL; which++) {
		load(s->path, (enum nodedb_stacks)which, &c);
		assert_int_equal(c.event_count, 10);
		assert_int_equal(c.stacks.count, 2);
		assert_string_equal(stack_find(&c.stacks, 1)->frames[0].symbol, "good");
		assert_int_equal(stack_find(&c.stacks, 8)->count, 0);
		assert_int_equal(c.skipped_stacks, 8);
		assert_int_equal(c.other_stacks, 0);
		nodedb_content_done(&c);
	}
}

/* A table without its key would make every look-up a walk; one that is missing is no error. */
static void test_strange_tables(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;

	scratch_sql(s->path, PUBLISHED_8
		"INSERT INTO events (timestamp, pid, tid, source, op, duration, stack_hash)"
		" VALUES (1000, 1, 1, 1, 1, 10, 5);");
	load(s->path, NODEDB_STACKS_USED, &c);
	assert_int_equal(c.stacks.count + c.skipped_stacks, 0);
	nodedb_content_done(&c);
	scratch_sql(s->path, "CREATE TABLE stack_traces(hash INTEGER, ips TEXT, frames TEXT);"
			     "INSERT INTO stack_traces VALUES (5, '', '[{\"s\":\"f\"}]')");
	load(s->path, NODEDB_STACKS_USED, &c);
	assert_int_equal(c.stacks.count, 0);
	assert_int_equal(c.skipped_stacks, 1);
	nodedb_content_done(&c);
	load(s->path, NODEDB_STACKS_ALL, &c);
	assert_int_equal(c.stacks.count, 1);
	nodedb_content_done(&c);
}

#define PYTHON "{\"pf\":\"a.py\",\"pfn\":\"in\",\"pl\":1},{\"pf\":\"a.py\",\"pfn\":\"out\"}"

static void test_published_python_frames_are_put_in_place(void **state)
{
	static const struct {
		uint64_t hash;
		const char *innermost, *outermost; /* function */
	} wanted[] = {{1, "n1", "out"}, {2, "in", "main"}, {3, "n1", "main"}, {4, "in", "out"}};
	struct scratch *s = *state;
	struct nodedb_content c;

	scratch_sql(s->path, PUBLISHED_10 STACKS_PUBLISHED
		"INSERT INTO stack_traces VALUES"
		" (1, '', '[" PYTHON ",{\"s\":\"n1\"},{\"s\":\"n2\"}]'),"
		" (2, '', '[" PYTHON ",{\"s\":\"eval\",\"f\":\"libpython3.10.so\"},"
		"{\"s\":\"main\"}]'),"
		" (3, '', '[{\"s\":\"n1\"}," PYTHON ",{\"s\":\"main\"}]'),"
		" (4, '', '[" PYTHON "]');");
	load(s->path, NODEDB_STACKS_ALL, &c);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct stack *k = stack_find(&c.stacks, wanted[i].hash);
		const struct stack_frame *first = &k->frames[0], *last = &k->frames[k->count - 1];

		assert_string_equal(
			first->py_func ? first->py_func : first->symbol, wanted[i].innermost);
		assert_string_equal(
			last->py_func ? last->py_func : last->symbol, wanted[i].outermost);
	}
	assert_string_equal(stack_find(&c.stacks, 1)->frames[1].symbol, "n2");
	assert_string_equal(stack_find(&c.stacks, 1)->frames[2].py_func, "in");
	nodedb_content_done(&c);
}

/* Our own order is never touched: Python calling from an inlined interpreter may come first. */
static void test_our_order_stays(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	put(db, 1, "", "[" PYTHON ",{\"s\":\"n1\"}]");
	scratch_close(db);
	load(s->path, NODEDB_STACKS_ALL, &c);
	assert_string_equal(c.stacks.items[0]->frames[0].py_func, "in");
	assert_string_equal(c.stacks.items[0]->stop, "");
	nodedb_content_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names_replace_addresses_and_never_the_other_way),
		TEST(test_only_used_ones_if_so_asked),
		TEST(test_bad_stacks_are_counted),
		TEST(test_strange_tables),
		TEST(test_published_python_frames_are_put_in_place),
		TEST(test_our_order_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
