/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

static void put(struct nodedb *db, int64_t time, uint32_t pid, const char *labels)
{
	struct annotation a = {.time.ns = time, .pid = pid};
	int64_t id = 0;

	snprintf(a.labels, sizeof(a.labels), "%s", labels);
	assert_int_equal(nodedb_put_annotation(db, &a, &id, NULL), 0);
	assert_true(id > 0);
}

static void test_labels_come_back(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	put(db, 30, 0, "{\"step\":\"2\"}");
	put(db, 10, 7, "{\"phase\":\"train\",\"step\":\"1\"}");
	put(db, 20, 0, "not json");
	put(db, 21, 0, "[1,2]");
	put(db, 50, 0, "{\"late\":\"x\"}");
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, NULL), 0);
	assert_int_equal(c.label_count, 0); /* not asked for */
	nodedb_content_done(&c);
	assert_int_equal(nodedb_read(s->path,
				 &(struct nodedb_filter){
					 .labels = true, .scope.from_ns = 25, .scope.to_ns = 40},
				 &c, NULL),
		0);
	assert_int_equal(c.label_count, 3); /* also from before the range */
	assert_int_equal(c.labels[0].time_ns, 10);
	assert_int_equal(c.labels[0].pid, 7);
	assert_string_equal(c.labels[2].key, "step");
	assert_string_equal(c.labels[2].value, "2");
	assert_int_equal(c.pruned_rows, 0);
	assert_int_equal(c.pruned_before, 0);
	nodedb_content_done(&c);
}

static void test_hostile_rows(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	put(db, 1, 0, "{\"good\":\"x\"}");
	scratch_close(db);
	scratch_sql(s->path,
		"INSERT INTO annotations (timestamp, labels, pid) VALUES ('x', '{\"a\":\"b\"}', 0),"
		" (1, '{\"a\":\"b\"}', -1), (1, '{\"\":\"b\"}', 0), (1, x'00ff', 0);"
		"INSERT INTO annotations (timestamp, labels, span_start, span_end) VALUES"
		" (1, '{\"a\":\"b\"}', 5, 2);"
		"INSERT INTO pruned VALUES (1, 'events', 'many', 1, 'x'), (2, 'events', -5, 1, 2),"
		" (3, 'events', 17, 1, 40), (4, 'losses', 3, 1, 90)");
	assert_int_equal(
		nodedb_read(s->path, &(struct nodedb_filter){.labels = true}, &c, NULL), 0);
	assert_int_equal(c.label_count, 1);
	assert_int_equal(c.skipped_rows, 4);
	assert_int_equal(c.pruned_rows, 17);
	assert_int_equal(c.pruned_before, 41);
	nodedb_content_done(&c);
}

/* A file of this schema made before the table `pruned` was. */
static void test_a_file_without_the_table(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "DROP TABLE pruned");
	assert_int_equal(nodedb_read(s->path, NULL, &c, NULL), 0);
	assert_int_equal(c.pruned_before, 0);
	nodedb_content_done(&c);
	scratch_close(scratch_open(s->path));
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM pruned"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_labels_come_back),
		TEST(test_hostile_rows),
		TEST(test_a_file_without_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
