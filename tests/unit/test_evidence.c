/* SPDX-License-Identifier: Apache-2.0 */
/* test_evidence.c - the timeline tells real times, the evidence is the rows, and the SQL runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "scene.h"

static void explain(const struct scene *s, const char *node, struct incident *ret)
{
	struct recording rec = scene_recording(s);
	_cleanup_free_ struct incident *list = NULL;
	size_t n;

	rec.node = node;
	assert_int_equal(correlate_run(&rec, &list, &n), 0);
	assert_int_equal(n, 1);
	*ret = list[0];
}

static void test_timeline(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident inc;
	const struct incident_step *host, *stay, *call;

	scene_hog(&s);
	/* the worst call: 30 ms of preemption, at 50 s */
	scene_call(&s, CUDA_STREAM_SYNC, 50000000, 40000);
	scene_stay(&s, VICTIM, 50009500, 30000, 30000, WIRE_PREEMPTED, HOG, "sim-cpu-hog");
	scene_sample(&s, 30000000, 99); /* worse, but elsewhere */
	scene_sample(&s, 49900000, 96);
	scene_sample(&s, 51000000, 12);
	scene_aggregate(&s);
	explain(&s, "gpu-1", &inc);
	host = &inc.timeline[0];
	stay = &inc.timeline[1];
	call = &inc.timeline[2];

	assert_int_equal(inc.step_count, 3);
	assert_string_equal(host->layer, "SYSTEM");
	assert_int_equal(host->time.ns, SCENE_T0_NS + 49900000000);
	assert_non_null(strstr(host->detail, "CPU 96 %"));
	assert_string_equal(stay->layer, "HOST");
	assert_string_equal(stay->op, "sched_switch");
	assert_int_equal(stay->time.ns, SCENE_T0_NS + 50009500000);
	assert_int_equal(stay->dur_ns, 30000000);
	assert_string_equal(
		stay->detail, "thread 4821 preempted, sim-cpu-hog (pid 8821) ran instead");
	assert_string_equal(call->layer, "CUDA");
	assert_int_equal(call->time.ns, SCENE_T0_NS + 50000000000);
	assert_int_equal(call->dur_ns, 40000000);

	s.sample_count = 1; /* nothing within two seconds: say nothing */
	explain(&s, "gpu-1", &inc);
	assert_string_equal(inc.timeline[0].layer, "HOST");
}

static void test_evidence_is_the_worst_call_and_its_rows(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident inc;
	uint64_t call, stay;

	scene_hog(&s);
	call = scene_call(&s, CUDA_STREAM_SYNC, 50000000, 40000)->seq;
	stay = scene_stay(&s, VICTIM, 50009500, 30000, 30000, WIRE_PREEMPTED, HOG, "hog")->seq;
	scene_aggregate(&s);
	explain(&s, "gpu-1", &inc);
	assert_int_equal(inc.evidence[0], call);
	assert_int_equal(inc.evidence[1], stay);
}

static int count_rows(void *n, int columns, char **values, char **names)
{
	++*(int *)n;
	return 0;
}

/* The published table, filled with the scene; @form of the id as in 0.9 and later, or 0.8. */
static int run_sql(const struct scene *s, const char *node, const char *sql, bool plain_ids)
{
	sqlite3 *db;
	sqlite3_stmt *insert;
	int rows = 0;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				 "CREATE TABLE events(id, timestamp INTEGER, duration INTEGER,"
				 " pid INTEGER, tid INTEGER, source INTEGER, op INTEGER,"
				 " arg0 INTEGER, arg1 INTEGER, node TEXT); BEGIN",
				 NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db,
				 "INSERT INTO events VALUES(?1, ?2, ?3, ?4, 0, ?5, ?6, 0, 0, ?7)",
				 -1, &insert, NULL),
		SQLITE_OK);
	for (size_t i = 0; i < s->event_count; i++) {
		char id[600];

		snprintf(id, sizeof(id), "%s:%llu", node, (unsigned long long)s->events[i].seq);
		if (plain_ids)
			sqlite3_bind_int64(insert, 1, (int64_t)s->events[i].seq);
		else
			sqlite3_bind_text(insert, 1, id, -1, SQLITE_TRANSIENT);
		sqlite3_bind_int64(insert, 2, s->events[i].start.ns);
		sqlite3_bind_int64(insert, 3, (int64_t)s->events[i].dur_ns);
		sqlite3_bind_int64(insert, 4, s->events[i].pid);
		sqlite3_bind_int64(insert, 5, s->events[i].source);
		sqlite3_bind_int64(insert, 6, s->events[i].op);
		sqlite3_bind_text(insert, 7, node, -1, SQLITE_TRANSIENT);
		assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
		sqlite3_reset(insert);
	}
	sqlite3_finalize(insert);
	assert_int_equal(sqlite3_exec(db, sql, count_rows, &rows, NULL), SQLITE_OK);
	sqlite3_close(db);
	return rows;
}

static void test_sql_returns_the_evidence(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	char long_name[256];
	struct incident inc;

	scene_hog(&s);
	scene_aggregate(&s);
	explain(&s, "gpu-1", &inc);
	assert_int_equal(run_sql(&s, "gpu-1", inc.evidence_sql, false), INCIDENT_EVIDENCE);
	assert_int_equal(run_sql(&s, "gpu-2", inc.evidence_sql, false), 0);
	explain(&s, "o'brien'; DROP TABLE events; --", &inc);
	assert_int_equal(run_sql(&s, "o'brien'; DROP TABLE events; --", inc.evidence_sql, false),
		INCIDENT_EVIDENCE);
	explain(&s, NULL, &inc);
	assert_int_equal(run_sql(&s, "", inc.evidence_sql, true), INCIDENT_EVIDENCE);
	/* Names so long that not all rows fit: fewer rows, never a broken statement. */
	memset(long_name, '\'', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	for (size_t i = 0; i < s.event_count; i++)
		s.events[i].seq += UINT64_C(1) << 60;
	explain(&s, long_name, &inc);
	assert_in_range(run_sql(&s, long_name, inc.evidence_sql, false), 1, INCIDENT_EVIDENCE - 1);
}

static void test_sql_without_stored_rows(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident inc;

	scene_hog(&s);
	scene_aggregate(&s);
	for (size_t i = 0; i < s.event_count; i++)
		s.events[i].seq = 0;
	explain(&s, "gpu-1", &inc);
	assert_int_equal(inc.evidence_count, 0);
	assert_int_equal(run_sql(&s, "gpu-1", inc.evidence_sql, false), 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_evidence_is_the_worst_call_and_its_rows),
		cmocka_unit_test(test_sql_returns_the_evidence),
		cmocka_unit_test(test_sql_without_stored_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
