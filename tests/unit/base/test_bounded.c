/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that do not end, and what becomes of the others meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bounded.h"
#include "base/clock.h"

struct wait_job {
	struct bounded_job job;
	int fd; /* until it can be read */
};

static int run_wait(struct bounded_job *j)
{
	char c;

	return (int)read(((struct wait_job *)j)->fd, &c, 1);
}

static struct wait_job *job_new(int fd, uint32_t uid)
{
	struct wait_job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	j->job = (struct bounded_job){.run = run_wait, .uid = uid};
	j->fd = fd;
	return j;
}

/* Once the others have let go of it, @uid may have one more. */
static void wait_for_room(int fd, uint32_t uid)
{
	struct wait_job *j;
	int r;

	do {
		usleep(1000);
		j = job_new(fd, uid);
		r = bounded_post(&j->job);
	} while (r == -EAGAIN);
	assert_int_equal(r, 0);
	bounded_leave(&j->job);
}

/* Four of one user wait: a fifth is not begun, another user's is; they end when they may. */
static void test_each_user_has_a_share(void **state)
{
	struct wait_job *waiting[BOUNDED_USER_MAX], *j;
	int ends[2], closed[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(closed), 0);
	close(closed[1]);
	for (int i = 0; i < BOUNDED_USER_MAX; i++) {
		waiting[i] = job_new(ends[0], 1);
		assert_int_equal(bounded_post(&waiting[i]->job), 0);
	}
	j = job_new(closed[0], 1);
	assert_int_equal(bounded_post(&j->job), -EAGAIN);
	j = job_new(closed[0], 2);
	assert_int_equal(
		bounded_run(&j->job, BOUNDED_WAIT_NS), 0); /* control: nobody is in its way */
	assert_int_equal(j->job.result, 0);
	free(j);
	for (int i = 0; i < BOUNDED_USER_MAX; i++)
		assert_false(bounded_is_done(&waiting[i]->job));
	bounded_leave(&waiting[0]->job);
	assert_int_equal(write(ends[1], "xxxx", BOUNDED_USER_MAX), BOUNDED_USER_MAX);
	for (int i = 1; i < BOUNDED_USER_MAX; i++) {
		while (!bounded_is_done(&waiting[i]->job))
			usleep(1000);
		assert_int_equal(waiting[i]->job.result, 1);
		free(waiting[i]);
	}
	wait_for_room(closed[0], 1);
	close(ends[0]);
	close(ends[1]);
	close(closed[0]);
}

/* Who waits is let go, and does not wait again at once. */
static void test_who_waits_is_let_go(void **state)
{
	struct wait_job *j;
	char first[4];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	j = job_new(ends[0], 3);
	assert_int_equal(bounded_run(&j->job, BOUNDED_WAIT_NS), -ETIMEDOUT);
	j = job_new(ends[0], 3);
	assert_int_equal(bounded_run(&j->job, BOUNDED_WAIT_NS), -EAGAIN);
	assert_int_equal(bounded_read(4, "/proc/self/cmdline", first, sizeof(first)),
		sizeof(first)); /* another's is */
	assert_int_equal(write(ends[1], "x", 1), 1);
	bounded_end();
	close(ends[1]);
}

static int dropped;

static void drop(struct bounded_job *j)
{
	__atomic_store_n(&dropped, j->result, __ATOMIC_RELEASE);
}

/* What came of a job that nobody waits for any more is given back when it ends. */
static void test_what_is_left_is_given_back(void **state)
{
	struct wait_job *j;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	j = job_new(ends[0], 5);
	j->job.drop = drop;
	assert_int_equal(bounded_run(&j->job, 1000000), -ETIMEDOUT);
	assert_int_equal(__atomic_load_n(&dropped, __ATOMIC_ACQUIRE), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	while (!__atomic_load_n(&dropped, __ATOMIC_ACQUIRE))
		usleep(1000);
	assert_int_equal(dropped, 1);
	close(ends[0]);
	close(ends[1]);
}

static void test_files(void **state)
{
	char bytes[16];
	struct stat st;
	int fd = bounded_open_inside(0, "/", "/etc/passwd", 0, &st);

	assert_true(fd >= 0);
	assert_true(S_ISREG(st.st_mode));
	close(fd);
	assert_int_equal(bounded_open_inside(0, "/", "/etc/nobody/at/home", 0, &st), -ENOENT);
	assert_int_equal(bounded_read(0, "/etc/nobody/at/home", bytes, sizeof(bytes)), -ENOENT);
	assert_int_equal(bounded_read(0, "/proc/self/environ", bytes, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_user_has_a_share),
		cmocka_unit_test(test_who_waits_is_let_go),
		cmocka_unit_test(test_what_is_left_is_given_back),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
