/* SPDX-License-Identifier: Apache-2.0 */
#include "store_duck_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "duck/duck_worker.h"

static void test_committed_rows_are_visible(void **state)
{
	struct scratch_store *s = *state;

	store_begin(s);
	assert_int_equal(take_entry(s->store, 1), 0);
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 0);
	assert_int_equal(store_commit(s->store, NULL), 0);
	assert_filled(s->store, 1);
	fill_up_to(s->store, 100);
	assert_filled(s->store, 100);
	assert_int_equal(store_durable(s->store), 0);
}

static void test_what_is_no_batch_changes_nothing(void **state)
{
	struct scratch_store *s = *state;
	struct batch b = {.bytes = BUF_INIT(1u << 20)};

	store_begin(s);
	assert_int_equal(store_take(s->store, 1, "xyz", 3, NULL), -EBADMSG);
	put_event(&b, "bad\xff name", "n", 1);
	assert_int_equal(take_batch(s->store, 1, &b), -EBADMSG);
	fill_up_to(s->store, 10);
	assert_filled(s->store, 10);
}

static void test_sealed_rows_survive(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	fill_up_to(s->store, 50);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 80); /* these are not sealed: the journal still has them */
	assert_filled(s->store, 80);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.visible, 80);
	assert_int_equal(st.durable, 50);
	assert_int_equal(st.parts, 2);
	assert_int_equal(st.rows[TABLE_EVENTS], 240);
	assert_int_equal(st.oldest_ns, T0 + (int64_t)NS_PER_S);
	assert_int_equal(st.fault, 0);
	store_end(s);

	store_begin(s);
	assert_filled(s->store, 50);
	for (uint64_t i = 40; i <= 80; i++) { /* from too early: nothing is there twice */
		assert_int_equal(take_entry(s->store, i), 0);
		assert_int_equal(store_commit(s->store, NULL), 0);
	}
	assert_filled(s->store, 80);
}

/* An end that cannot wait leaves rows to the journal; those sealed before stay, and no file of a part that is
 * in no manifest is used. */
static void test_a_hurried_seal(void **state)
{
	struct scratch_store *s = *state;
	struct errinfo e = {0};

	store_begin(s);
	fill_up_to(s->store, 50);
	assert_false(store_has(s->store, "red", 3)); /* not sealed yet */
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	assert_true(store_has(s->store, "red", 3));
	assert_false(store_has(s->store, "re", 2));
	fill_up_to(s->store, 80);
	s->store->ops->hurry(s->store);
	assert_int_equal(s->store->ops->seal(s->store, &e), -ECANCELED);
	assert_non_null(strstr(e.text, "before all rows were sealed"));
	store_end(s);

	store_begin(s);
	assert_filled(s->store, 50);
	fill_up_to(s->store, 80);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	assert_filled(s->store, 80);
}

static struct store *hurried;

static void hurry_at_part(const char *place)
{
	if (hurried && !strcmp(place, "part begun"))
		hurried->ops->hurry(hurried);
}

static void take_many(struct store *s, uint64_t position)
{
	struct batch b = {.bytes = BUF_INIT(8u << 20)};

	for (int64_t i = 0; i < 20000; i++)
		put_event(&b, "red", "n1", (int64_t)position * 20000 + i);
	assert_int_equal(take_batch(s, position, &b), 0);
	assert_int_equal(store_commit(s, NULL), 0);
}

/* A part that is being written when the end comes is given up, whatever its rows are. */
static void test_a_part_under_way_is_given_up(void **state)
{
	struct scratch_store *s = *state;

	for (int is_hurried = 1; is_hurried >= 0; is_hurried--) {
		store_begin(s);
		for (uint64_t i = 1; i <= 6; i++)
			take_many(s->store, i);
		hurried = is_hurried ? s->store : NULL;
		store_duck_at = hurry_at_part;
		assert_int_equal(s->store->ops->seal(s->store, NULL), is_hurried ? -ECANCELED : 0);
		hurried = NULL;
		assert_int_equal(store_durable(s->store), is_hurried ? 0 : 6);
		store_end(s);
	}
	store_begin(s);
	assert_int_equal(
		ask_number(s->store, NULL, "SELECT count(DISTINCT value_int) FROM {events}"),
		120000);
}

/* ---- beside each other ---- */

static atomic_bool asking_ends;
static atomic_int asked;

static void *ask_all_the_time(void *arg)
{
	struct scratch_store *s = arg;
	int64_t before = 0;

	while (!asking_ends) {
		int64_t n = ask_number(s->store, NULL, "SELECT count(*) FROM {events}");

		assert_true(n % 3 == 0 && n >= before);
		before = n;
		asked++;
	}
	return NULL;
}

static void test_questions_see_every_row_once_while_parts_change(void **state)
{
	struct scratch_store *s = *state;
	pthread_t threads[2];

	s->settings.seal_rows = 60;
	store_begin(s);
	asking_ends = false;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_all_the_time, s), 0);
	for (uint64_t n = 20; n <= 200; n += 20) {
		fill_up_to(s->store, n);
		while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
			;
	}
	while (asked < 10)
		sched_yield();
	asking_ends = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_filled(s->store, 200);
}

static void test_a_question_ends_at_its_deadline(void **state)
{
	struct scratch_store *s = *state;
	struct store_limits limits = STORE_LIMITS;
	struct errinfo err = {0};
	struct sql_table t;

	store_begin(s);
	limits.timeout_ns = 50 * NS_PER_MS;
	assert_int_equal(store_select(s->store, NULL,
				 "SELECT count(*) FROM range(100000000) a, range(1000000) b",
				 &limits, &t, &err),
		-ETIMEDOUT);
	assert_non_null(strstr(err.text, "50 ms"));
	fill_up_to(s->store, 3);
	assert_filled(s->store, 3);
}

/* ---- scope ---- */

static void test_scope_shows_only_its_clusters_and_times(void **state)
{
	struct scratch_store *s = *state;
	static const char *const names[] = {"blue", "it's"};
	struct store_scope scope = {.clusters = names, .cluster_count = 2};
	struct batch b = {.bytes = BUF_INIT(1u << 20)};

	store_begin(s);
	put_event(&b, "it's", "n", 5);
	assert_int_equal(take_batch(s->store, 1, &b), 0);
	for (int sealed = 0; sealed < 2; sealed++) {
		fill_up_to(s->store, 21);
		scope = (struct store_scope){.clusters = names, .cluster_count = 2};
		assert_int_equal(ask_number(s->store, &scope, "SELECT count(*) FROM {events}"), 21);
		assert_int_equal(ask_number(s->store, &scope,
					 "SELECT count(*) FROM {events} WHERE cluster_id = 'red'"),
			0);
		scope.since_ns = T0 + 5 * (int64_t)NS_PER_S;
		scope.until_ns = T0 + 7 * (int64_t)NS_PER_S;
		assert_int_equal(ask_number(s->store, &scope, "SELECT count(*) FROM {events}"), 3);
		scope.cluster_count = 0;
		assert_int_equal(ask_number(s->store, &scope, "SELECT count(*) FROM {events}"), 0);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
}

/* ---- a stranger's SQL ---- */

static int64_t sql_number(struct store *s, const struct store_scope *scope, const char *text)
{
	struct errinfo err = {0};
	struct sql_table t;
	int64_t v;
	int r = store_sql(s, scope, text, &STORE_LIMITS, &t, &err);

	if (r < 0)
		print_error("%s: %s\n", text, err.text);
	assert_int_equal(r, 0);
	v = sql_table_cell(&t, 0, 0)->type == SQL_REAL ? (int64_t)sql_table_cell(&t, 0, 0)->d
						       : sql_table_cell(&t, 0, 0)->i;
	sql_table_done(&t);
	return v;
}

static void test_sql_reaches_the_clusters_of_its_scope(void **state)
{
	struct scratch_store *s = *state;
	static const char *const names[] = {"blue"};
	struct store_scope blue = {.clusters = names, .cluster_count = 1};
	struct store_scope none = {.clusters = names};
	struct errinfo err = {0};
	struct sql_table t;

	store_begin(s);
	assert_int_equal(sql_number(s->store, NULL, "SELECT count(*) FROM events"), 0);
	fill_up_to(s->store, 20);
	assert_int_equal(sql_number(s->store, NULL, "SELECT count(*) FROM events"), 60);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	assert_int_equal(sql_number(s->store, NULL, "SELECT count(*) FROM events"), 60);
	fill_up_to(s->store, 30);
	assert_int_equal(sql_number(s->store, NULL, "SELECT count(*) FROM events"), 90);
	assert_int_equal(sql_number(s->store, &blue, "SELECT count(*) FROM events"), 30);
	assert_int_equal(sql_number(s->store, &blue, "SELECT sum(count) FROM node_metrics"), 30);
	assert_int_equal(sql_number(s->store, &blue,
				 "SELECT count(*) FROM events WHERE cluster_id <> 'blue'"),
		0);
	assert_int_equal(sql_number(s->store, &none, "SELECT count(*) FROM events"), 0);
	assert_int_equal(
		store_sql(s->store, NULL, "DROP TABLE events", &STORE_LIMITS, &t, &err), -EINVAL);
	assert_filled(s->store, 30);
}

/* Only tables that a statement may read are copied for it: each way to name one finds the newest rows. */
static void test_sql_sees_live_rows_however_a_table_is_named(void **state)
{
	static const char *const forms[] = {"SELECT count(*) FROM events",
		"SELECT count(*) FROM EVENTS", "FROM \"Events\" SELECT count(*)",
		"SELECT count(*) FROM query_table('ev' || 'ents')",
		"SELECT count(*) FROM query('FROM ev' || 'ents')",
		"SELECT (SELECT count(*) FROM incidents) + count(*) FROM events",
		"WITH t AS (TABLE events) SELECT count(*) FROM t",
		"SELECT sum(count)::BIGINT FROM node_metrics"};
	struct scratch_store *s = *state;

	store_begin(s);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		assert_true(
			s->store->ops->seal(s->store, NULL) >= 0); /* no older snapshot will do */
		fill_up_to(s->store, 10 * (uint64_t)(i + 1));
		assert_int_equal(sql_number(s->store, NULL, "SELECT 7"), 7);
		assert_int_equal(sql_number(s->store, NULL, "SELECT count(*) FROM steps"), 0);
		assert_int_equal(sql_number(s->store, NULL, forms[i]), 30 * (int64_t)(i + 1));
	}
}

/* ---- lock ---- */

static void test_the_lock_names_its_holder(void **state)
{
	struct scratch_store *s = *state;
	struct errinfo err = {0};
	struct store *second;
	char pid[32];

	store_begin(s);
	assert_int_equal(store_duck_open(&s->settings, &second, &err), -EAGAIN);
	snprintf(pid, sizeof(pid), "process %d on ", (int)getpid());
	assert_non_null(strstr(err.text, pid));
	assert_int_equal(errinfo_exit_code(&err, -EAGAIN), EXIT_TRY_AGAIN);
	store_end(s);
	store_begin(s);
}

static void test_parts_without_a_manifest_are_not_opened(void **state)
{
	struct scratch_store *s = *state;
	struct errinfo err = {0};
	char path[128];

	store_begin(s);
	fill_up_to(s->store, 3);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	snprintf(path, sizeof(path), "%s/manifest", s->folder);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/manifest.copy", s->folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(store_duck_open(&s->settings, &s->store, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "no manifest"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_committed_rows_are_visible),
		T(test_what_is_no_batch_changes_nothing),
		T(test_sealed_rows_survive),
		T(test_a_hurried_seal),
		T(test_a_part_under_way_is_given_up),
		T(test_questions_see_every_row_once_while_parts_change),
		T(test_a_question_ends_at_its_deadline),
		T(test_scope_shows_only_its_clusters_and_times),
		T(test_sql_reaches_the_clusters_of_its_scope),
		T(test_sql_sees_live_rows_however_a_table_is_named),
		T(test_the_lock_names_its_holder),
		T(test_parts_without_a_manifest_are_not_opened),
#undef T
	};

	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
