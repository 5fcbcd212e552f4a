/* SPDX-License-Identifier: Apache-2.0 */
/* test_courtesy.c - a thread that lets others go first, and only that thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/courtesy.h"

/* The first fields of struct sched_attr, whose header cannot stand beside that of pthreads. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, rest[4];
};

static struct attr mine(void)
{
	struct attr attr = {0};

	assert_int_equal(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
	return attr;
}

static void *polite(void *arg)
{
	courtesy_begin();
	*(struct attr *)arg = mine();
	return NULL;
}

static void only_that_thread(void **state)
{
	struct attr before = mine(), its;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, polite, &its), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(its.policy, SCHED_BATCH);
	assert_int_equal(its.nice, before.nice); /* it gets no less of the CPUs */
	assert_int_equal(mine().policy, before.policy);
	if (before.runtime_ns) /* Linux 6.12 and later tell */
		assert_true(its.runtime_ns > before.runtime_ns);
	else
		print_message("# this kernel has no slices of one thread's own: not looked at\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(only_that_thread)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
