/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "store/write/writer.h"

static const struct nodedb_filter all = {.ledger = true};

static struct container_sample sample_of(int64_t ns, uint64_t group)
{
	struct container_sample s;

	container_sample_init(&s, (wall_time){ns}, group);
	s.throttled_us = 250000;
	s.quota_us = 200000;
	s.period_us = 100000;
	s.memory_bytes = INT64_C(1) << 40;
	s.oom_kills = 0;
	return s;
}

static void test_samples_come_back_as_they_were(void **state)
{
	struct scratch *s = *state;
	struct container_sample a = sample_of(20, UINT64_MAX), b = sample_of(20, 7),
				d = sample_of(10, 7);
	struct nodedb_filter f = {.ledger = true,

		.scope.from_ns = 15,
		.scope.pids = (uint32_t[]){1},
		.scope.pid_count = 1};
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	assert_int_equal(nodedb_put(db, &b, NULL), 0);
	assert_int_equal(nodedb_put(db, &a, NULL), 0);
	assert_int_equal(nodedb_put(db, &d, NULL), 0);
	b.cpus = 4;
	assert_int_equal(nodedb_put(db, &b, NULL), 0); /* the same moment again */
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, &all, &c, NULL), 0);
	assert_int_equal(c.container_count, 3);
	assert_memory_equal(&c.containers[0], &d, sizeof(d));
	assert_memory_equal(&c.containers[1], &a, sizeof(a)); /* as a signed number: first */
	assert_memory_equal(&c.containers[2], &b, sizeof(b));
	nodedb_content_done(&c);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM container_samples WHERE node = 'n1' AND"
				     " memory_limit_bytes IS NULL AND oom_kills = 0"),
		3);
	assert_int_equal(nodedb_read(s->path, &f, &c, NULL), 0);
	assert_int_equal(c.container_count, 2); /* by time, not by process */
	nodedb_content_done(&c);
}

static void test_damaged_rows_are_counted(void **state)
{
	struct scratch *s = *state;
	struct container_sample a = sample_of(20, 7);
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content c;

	assert_int_equal(nodedb_put(db, &a, NULL), 0);
	scratch_close(db);
	scratch_sql(s->path, "INSERT INTO container_samples (node,timestamp,cgroup_id,cpus) VALUES"
			     " ('n1',1,7,'many'), ('n1',2,7,-1), ('n1','x',7,1), ('n1',3,'x',1),"
			     " ('n1',-4,7,1)");
	assert_int_equal(nodedb_read(s->path, &all, &c, NULL), 0);
	assert_int_equal(c.container_count, 1);
	assert_int_equal(c.skipped_rows, 5);
	nodedb_content_done(&c);
}

static void test_the_newest_are_kept(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	char sql[512];

	scratch_close(scratch_open(s->path));
	snprintf(sql, sizeof(sql),
		"WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < %u)"
		" INSERT INTO container_samples (node, timestamp, cgroup_id) SELECT 'n1', v, 7"
		" FROM n",
		NODEDB_CONTAINERS_MAX + 3);
	scratch_sql(s->path, sql);
	assert_int_equal(nodedb_read(s->path, &all, &c, NULL), 0);
	assert_int_equal(c.container_count, NODEDB_CONTAINERS_MAX);
	assert_int_equal(c.older_containers, 3);
	assert_int_equal(c.containers[0].time.ns, 4);
	nodedb_content_done(&c);
}

static void test_the_writer_stores_them(void **state)
{
	struct scratch *s = *state;
	struct session session = {.started.ns = 1};
	struct container_sample a = sample_of(20, 7);
	struct nodedb *db = scratch_open(s->path);
	struct store_writer *w = NULL;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, NULL), 0);
	assert_true(store_writer_push_row(w, &a));
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, NULL), 0);
	assert_int_equal(scratch_int(s->path,
				 "SELECT throttled_us FROM container_samples WHERE cgroup_id = 7"),
		250000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_samples_come_back_as_they_were),
		TEST(test_damaged_rows_are_counted),
		TEST(test_the_newest_are_kept),
		TEST(test_the_writer_stores_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
