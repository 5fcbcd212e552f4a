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

#include "record/stack/remote.h"
#include "base/clock.h"

struct wait_job {
	struct remote_job job;
	int fd; /* until it can be read */
};

static int run_wait(struct remote_job *j)
{
	char c;

	return (int)read(((struct wait_job *)j)->fd, &c, 1);
}

static struct wait_job *job_new(int fd, uint32_t uid)
{
	struct wait_job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	j->job = (struct remote_job){.run = run_wait, .uid = uid};
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
		r = remote_post(&j->job);
	} while (r == -EAGAIN);
	assert_int_equal(r, 0);
	remote_leave(&j->job);
}

static void test_memory(void **state)
{
	uint64_t here = 0x1234567890abcdef, got = 0;

	assert_int_equal(
		remote_read((uint32_t)getpid(), 0, (uintptr_t)&here, &got, sizeof(got)), 0);
	assert_true(got == here);
	assert_int_equal(remote_read((uint32_t)getpid(), 0, 8, &got, sizeof(got)), -EFAULT);
	assert_int_equal(remote_read(0x7ffffff1, 0, 8, &got, sizeof(got)), -ESRCH);
}

/* Four of one user wait: a fifth is not begun, another user's is; they end when they may. */
static void test_each_user_has_a_share(void **state)
{
	struct wait_job *waiting[REMOTE_USER_MAX], *j;
	int ends[2], closed[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(closed), 0);
	close(closed[1]);
	for (int i = 0; i < REMOTE_USER_MAX; i++) {
		waiting[i] = job_new(ends[0], 1);
		assert_int_equal(remote_post(&waiting[i]->job), 0);
	}
	j = job_new(closed[0], 1);
	assert_int_equal(remote_post(&j->job), -EAGAIN);
	j = job_new(closed[0], 2);
	assert_int_equal(remote_run(&j->job), 0); /* control: nobody is in its way */
	assert_int_equal(j->job.result, 0);
	free(j);
	for (int i = 0; i < REMOTE_USER_MAX; i++)
		assert_false(remote_is_done(&waiting[i]->job));
	remote_leave(&waiting[0]->job);
	assert_int_equal(write(ends[1], "xxxx", REMOTE_USER_MAX), REMOTE_USER_MAX);
	for (int i = 1; i < REMOTE_USER_MAX; i++) {
		while (!remote_is_done(&waiting[i]->job))
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
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	j = job_new(ends[0], 3);
	assert_int_equal(remote_run(&j->job), -ETIMEDOUT);
	j = job_new(ends[0], 3);
	assert_int_equal(remote_run(&j->job), -EAGAIN);
	assert_int_equal(write(ends[1], "x", 1), 1);
	remote_end();
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_each_user_has_a_share),
		cmocka_unit_test(test_who_waits_is_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
