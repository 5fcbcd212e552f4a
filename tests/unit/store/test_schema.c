/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "store/schema/schema.h"
#include "wire/names.h"

static void assert_columns(const char *path, const char *table, const char *expected)
{
	char sql[256];
	char *got;

	snprintf(
		sql, sizeof(sql), "SELECT group_concat(name) FROM pragma_table_xinfo('%s')", table);
	got = scratch_text(path, sql);
	if (strncmp(got, expected, strlen(expected)) != 0)
		fail_msg("%s: %s", table, got);
	free(got);
}

static void test_published_columns_come_first(void **state)
{
	struct scratch *s = *state;

	scratch_close(scratch_open(s->path));
	assert_columns(s->path, "events",
		"id,timestamp,pid,tid,source,op,duration,gpu_id,arg0,arg1,ret_code,stack_hash,node,"
		"rank,local_rank,world_size,stack_ips,cgroup_id,comm");
	assert_columns(s->path, "causal_chains",
		"id,detected_at,severity,summary,root_cause,explanation,recommendations,cuda_op,"
		"cuda_p99_us,cuda_p50_us,tail_ratio,timeline,node");
	assert_columns(s->path, "system_snapshots",
		"id,timestamp,cpu_pct,mem_pct,mem_avail,swap_mb,load_avg");
	assert_columns(s->path, "sessions",
		"id,started_at,stopped_at,gpu_model,gpu_driver,cpu_model,cpu_cores,mem_total,"
		"kernel,"
		"os_release,cuda_ver,python_ver,ingero_ver,pid_filter,flags,node,rank,local_rank,"
		"world_size");
	assert_columns(s->path, "process_names", "pid,name,seen_at");
	assert_columns(s->path, "event_aggregates",
		"bucket,source,op,pid,count,stored,sum_dur,min_dur,max_dur,sum_arg0");
	assert_columns(s->path, "event_aggregates_5s",
		"bucket,source,op,pid,count,stored,sum_dur,min_dur,max_dur,sum_arg0");
	assert_columns(s->path, "stack_traces", "hash,ips,frames");
	assert_columns(s->path, "cgroup_metadata",
		"cgroup_id,container_id,cgroup_path,pod_name,namespace");
	assert_columns(s->path, "cgroup_schedstat",
		"cgroup_id,p99_off_cpu,total_off_cpu,event_count,window_start,window_end");
	assert_columns(s->path, "annotations",
		"id,timestamp,labels,pid,start_time,span_start,span_end,peer_uid,peer_gid,peer_"
		"pid");
}

static void test_describes_itself(void **state)
{
	struct scratch *s = *state;
	int sources = 0, ops = 0;
	char *text;

	scratch_close(scratch_open(s->path));
	while (wire_sources[sources].json)
		sources++;
	while (wire_ops[ops].name)
		ops++;
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM sources"), sources);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM ops"), ops);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM sources WHERE id IN (8, 9)"), 2);
	assert_int_equal(scratch_int(s->path, "PRAGMA user_version"), 11);
	text = scratch_text(s->path, "SELECT value FROM schema_info WHERE key = 'version'");
	assert_string_equal(text, "0.11");
	free(text);
	text = scratch_text(s->path, "SELECT value FROM schema_info WHERE key = 'timestamp_note'");
	assert_non_null(strstr(text, "START"));
	free(text);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND "
				     "tbl_name = 'events'"),
		2);
}

static int identify(const char *sql, enum schema_kind *kind)
{
	struct errinfo err = {0};
	sql_db *db = NULL;
	int r;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	assert_int_equal(sql_exec(db, sql, &err), 0);
	r = schema_identify(db, "x.db", kind, NULL, &err);
	assert_true(r == 0 || strstr(err.text, "x.db"));
	assert_int_equal(sql_close(db), 0);
	return r;
}

#define OTHERS                                                                                     \
	"CREATE TABLE sessions(a); CREATE TABLE causal_chains(a); CREATE TABLE "                   \
	"system_snapshots(a);"
#define INFO "CREATE TABLE schema_info(key, value);"

static void test_tells_files_apart(void **state)
{
	enum schema_kind kind;

	assert_int_equal(identify("", &kind), 0);
	assert_int_equal(kind, SCHEMA_EMPTY);
	assert_int_equal(identify("CREATE TABLE events(a);" INFO OTHERS
				  "INSERT INTO schema_info VALUES ('version', '0.8')",
				 &kind),
		0);
	assert_int_equal(kind, SCHEMA_PUBLISHED);
	assert_int_equal(identify("CREATE TABLE events(a);" INFO OTHERS
				  "INSERT INTO schema_info VALUES ('version', '0.11');"
				  "PRAGMA user_version = 11",
				 &kind),
		0);
	assert_int_equal(kind, SCHEMA_OURS);
	assert_int_equal(identify("CREATE TABLE other(a)", &kind), -EBADMSG);
	assert_int_equal(identify("PRAGMA user_version = 12", &kind), -EBADMSG);
	for (const char *const *v =
			(const char *const[]){"0.7", "0.12", "1.0", "0.", "0.x", "", NULL};
		*v; v++) {
		char sql[512];

		snprintf(sql, sizeof(sql),
			"CREATE TABLE events(a);" INFO OTHERS
			"INSERT INTO schema_info VALUES ('version', '%s')",
			*v);
		assert_int_equal(identify(sql, &kind), -EBADMSG);
	}
	/* a view in the place of a table */
	assert_int_equal(identify("CREATE VIEW events AS SELECT 1;" INFO OTHERS
				  "INSERT INTO schema_info VALUES ('version', '0.9')",
				 &kind),
		-EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_published_columns_come_first),
		TEST(test_describes_itself),
		cmocka_unit_test(test_tells_files_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
