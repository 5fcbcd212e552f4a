/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads, a queue that has an end, nothing that was taken is lost, and nobody who asks much
 * keeps another waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>

#include "base/pool.h"

#define JOBS 80

/* Jobs run until they are let go, and note the order in which they began. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int begun[4 * JOBS]; /* their numbers */
	size_t begun_count;
	bool may_end[JOBS], was_brief[JOBS];
	int ended;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct pool_job jobs[JOBS];

static bool run(void *arg, bool brief)
{
	int i = (int)(intptr_t)arg;
	bool done;

	pthread_mutex_lock(&seen.mutex);
	seen.begun[seen.begun_count++] = i;
	seen.was_brief[i] = brief;
	pthread_cond_broadcast(&seen.changed);
	while (!brief && !seen.may_end[i])
		pthread_cond_wait(&seen.changed, &seen.mutex);
	done = seen.may_end[i];
	seen.ended += done;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
	return done;
}

static int setup(void **state)
{
	seen.begun_count = 0;
	seen.ended = 0;
	for (int i = 0; i < JOBS; i++)
		seen.may_end[i] = seen.was_brief[i] = false;
	return 0;
}

static int push(struct pool *p, int i, uint64_t asker)
{
	jobs[i] = (struct pool_job){.fn = run, .arg = (void *)(intptr_t)i, .asker = asker};
	return pool_push(p, &jobs[i]);
}

static void await_begun(size_t n)
{
	pthread_mutex_lock(&seen.mutex);
	while (seen.begun_count < n)
		pthread_cond_wait(&seen.changed, &seen.mutex);
	pthread_mutex_unlock(&seen.mutex);
}

static void let_go(int i)
{
	pthread_mutex_lock(&seen.mutex);
	seen.may_end[i] = true;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
}

static void end_pool(struct pool *p)
{
	for (int i = 0; i < JOBS; i++)
		let_go(i);
	pool_free(p);
}

static void test_threads_work_at_once_and_the_queue_ends(void **state)
{
	struct pool *p = NULL;

	assert_int_equal(
		pool_new(&(struct pool_settings){.threads = 2, .nice = 5, .queue_max = 4}, &p), 0);
	assert_int_equal(push(p, 0, 1), 0);
	assert_int_equal(push(p, 1, 1), 0);
	await_begun(2); /* both are running */
	for (int i = 2; i < 6; i++)
		assert_int_equal(push(p, i, (uint64_t)i), 0);
	assert_int_equal(push(p, 6, 6), -EBUSY);
	assert_int_equal(pool_load(p), 6);
	end_pool(p); /* runs what waits */
	assert_int_equal(seen.ended, 6);
}

/* One asker fills half of the queue, the next half of what is left: there is a place for another. */
static void test_no_asker_fills_the_queue(void **state)
{
	struct pool *p = NULL;
	int i = 0;

	assert_int_equal(pool_new(&(struct pool_settings){.threads = 1, .queue_max = 64}, &p), 0);
	assert_int_equal(push(p, i++, 1), 0);
	await_begun(1);
	while (push(p, i, 1) == 0)
		i++;
	assert_int_equal(i, 1 + 32);
	while (push(p, i, 2) == 0)
		i++;
	assert_int_equal(i, 1 + 32 + 16);
	assert_int_equal(push(p, i, 3), 0);
	end_pool(p);
	assert_int_equal(seen.ended, i + 1);
}

/* Who has nothing running goes before who has, whoever came first. */
static void test_askers_take_turns(void **state)
{
	struct pool *p = NULL;

	assert_int_equal(pool_new(&(struct pool_settings){.threads = 2, .queue_max = 64}, &p), 0);
	assert_int_equal(push(p, 0, 1), 0);
	assert_int_equal(push(p, 1, 1), 0);
	await_begun(2);
	assert_int_equal(push(p, 2, 1), 0);
	assert_int_equal(push(p, 3, 2), 0);
	let_go(0);
	await_begun(3);
	assert_int_equal(seen.begun[2], 3);
	end_pool(p);
	assert_int_equal(seen.ended, 4);
}

/* The control is the pool that leaves no room: there the first asker has every thread. */
static void test_room_for_others(void **state)
{
	for (int leaves = 0; leaves < 2; leaves++) {
		struct pool *p = NULL;

		setup(state);
		assert_int_equal(pool_new(&(struct pool_settings){.threads = 4,
						  .queue_max = 64,
						  .leaves_room = leaves},
					 &p),
			0);
		for (int i = 0; i < 8; i++)
			assert_int_equal(push(p, i, 1), 0);
		await_begun(leaves ? 2 : 4);
		assert_int_equal(push(p, 8, 2), 0);
		if (leaves) {
			await_begun(3);
			assert_int_equal(seen.begun[2], 8);
		}
		assert_int_equal(seen.begun_count, leaves ? 3 : 4);
		end_pool(p);
		assert_int_equal(seen.ended, 9);
	}
}

/* What one asker has beyond its threads is tried for a moment: its quick questions are answered
 * while its slow ones run, and the slow ones get their time later. */
static void test_brief_tries(void **state)
{
	struct pool *p = NULL;

	assert_int_equal(pool_new(&(struct pool_settings){.threads = 3,
					  .brief_threads = 1,
					  .queue_max = 64,
					  .leaves_room = true},
				 &p),
		0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(push(p, i, 1), 0);
	await_begun(4); /* two at length, two tried */
	let_go(4);
	assert_int_equal(push(p, 4, 1), 0);
	await_begun(5);
	assert_int_equal(seen.begun[4], 4);
	assert_true(seen.was_brief[4]);
	assert_true(seen.was_brief[2] && seen.was_brief[3]);
	assert_false(seen.was_brief[0] || seen.was_brief[1]);
	let_go(0);
	await_begun(6); /* one that was tried, at length */
	assert_false(seen.was_brief[seen.begun[5]]);
	end_pool(p);
	assert_int_equal(seen.ended, 5);
}

static void test_withdrawn(void **state)
{
	struct pool *p = NULL;

	assert_int_equal(pool_new(&(struct pool_settings){.threads = 1, .queue_max = 4}, &p), 0);
	assert_int_equal(push(p, 0, 1), 0);
	await_begun(1);
	assert_int_equal(push(p, 1, 1), 0);
	assert_false(pool_withdraw(p, &jobs[0])); /* it runs */
	assert_true(pool_withdraw(p, &jobs[1]));
	assert_false(pool_withdraw(p, &jobs[1]));
	assert_int_equal(pool_load(p), 1);
	end_pool(p);
	assert_int_equal(seen.ended, 1);
}

static void test_an_idle_pool_ends(void **state)
{
	struct pool *p = NULL;

	assert_int_equal(pool_new(&(struct pool_settings){.threads = 3, .queue_max = 1}, &p), 0);
	assert_int_equal(pool_load(p), 0);
	pool_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_threads_work_at_once_and_the_queue_ends, setup),
		cmocka_unit_test_setup(test_no_asker_fills_the_queue, setup),
		cmocka_unit_test_setup(test_askers_take_turns, setup),
		cmocka_unit_test_setup(test_room_for_others, setup),
		cmocka_unit_test_setup(test_brief_tries, setup),
		cmocka_unit_test_setup(test_withdrawn, setup),
		cmocka_unit_test_setup(test_an_idle_pool_ends, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
