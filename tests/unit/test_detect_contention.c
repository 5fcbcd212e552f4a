/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_contention.c - time without a CPU that needs no better time to compare with: whose,
 * how much of it counts, and what is told elsewhere. */
#include "verdict.h"

/* @n rounds of 10 ms: a launch, a stay of @stay_us of @tid from @stay_at_us on, a wait of 3 ms. */
static void rounds(struct scene *s, int n, uint32_t tid, int64_t stay_at_us, int64_t stay_us)
{
	for (int i = 0; i < n; i++) {
		int64_t at = i * 10000;

		scene_call(s, CUDA_LAUNCH, at, 10);
		scene_stay(s, tid, at + stay_at_us, stay_us, stay_us, WIRE_PREEMPTED, HOG, "hog");
		scene_call(s, CUDA_STREAM_SYNC, at + 6000, 3000);
	}
	scene_aggregate(s);
}

static const struct incident *contention(const struct verdicts *v)
{
	return verdict(v, PROBLEM_CPU_CONTENTION);
}

static void test_shares(void **state)
{
	static const struct {
		int64_t stay_us;
		int severity; /* -1: nothing */
	} rows[] = {{900, -1}, {1200, SEVERITY_MEDIUM}, {3000, SEVERITY_HIGH}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		SCENE;

		rounds(&s, 1000, VICTIM, 100, rows[i].stay_us);
		struct recording rec = scene_recording(&s);
		VERDICTS v = verdicts_of(&rec);
		const struct incident *inc = contention(&v);

		if (rows[i].severity < 0) {
			assert_null(inc);
			continue;
		}
		assert_non_null(inc);
		assert_int_equal(inc->severity, rows[i].severity);
		assert_in_range(inc->excess_ns, rows[i].stay_us * 999 * 1000,
			rows[i].stay_us * 1000 * 1000);
		assert_int_equal(inc->causes[0].culprit_pid, HOG);
		assert_has(inc->summary, "python3 was ready to run and had no CPU for");
	}
}

/* Behind processes of its own name: ranks of one job. */
static void test_own_ranks(void **state)
{
	SCENE;

	rounds(&s, 1000, VICTIM, 100, 1200);
	for (size_t i = 0; i < s.event_count; i++)
		if (s.events[i].peer_pid == HOG)
			memcpy(s.events[i].peer_comm, s.events[i].comm, COMM_LEN);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = contention(&v);

	assert_non_null(inc);
	assert_int_equal(inc->severity, SEVERITY_LOW);
}

/* The same stays in the middle of a wait for the GPU cost nothing. */
static void test_mid_wait(void **state)
{
	SCENE;

	rounds(&s, 1000, VICTIM, 6010, 1500);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(contention(&v));
}

/* Threads that make few or no calls may wait as they like. */
static void test_other_thread(void **state)
{
	SCENE;

	rounds(&s, 1000, VICTIM + 1, 100, 5000);
	scene_add(&s, SOURCE_CUDA, CUDA_LAUNCH, VICTIM, VICTIM + 1, 50, 10);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(contention(&v));
}

/* What slow calls tell of is told once. */
static void test_told_once(void **state)
{
	SCENE;

	scene_hog(&s);
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	assert_int_equal(contention(&v)->slow_calls, 400);
}

static void test_another_container(void **state)
{
	static const struct process_home homes[] = {
		{.pid = VICTIM, .container_id = "aaaaaaaaaaaa"},
		{.pid = HOG, .container_id = "bbbbbbbbbbbb"},
	};
	SCENE;

	rounds(&s, 1000, VICTIM, 100, 3000);
	struct recording rec = scene_recording(&s);

	rec.homes = homes;
	rec.home_count = ARRAY_SIZE(homes);
	VERDICTS v = verdicts_of(&rec);
	assert_non_null(verdict(&v, PROBLEM_NOISY_NEIGHBOUR));
}

static void test_hostile(void **state)
{
	SCENE;

	scene_hostile(&s, SOURCE_CUDA, CUDA_LAUNCH);
	scene_hostile(&s, SOURCE_HOST, HOST_SCHED_SWITCH);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(contention(&v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_own_ranks),
		cmocka_unit_test(test_mid_wait),
		cmocka_unit_test(test_other_thread),
		cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_another_container),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
