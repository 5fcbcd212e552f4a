/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <signal.h>
#include <sys/file.h>

#include "store/lock.h"

static void test_one_holder(void **state)
{
	struct scratch *s = *state;
	struct store_lock a = STORE_LOCK_INIT, b = STORE_LOCK_INIT;
	struct errinfo err = {0};
	char pid[32];

	assert_int_equal(store_lock_take(s->path, &a, &err), 0);
	assert_int_equal(store_lock_take(s->path, &b, &err), -EBUSY);
	snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	assert_non_null(strstr(err.text, pid));
	assert_non_null(strstr(err.text, s->path));
	assert_int_equal(b.fd, -1);
	store_lock_done(&a);
	assert_int_equal(scratch_files(s->folder, false), 0);
	assert_int_equal(store_lock_take(s->path, &b, &err), 0);
	store_lock_done(&b);
	store_lock_done(&b); /* not held: nothing */
}

static void test_killed_holder_locks_nobody_out(void **state)
{
	struct scratch *s = *state;
	struct store_lock a = STORE_LOCK_INIT;
	struct errinfo err = {0};
	int status, ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (store_lock_take(s->path, &a, &err) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(store_lock_take(s->path, &a, &err), -EBUSY);
	assert_int_equal(store_lock_holder(s->path), pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(store_lock_holder(s->path), 0);
	assert_int_equal(scratch_files(s->folder, false), 1); /* its file stays behind */
	assert_int_equal(store_lock_take(s->path, &a, &err), 0);
	store_lock_done(&a);
	close(ready[0]);
	close(ready[1]);
}

/* A pid that lives, in a file that nobody holds: given out again. Neither it nor rubbish counts. */
static void test_who_writes(void **state)
{
	struct scratch *s = *state;
	struct store_lock a = STORE_LOCK_INIT;
	struct errinfo err = {0};
	char name[128], pid[32];

	snprintf(name, sizeof(name), "%s.lock", s->path);
	snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	assert_int_equal(store_lock_holder(s->path), 0);
	scratch_write(name, pid, strlen(pid));
	assert_int_equal(store_lock_holder(s->path), 0);
	scratch_write(name, "rubbish", 7);
	assert_int_equal(store_lock_holder(s->path), 0);
	assert_int_equal(store_lock_take(s->path, &a, &err), 0); /* asking left it free */
	assert_int_equal(store_lock_holder(s->path), getpid());
	store_lock_done(&a);
	assert_int_equal(store_lock_holder(s->path), 0);
}

/* Who is not the owner cannot hold it, also not one that an earlier version left readable; who holds it without
 * being the writer is not called by the pid of one that is dead. */
static void test_nobody_else_can_hold_it(void **state)
{
	struct scratch *s = *state;
	struct store_lock a = STORE_LOCK_INIT;
	struct errinfo err = {0};
	struct stat st;
	char name[128];
	int fd;

	snprintf(name, sizeof(name), "%s.lock", s->path);
	scratch_write(name, "2147483647\n", 11); /* over every pid_max */
	assert_int_equal(chmod(name, 0644), 0);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(store_lock_take(s->path, &a, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another process has locked"));
	assert_null(strstr(err.text, "2147483647"));
	close(fd);
	assert_int_equal(store_lock_take(s->path, &a, &err), 0);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	store_lock_done(&a);
	assert_int_equal(store_lock_take(s->path, &a, &err), 0);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	store_lock_done(&a);
}

static void test_links_are_not_written_through(void **state)
{
	struct scratch *s = *state;
	struct store_lock a = STORE_LOCK_INIT;
	struct errinfo err = {0};
	char victim[128], name[128], *data;
	size_t len;

	snprintf(victim, sizeof(victim), "%s/victim", s->folder);
	snprintf(name, sizeof(name), "%s.lock", s->path);
	scratch_write(victim, "precious", 8);
	assert_int_equal(link(victim, name), 0);
	assert_true(store_lock_take(s->path, &a, &err) < 0);
	unlink(name);
	assert_int_equal(symlink(victim, name), 0);
	assert_true(store_lock_take(s->path, &a, &err) < 0);
	data = scratch_bytes(victim, &len);
	assert_int_equal(len, 8);
	assert_memory_equal(data, "precious", 8);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_holder),
		TEST(test_killed_holder_locks_nobody_out),
		TEST(test_who_writes),
		TEST(test_nobody_else_can_hold_it),
		TEST(test_links_are_not_written_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
