/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

static void test_an_early_file_is_completed(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb_content c;
	struct gpu_sample a = {.time.ns = 20, .name = "H200"};
	struct host_sample h = {.time.ns = 5, .load5 = 2.5, .psi_io_pct = -1, .busiest_cpu = 3};
	struct nodedb *db;

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path,
		"DROP TABLE gpu_samples; ALTER TABLE system_snapshots DROP COLUMN load5;"
		"ALTER TABLE system_snapshots DROP COLUMN psi_io;"
		"ALTER TABLE events DROP COLUMN detail; DROP INDEX idx_events_pid;"
		"ALTER TABLE stack_traces DROP COLUMN stop;"
		"INSERT INTO stack_traces VALUES (7, '', '[]');"
		"DELETE FROM ops WHERE source_id = 1; DELETE FROM schema_info WHERE key LIKE "
		"'gpu%';"
		"INSERT INTO system_snapshots (timestamp,cpu_pct,mem_pct,mem_avail,"
		"swap_mb,load_avg,node) VALUES (1,2,3,4,5,6,'n1')");
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0); /* as it is */
	assert_int_equal(c.sample_count, 1);
	assert_true(c.samples[0].load5 < 0);
	assert_int_equal(c.gpu_sample_count, 0);
	nodedb_content_done(&c);
	db = scratch_open(s->path);
	assert_int_equal(nodedb_put(db, &a, &err), 0);
	assert_int_equal(nodedb_put(db, &h, &err), 0);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.gpu_sample_count, 1);
	assert_int_equal(c.sample_count, 2);
	assert_true(c.samples[0].load5 < 0);
	assert_memory_equal(&c.samples[1].load5, &h.load5, sizeof(h.load5));
	assert_true(c.samples[1].psi_io_pct == -1);
	assert_int_equal(c.samples[1].busiest_cpu, 3);
	nodedb_content_done(&c);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM pragma_table_xinfo('events')"
					      " WHERE name = 'detail' AND \"notnull\""),
		1);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM stack_traces WHERE stop = ''"), 1);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM sqlite_schema WHERE name ="
					      " 'idx_events_pid'"),
		1);
	assert_true(scratch_int(s->path, "SELECT count(*) FROM ops WHERE source_id = 1") > 5);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM schema_info WHERE key LIKE 'gpu%'"), 2);
	assert_int_equal(scratch_int(s->path, "SELECT psi_io IS NULL FROM system_snapshots WHERE"
					      " timestamp = 5"),
		1);
}

static void test_a_complete_file_stays_as_it_is(void **state)
{
	static const char rows[] = "SELECT max(rowid) FROM schema_info"; /* grows if replaced */
	struct scratch *s = *state;
	int64_t version, last;

	scratch_close(scratch_open(s->path));
	version = scratch_int(s->path, "PRAGMA schema_version");
	last = scratch_int(s->path, rows);
	scratch_close(scratch_open(s->path));
	assert_int_equal(scratch_int(s->path, "PRAGMA schema_version"), version);
	assert_int_equal(scratch_int(s->path, rows), last);
	scratch_sql(s->path, "DROP INDEX idx_events_pid; DELETE FROM schema_info WHERE rowid = 2");
	scratch_close(scratch_open(s->path)); /* the control: an incomplete one changes */
	assert_true(scratch_int(s->path, "PRAGMA schema_version") > version + 1);
	assert_true(scratch_int(s->path, rows) > last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_early_file_is_completed),
		TEST(test_a_complete_file_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
