/* SPDX-License-Identifier: Apache-2.0 */
#include "store_duck_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>

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

/* ---- crashes ---- */

static int places_left;

static void end_at_place(const char *place)
{
	(void)place;
	if (places_left-- == 0)
		_exit(42);
}

/* A process that fills, seals and merges, and ends at its @n'th place. */
static int run_and_crash(struct scratch_store *s, int n, uint64_t up_to)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		places_left = n;
		store_duck_at = end_at_place;
		store_begin(s);
		for (int i = 0; i < 4; i++) {
			struct store_stats st;

			s->store->ops->stats(s->store, &st);
			fill_up_to(s->store, MIN(st.visible + 5, up_to));
			s->store->ops->seal(s->store, NULL);
			while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
				;
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_after_crash(struct scratch_store *s, uint64_t up_to)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		store_begin(s);
		fill_up_to(s->store, up_to);
		assert_filled(s->store, (int64_t)up_to);
		store_end(s);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* In processes of their own: DuckDB's threads do not outlive a fork. */
static void test_crash_at_every_place_loses_and_doubles_nothing(void **state)
{
	struct scratch_store *s = *state;
	int ended = 42, crashes = 0;

	for (int n = 0; ended == 42 && n < 60; n++) {
		ended = run_and_crash(s, n, 120);
		crashes += ended == 42;
		check_after_crash(s, 120);
	}
	assert_int_equal(ended, 0); /* the last one came to its end */
	assert_true(crashes >= 10);
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

/* ---- upkeep ---- */

static void test_merging_keeps_the_rows(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	for (uint64_t n = 4; n <= 32; n += 4) {
		fill_up_to(s->store, n);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 16);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		assert_filled(s->store, 32);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 2);
	assert_int_equal(st.dropped_rows, 0);
	store_end(s);
	store_begin(s);
	assert_filled(s->store, 32);
}

static void test_retention_drops_the_oldest(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	s->settings.retention_ns = 100 * NS_PER_S;
	store_begin(s);
	for (uint64_t n = 50; n <= 200; n += 50) {
		fill_up_to(s->store, n);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	while (s->store->ops->upkeep(s->store, T0 + 210 * (int64_t)NS_PER_S, NULL) > 0)
		;
	/* Parts with rows 101 to 150 and 151 to 200 stay, of each cluster. */
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 300);
	assert_int_equal(ask_number(s->store, NULL, "SELECT min(value_int) FROM {events}"), 101);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 4);
	assert_int_equal(st.dropped_rows, 310);
	assert_int_equal(st.durable, 200);
	store_end(s);

	s->settings.retention_ns = 0;
	s->settings.bytes_max = st.bytes - 1;
	store_begin(s);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 3);
	assert_true(st.bytes <= s->settings.bytes_max);
}

/* ---- damage ---- */

static char part_file[4200];

static int find_part(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	if (type == FTW_F && strstr(path, "/red-") && strstr(path, ".duckdb"))
		snprintf(part_file, sizeof(part_file), "%s", path);
	return 0;
}

static void damage_part_in(const char *folder, bool cut)
{
	FILE *f;

	nftw(folder, find_part, 16, FTW_PHYS);
	f = fopen(part_file, "r+");
	assert_non_null(f);
	if (cut) {
		assert_int_equal(ftruncate(fileno(f), 100), 0);
	} else {
		static const char junk[200000];

		fseek(f, 4096 * 3, SEEK_SET); /* behind the headers */
		fwrite(junk, 1, sizeof(junk), f);
	}
	fclose(f);
}

static void damage_part(struct scratch_store *s, bool cut)
{
	damage_part_in(s->folder, cut);
}

static void test_a_part_that_is_cut_is_moved_away(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	fill_up_to(s->store, 30);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	damage_part(s, true);
	for (int i = 0; i < 2; i++) { /* it is moved once */
		store_begin(s);
		assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 30);
		s->store->ops->stats(s->store, &st);
		assert_int_equal(st.fault, i == 0 ? -EBADMSG : 0);
		assert_int_equal(st.parts, 1);
		store_end(s);
		assert_int_equal(access(part_file, F_OK), -1);
	}
}

static void test_a_part_that_cannot_be_read_is_moved_away(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;
	struct sql_table t;

	store_begin(s);
	fill_up_to(s->store, 30);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	damage_part(s, false);
	store_begin(s);
	if (store_select(s->store, NULL, "SELECT sum(value_int) FROM {events}", &STORE_LIMITS, &t,
		    NULL) == 0)
		sql_table_done(&t);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 30);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.fault, -EBADMSG);
	assert_non_null(strstr(st.fault_text, "cluster red is damaged"));
}

/* ---- a full disk, a DuckDB that gives up ---- */

/* A file system of 24 MiB that only this process sees. */
static bool mount_small(const char *folder)
{
	mkdir(folder, 0700);
	return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", folder, "tmpfs", 0, "size=24m") == 0;
}

static void fill_disk(const char *path)
{
	static const char zeros[1 << 20];
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	while (fwrite(zeros, 1, sizeof(zeros), f) == sizeof(zeros))
		;
	fclose(f);
}

static int run_on_full_disk(struct scratch_store *s)
{
	struct store_stats st;
	struct errinfo err = {0};
	char ballast[160];

	if (!mount_small(s->folder))
		return 77;
	store_begin(s);
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	snprintf(ballast, sizeof(ballast), "%s/ballast", s->folder);
	fill_disk(ballast);
	fill_up_to(s->store, 40);
	assert_int_equal(s->store->ops->seal(s->store, &err), -ENOSPC);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.fault, -ENOSPC);
	assert_non_null(strstr(st.fault_text, "is full"));
	assert_int_equal(st.durable, 20);
	fill_up_to(s->store, 60); /* in memory */
	assert_filled(s->store, 60);
	unlink(ballast);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.fault, 0);
	assert_int_equal(st.durable, 60);
	assert_filled(s->store, 60);
	store_end(s);
	store_begin(s);
	assert_filled(s->store, 60);
	store_end(s);
	return 0;
}

static void test_a_full_disk_is_survived(void **state)
{
	struct scratch_store *s = *state;
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(run_on_full_disk(s));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("SKIP: no file system can be mounted here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void test_memory_has_a_bound(void **state)
{
	struct scratch_store *s = *state;
	uint64_t n = 1;

	s->settings.memory_bytes = 64u << 20;
	store_begin(s);
	fill_up_to(s->store, 5);
	((struct store_duck *)s->store)->settings.memory_bytes = 8192;
	((struct store_duck *)s->store)->seal_after.ns = UINT64_MAX; /* as if sealing had failed */
	for (n = 6; n < 100 && take_entry(s->store, n) == 0; n++)
		assert_int_equal(store_commit(s->store, NULL), 0);
	assert_true(n > 6 && n < 30);
	assert_int_equal(take_entry(s->store, n), -ENOSPC);
	((struct store_duck *)s->store)->seal_after.ns = 0;
	fill_up_to(s->store, 50); /* sealed when there is no room */
	assert_filled(s->store, 50);
}

static void test_an_instance_that_fails_is_replaced(void **state)
{
	struct scratch_store *s = *state;
	struct store_duck *d;
	struct store_stats st;

	store_begin(s);
	d = (struct store_duck *)s->store;
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 30);
	/* A connection that refuses everything is what a database looks like that was given up. */
	assert_int_equal(duck_exec(d->fill, "BEGIN", NULL), 0);
	assert_true(duck_exec(d->fill, "SELECT error('x')", NULL) < 0);
	assert_int_equal(take_entry(s->store, 31), 0);
	assert_true(store_commit(s->store, NULL) < 0);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.visible, 20);
	assert_filled(s->store, 20);
	assert_int_equal(take_entry(s->store, 31), -EIO); /* there is a gap before it */
	fill_up_to(s->store, 40);
	assert_filled(s->store, 40);
}

/* ---- copies ---- */

static void test_a_backup_is_verified_and_restored(void **state)
{
	struct scratch_store *s = *state;
	char backup[96], restored[96];
	struct errinfo err = {0};

	snprintf(backup, sizeof(backup), "%s/backup", s->root);
	snprintf(restored, sizeof(restored), "%s/restored", s->root);
	store_begin(s);
	fill_up_to(s->store, 40);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 50); /* not durable: not in the backup */
	assert_int_equal(store_duck_backup(s->store, backup, NULL), 0);
	assert_int_equal(store_duck_backup(s->store, backup, &err), -EEXIST);
	assert_int_equal(store_duck_verify(s->folder, &err), -EAGAIN); /* it is in use */
	store_end(s);
	assert_int_equal(store_duck_verify(s->folder, NULL), 0);
	assert_int_equal(store_duck_verify(backup, NULL), 0);
	assert_int_equal(store_duck_restore(backup, restored, NULL), 0);
	assert_int_equal(store_duck_restore(backup, restored, NULL), -EEXIST);

	s->settings.folder = restored;
	store_begin(s);
	assert_int_equal(store_durable(s->store), 40);
	assert_filled(s->store, 40);
	fill_up_to(s->store, 50);
	assert_filled(s->store, 50);
	store_end(s);

	damage_part_in(backup, false);
	assert_int_equal(store_duck_verify(backup, &err), -EBADMSG);
	assert_non_null(strstr(err.text, part_file));
	snprintf(restored, sizeof(restored), "%s/second", s->root);
	assert_int_equal(store_duck_restore(backup, restored, NULL), -EBADMSG);
	assert_int_equal(access(restored, F_OK), -1);
}

static void test_rows_are_exported_as_parquet(void **state)
{
	struct scratch_store *s = *state;
	static const char *const names[] = {"blue"};
	struct store_scope blue = {.clusters = names, .cluster_count = 1};
	char path[96], question[200];
	uint64_t rows = 0;

	snprintf(path, sizeof(path), "%s/events.parquet", s->root);
	store_begin(s);
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 30);
	assert_int_equal(store_duck_export(s->store, TABLE_EVENTS, &blue, path, &rows, NULL), 0);
	assert_int_equal(rows, 30);
	assert_int_equal(
		store_duck_export(s->store, TABLE_EVENTS, &blue, path, &rows, NULL), -EEXIST);
	snprintf(question, sizeof(question),
		"SELECT sum(value_int) FROM '%s' WHERE cluster_id = 'blue'", path);
	assert_int_equal(ask_number(s->store, NULL, question), 30 * 31 / 2);
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
	assert_int_equal(store_duck_open(&s->settings, &s->store, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "no manifest"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_crash_at_every_place_loses_and_doubles_nothing),
		T(test_a_full_disk_is_survived),
		T(test_committed_rows_are_visible),
		T(test_what_is_no_batch_changes_nothing),
		T(test_sealed_rows_survive),
		T(test_questions_see_every_row_once_while_parts_change),
		T(test_a_question_ends_at_its_deadline),
		T(test_scope_shows_only_its_clusters_and_times),
		T(test_sql_reaches_the_clusters_of_its_scope),
		T(test_merging_keeps_the_rows),
		T(test_retention_drops_the_oldest),
		T(test_a_part_that_is_cut_is_moved_away),
		T(test_a_part_that_cannot_be_read_is_moved_away),
		T(test_memory_has_a_bound),
		T(test_an_instance_that_fails_is_replaced),
		T(test_a_backup_is_verified_and_restored),
		T(test_rows_are_exported_as_parquet),
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
