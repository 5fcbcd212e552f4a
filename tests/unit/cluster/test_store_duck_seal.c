/* SPDX-License-Identifier: Apache-2.0 */
#include "store_duck_fixture.h"

#include <sched.h>
#include <sys/mount.h>

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
		for (int i = 0; i < 3; i++) {
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

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_crash_at_every_place_loses_and_doubles_nothing),
		T(test_a_full_disk_is_survived),
		T(test_memory_has_a_bound),
		T(test_an_instance_that_fails_is_replaced),
#undef T
	};

	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
