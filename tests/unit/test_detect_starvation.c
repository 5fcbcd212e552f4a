/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_starvation.c - pauses without work for the GPU: what each kind is called, and what is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/problem.h"
#include "scene.h"

#define SCENE  _cleanup_(scene_done) struct scene s = {.seed = 1}
#define ANSWER _cleanup_(answer_done) struct answer
#define STEPS  200

struct answer {
	struct incident *list;
	size_t count;
};

static void answer_done(struct answer *a)
{
	free(a->list);
}

static struct answer explain(struct scene *s)
{
	struct recording rec;
	struct answer a = {0};

	scene_aggregate(s);
	rec = scene_recording(s);
	assert_int_equal(correlate_run(&rec, &a.list, &a.count), 0);
	for (size_t i = 0; i < a.count; i++) {
		assert_true(a.list[i].explained >= 0 && a.list[i].explained <= 1);
		assert_true(a.list[i].confidence >= 0 && a.list[i].confidence <= 1);
		assert_true(a.list[i].summary[0] && a.list[i].root_cause[0]);
		assert_true(a.list[i].step_count > 0 && a.list[i].evidence_count > 0);
	}
	return a;
}

static const struct incident *find(const struct answer *a, enum problem p)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i].problem == p)
			return &a->list[i];
	return NULL;
}

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* A step: a pause of @pause_us, a copy, 5 ms of kernels, a wait. Returns where the pause began. */
static int64_t step(struct scene *s, int64_t *at_us, int64_t pause_us)
{
	int64_t begin = *at_us;

	scene_call(s, CUDA_MEMCPY, begin + pause_us, 100)->flags =
		pause_us >= 1000 ? WIRE_AFTER_GAP : 0;
	scene_call(s, CUDA_STREAM_SYNC, begin + pause_us + 200, 5000);
	*at_us = begin + pause_us + 5200;
	return begin;
}

/* One switch of the thread, far from everything: its stays are recorded. */
static void known(struct scene *s)
{
	scene_stay(s, VICTIM, -1000000, 100, 0, 0, 0, "");
}

static void test_healthy(void **state)
{
	SCENE;
	int64_t at = 0;

	known(&s);
	for (int i = 0; i < STEPS; i++)
		step(&s, &at, 200 + (int64_t)scene_random(&s, 200));
	ANSWER a = explain(&s);
	assert_int_equal(a.count, 0);
}

static void test_loader(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(&s, &at, 20000);

		scene_stay(&s, VICTIM, p + 50, 19900, 20, 0, 0, "");
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_STARVATION);
	assert_non_null(i);
	assert_int_equal(a.count, 1);
	assert_int_equal(i->severity, SEVERITY_HIGH);
	assert_int_equal(i->count, STEPS - 1);
	assert_string_equal(i->unit, "pauses");
	assert_int_equal(i->period_steps, 0);
	assert_int_equal(i->causes[0].cause, CAUSE_ASLEEP);
	assert_true(i->explained < 0.05); /* that it slept does not say why */
	assert_contains(i->summary, "sleeps");
}

/* An allocation right after the wait gives the GPU nothing to do; a launch does. */
static void test_a_call_without_work_before_the_pause(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		int64_t p = at;

		scene_call(&s, CUDA_MALLOC, p + 20, 10);
		step(&s, &at, 20000);
		scene_stay(&s, VICTIM, p + 50, 19900, 20, 0, 0, "");
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_STARVATION);
	assert_non_null(i);
	assert_int_equal(i->count, STEPS);
	for (size_t k = 0; k < s.event_count; k++)
		if (s.events[k].op == CUDA_MALLOC && s.events[k].source == SOURCE_CUDA)
			s.events[k].op = CUDA_LAUNCH;
	ANSWER b = explain(&s);
	assert_null(find(&b, PROBLEM_STARVATION));
}

/* A server: the same sleeps, at random times and without a pattern of waits. */
static void test_idle_server(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		int64_t pause = 2000 + (int64_t)scene_random(&s, 200000), p = step(&s, &at, pause);

		s.events[s.event_count - 1].stream = 1 + scene_random(&s, 9);
		scene_stay(&s, VICTIM, p + 50, pause - 100, 20, 0, 0, "");
	}
	ANSWER a = explain(&s);
	for (size_t i = 0; i < a.count; i++)
		assert_int_equal(a.list[i].severity, SEVERITY_LOW);
}

static void checkpoint(struct scene *s, int64_t p)
{
	scene_stay(s, VICTIM, p + 5000, 34000, 100, WIRE_UNINTERRUPTIBLE, 0, "");
	scene_io(s, IO_WRITE, VICTIM, "python3", p + 5000, 20000, 16384);
}

static void test_checkpoint(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(&s, &at, k % 14 == 13 && k != 41 ? 40000 : 300);

		if (k % 14 == 13 && k != 41)
			checkpoint(&s, p);
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_CHECKPOINT);
	assert_non_null(i);
	assert_null(find(&a, PROBLEM_STARVATION));
	assert_int_equal(i->period_steps, 14);
	assert_true(i->period_confidence > 0.5);
	assert_int_equal(i->severity, SEVERITY_HIGH);
	assert_contains(i->summary, "every 14 steps");
	assert_contains(i->summary, "16 MiB");
}

/* Of every second one only the discarding of the old file is in the process's own name: the writes
 * are others'. They are checkpoints all the same, and told once. */
static void test_checkpoint_written_by_others(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(&s, &at, k % 14 == 13 ? 40000 : 300);

		if (k % 28 == 13)
			checkpoint(&s, p);
		if (k % 28 != 27)
			continue;
		scene_stay(&s, VICTIM, p + 5000, 34000, 100, WIRE_UNINTERRUPTIBLE, 0, "");
		scene_io(&s, IO_DISCARD, VICTIM, "python3", p + 5000, 20000, 8);
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_CHECKPOINT);
	assert_non_null(i);
	assert_null(find(&a, PROBLEM_STARVATION));
	assert_int_equal(i->period_steps, 14);
}

/* The same writes, now and then: starvation, not a checkpoint. */
static void test_writes_at_random(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		bool slow = k > 2 && scene_random(&s, 14) == 0;
		int64_t p = step(&s, &at, slow ? 40000 : 300);

		if (slow)
			checkpoint(&s, p);
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_STARVATION);
	assert_non_null(i);
	assert_null(find(&a, PROBLEM_CHECKPOINT));
	assert_int_equal(i->period_steps, 0);
	assert_contains(i->summary, "writes to disk");
}

/* Somebody else writes all the time; this process computes between its calls. */
static void test_a_neighbours_disk_is_not_blamed(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	known(&s);
	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(&s, &at, k % 10 == 9 ? 30000 : 300);

		scene_io(&s, IO_WRITE, HOG, "hog", p, 5000, 4096);
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_STARVATION);
	assert_non_null(i);
	assert_null(find(&a, PROBLEM_CHECKPOINT));
	assert_int_equal(i->period_steps, 10);
	assert_int_equal(i->causes[0].cause, CAUSE_HOST_CODE);
	assert_int_equal(i->causes[0].culprit_pid, 0);
	assert_contains(i->summary, "host code");
	assert_contains(i->explanation, "this may be garbage collection; that is not");
}

static void ask(struct scene *s, int64_t pause_us)
{
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(s, &at, pause_us);
		struct event *e =
			scene_add(s, SOURCE_NET, NET_RECV, VICTIM, VICTIM, p + 30, pause_us - 60);

		e->wait_ns = (uint64_t)(pause_us - 100) * 1000;
		scene_stay(s, VICTIM, p + 40, pause_us - 90, 10, 0, 0, "");
	}
}

static void test_network(void **state)
{
	SCENE;

	ask(&s, 4000);
	ANSWER a = explain(&s);
	assert_non_null(find(&a, PROBLEM_TOOL_CALLS));
	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->causes[0].cause, CAUSE_NETWORK);
	assert_true(a.list->explained > 0.9);

	scene_done(&s);
	ask(&s, 30000);
	ANSWER b = explain(&s);
	assert_non_null(find(&b, PROBLEM_AGENT_COST));
	assert_int_equal(b.count, 1);
	assert_contains(b.list->summary, "indirect");
}

static void test_cpu_contention_in_pauses(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(&s, &at, 10000);

		scene_stay(&s, VICTIM, p + 100, 9800, 9800, WIRE_PREEMPTED, HOG, "hog");
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_STARVATION);
	assert_non_null(i);
	assert_int_equal(i->causes[0].culprit_pid, HOG);
	assert_contains(i->summary, "mostly hog (pid 8821)");
}

static void test_reclaim(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	known(&s);
	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(&s, &at, 10000);

		scene_add(&s, SOURCE_HOST, HOST_DIRECT_RECLAIM, VICTIM, VICTIM, p + 100, 9000);
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_STARVATION);
	assert_non_null(i);
	assert_int_equal(i->causes[0].cause, CAUSE_RECLAIM);
	assert_contains(i->summary, "reclaim memory");
}

/* Another thread of the process calls in every pause: the GPU has work. */
static void test_other_thread_has_work(void **state)
{
	SCENE;
	int64_t at = 0;

	known(&s);
	for (int k = 0; k < STEPS; k++) {
		int64_t p = step(&s, &at, 10000);

		scene_add(&s, SOURCE_CUDA, CUDA_LAUNCH, VICTIM, VICTIM + 1, p + 5000, 10);
	}
	ANSWER a = explain(&s);
	assert_null(find(&a, PROBLEM_STARVATION));
}

/* Long times between calls that nobody marked: calls in between may not have been stored. */
static void test_unmarked_pauses_are_none(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++) {
		step(&s, &at, 20000);
		s.events[s.event_count - 2].flags = 0;
	}
	ANSWER a = explain(&s);
	assert_int_equal(a.count, 0);
}

static void test_no_switches_no_host_code(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int k = 0; k < STEPS; k++)
		step(&s, &at, 20000);
	ANSWER a = explain(&s);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.list->severity, SEVERITY_LOW);
	assert_int_equal(a.list->causes[0].cause, CAUSE_UNEXPLAINED);
}

static void swap_scene(struct scene *s, int every, uint64_t mib)
{
	int64_t at = 0;

	known(s);
	for (int k = 0; k < STEPS; k++) {
		if (every && k % every == every - 1) {
			scene_io(s, IO_READ, VICTIM, "python3", at + 100, 60000, 131072);
			scene_stay(s, VICTIM, at + 100, 60000, 10, WIRE_UNINTERRUPTIBLE, 0, "");
			step(s, &at, 70000);
			s->events[s->event_count - 2].dur_ns = 60000000;
			s->events[s->event_count - 1].start.ns += 60000000;
			s->events[s->event_count - 2].arg0 = mib << 20;
			at += 60000;
		} else {
			step(s, &at, 300);
			s->events[s->event_count - 2].arg0 = every ? 1 << 20 : mib << 20;
		}
		s->events[s->event_count - 2].arg1 = 1;
	}
}

static void test_model_swap(void **state)
{
	SCENE;
	const struct incident *i;

	swap_scene(&s, 25, 512);
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_MODEL_SWAP);
	assert_non_null(i);
	assert_null(find(&a, PROBLEM_STARVATION)); /* not told twice */
	assert_int_equal(i->count, 8);
	assert_int_equal(i->period_steps, 25);
	assert_int_equal(i->severity, SEVERITY_HIGH);
	assert_contains(i->summary, "512 MiB");

	scene_done(&s);
	swap_scene(&s, 0, 512); /* as much in every step: that is its batch */
	ANSWER b = explain(&s);
	assert_null(find(&b, PROBLEM_MODEL_SWAP));
}

static void test_hostile(void **state)
{
	SCENE;
	int64_t at = 0;

	ANSWER none = explain(&s);
	assert_int_equal(none.count, 0);
	scene_call(&s, CUDA_MEMCPY, 0, 10)->flags = WIRE_AFTER_GAP;
	ANSWER one = explain(&s);
	assert_int_equal(one.count, 0);
	for (int k = 0; k < STEPS; k++) {
		step(&s, &at, 20000);
		if (k % 3 == 0)
			s.events[s.event_count - 1].start.ns = INT64_MAX - k;
		if (k % 5 == 0)
			s.events[s.event_count - 1].dur_ns = UINT64_MAX - (uint64_t)k;
		if (k % 7 == 0)
			s.events[s.event_count - 2].arg0 = UINT64_MAX;
		s.events[s.event_count - 2].arg1 = 1;
		scene_stay(&s, VICTIM, at, INT64_MAX / 2000, 0, 0, 0, "");
	}
	for (size_t i = 0; i + 1 < s.event_count; i += 2) { /* out of order */
		struct event e = s.events[i];

		s.events[i] = s.events[s.event_count - 1 - i];
		s.events[s.event_count - 1 - i] = e;
	}
	ANSWER a = explain(&s);
	assert_true(a.count <= CORRELATE_INCIDENTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_loader),
		cmocka_unit_test(test_a_call_without_work_before_the_pause),
		cmocka_unit_test(test_idle_server),
		cmocka_unit_test(test_checkpoint),
		cmocka_unit_test(test_checkpoint_written_by_others),
		cmocka_unit_test(test_writes_at_random),
		cmocka_unit_test(test_a_neighbours_disk_is_not_blamed),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_cpu_contention_in_pauses),
		cmocka_unit_test(test_reclaim),
		cmocka_unit_test(test_other_thread_has_work),
		cmocka_unit_test(test_unmarked_pauses_are_none),
		cmocka_unit_test(test_no_switches_no_host_code),
		cmocka_unit_test(test_model_swap),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
