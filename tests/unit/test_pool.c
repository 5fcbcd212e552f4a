/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads, a queue that has an end, nothing that was taken is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>

#include "agent/serve/pool.h"

static pthread_barrier_t barrier;
static _Atomic int ran;

static void meet(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	ran++;
}

static void count(void *arg)
{
	(void)arg;
	ran++;
}

static void test_threads_work_at_once_and_the_queue_ends(void **state)
{
	struct pool *p = NULL;

	ran = 0;
	pthread_barrier_init(&barrier, NULL, 3);
	assert_int_equal(pool_new(2, 5, 4, &p), 0);
	assert_int_equal(pool_push(p, meet, NULL), 0);
	assert_int_equal(pool_push(p, meet, NULL), 0);
	pthread_barrier_wait(&barrier); /* both are running */
	for (int i = 0; i < 4; i++)
		assert_int_equal(pool_push(p, count, NULL), 0);
	assert_int_equal(pool_push(p, count, NULL), -EBUSY);
	assert_int_equal(pool_load(p), 6);
	pthread_barrier_wait(&barrier);
	pool_free(p); /* runs what waits */
	assert_int_equal(ran, 6);
	pthread_barrier_destroy(&barrier);
}

static void test_an_idle_pool_ends(void **state)
{
	struct pool *p = NULL;

	assert_int_equal(pool_new(3, 0, 1, &p), 0);
	assert_int_equal(pool_load(p), 0);
	pool_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_work_at_once_and_the_queue_ends),
		cmocka_unit_test(test_an_idle_pool_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
