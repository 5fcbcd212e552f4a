/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_goodput.c - steps that became slower since a time, steps that are slow every so many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/problem.h"
#include "scene.h"

#define SCENE  _cleanup_(scene_done) struct scene s = {.seed = 1}
#define ANSWER _cleanup_(answer_done) struct answer

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

/* A step of @us, all of it in the wait that closes it, but 500 us. */
static int64_t step(struct scene *s, int64_t *at, int64_t us)
{
	int64_t begin = *at;

	us += (int64_t)scene_random(s, 200);
	scene_call(s, CUDA_STREAM_SYNC, begin + 500, us - 500);
	*at += us;
	return begin;
}

static void test_slower_since(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0, since = 0;

	for (int k = 0; k < 800; k++) {
		if (k == 500)
			since = at;
		step(&s, &at, k < 500 ? 25000 : 41000);
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_GOODPUT);
	assert_non_null(i);
	assert_int_equal(a.count, 1); /* the slow waits are the same story */
	assert_in_range(i->since.ns, SCENE_T0_NS + (since - 50000) * 1000,
		SCENE_T0_NS + (since + 50000) * 1000);
	assert_int_equal(i->severity, SEVERITY_HIGH);
	assert_in_range(i->count, 298, 301);
	assert_contains(i->summary, "steps take 41ms instead of 25ms, 64 % longer");
	assert_contains(i->explanation, "No other incident");
	assert_contains(i->fixes[0], "Record again"); /* the scene has calls alone */
	assert_contains(i->fixes[1], "explain --steps");
	assert_int_equal(i->fix_count, 2);
	assert_true(i->confidence > 0.9);
	assert_true(i->evidence_count > 0 && i->evidence_sql[0]);
}

static void test_candidates(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < 800; k++) {
		int64_t begin = step(&s, &at, k < 500 ? 25000 : 41000);

		if (k >= 500)
			scene_stay(&s, VICTIM, begin + 24500, 16000, 16000, WIRE_PREEMPTED, HOG,
				"hog");
	}
	ANSWER a = explain(&s);
	i = find(&a, PROBLEM_GOODPUT);
	assert_non_null(i);
	assert_non_null(find(&a, PROBLEM_CPU_CONTENTION));
	assert_contains(i->explanation, "hog (pid 8821)");
	assert_contains(i->fixes[0], "incidents that began at the same time");
	assert_true(i->explained > 0.6);
	assert_int_equal(i->severity, SEVERITY_LOW); /* the other tells why */
}

/* One rank of @nranks: its steps become 16 ms longer at the 500th, and @wait_us of each of its
 * collectives before and after are waits. */
static struct answer explain_rank(
	struct scene *s, int nranks, const int64_t wait_us[2], const char *node)
{
	static struct collective_row rows[800];
	struct recording rec;
	struct answer a = {0};
	int64_t at = 0;

	for (int k = 0; k < 800; k++) {
		int64_t begin = step(s, &at, k < 500 ? 25000 : 41000);

		rows[k] = (struct collective_row){.start.ns = SCENE_T0_NS + (begin + 100) * 1000,
			.dur_ns = 20000,
			.pid = VICTIM,
			.tid = VICTIM,
			.op = NCCL_ALL_REDUCE,
			.c = {.comm_hash = 0xabc,
				.seq = (uint64_t)k,
				.rank = 0,
				.nranks = nranks,
				.root = -1,
				.peer = -1,
				.wait_ns = wait_us[k >= 500] * 1000}};
		snprintf(rows[k].node, sizeof(rows[k].node), "%s", node);
	}
	scene_aggregate(s);
	rec = scene_recording(s);
	rec.collectives = rows;
	rec.collective_count = ARRAY_SIZE(rows);
	assert_int_equal(correlate_run(&rec, &a.list, &a.count), 0);
	return a;
}

static void test_waits_for_a_rank_elsewhere(void **state)
{
	SCENE;
	const struct incident *i;

	ANSWER a = explain_rank(&s, 4, (const int64_t[]){1000, 17000}, "gpu-1");
	i = find(&a, PROBLEM_GOODPUT);
	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_HIGH);
	assert_contains(i->root_cause, "waits for other ranks: 16ms more of each step after ");
	assert_contains(i->root_cause, "AllReduce (communicator 0000000000000abc), which is ");
	assert_contains(i->root_cause, "the late rank is not in this recording");
	assert_true(i->explained > 0.9);
	assert_true(i->confidence > 0.4 && i->confidence < 0.75);
	assert_contains(i->fixes[0], "ingero merge");
	assert_contains(i->explanation, "on this GPU");
}

/* The late rank itself waits no longer; all ranks here; rows of another node with the same pid. */
static void test_waits_for_nobody_elsewhere(void **state)
{
	const struct {
		int nranks;
		int64_t wait_us[2];
		const char *node;
	} rows[] = {{4, {1000, 1100}, "gpu-1"}, {4, {1000, 7000}, "gpu-1"},
		{4, {17000, 1000}, "gpu-1"}, {1, {1000, 17000}, "gpu-1"},
		{4, {1000, 17000}, "gpu-2"}, {4, {-1, -1}, "gpu-1"}};

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		SCENE;
		ANSWER a = explain_rank(&s, rows[k].nranks, rows[k].wait_us, rows[k].node);
		const struct incident *i = find(&a, PROBLEM_GOODPUT);

		assert_non_null(i);
		assert_contains(i->root_cause, "unknown");
		assert_true(i->explained < 0.1);
	}
}

static void test_no_shift(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int k = 0; k < 800; k++)
		step(&s, &at, 25000 + (int64_t)scene_random(&s, 3000));
	ANSWER noise = explain(&s);
	assert_null(find(&noise, PROBLEM_GOODPUT));

	scene_done(&s);
	for (int k = 0; k < 800; k++) /* a slow beginning, and a spell that is over */
		step(&s, &at, k < 20 || (k > 300 && k < 400) ? 60000 : 25000);
	ANSWER spell = explain(&s);
	for (size_t i = 0; i < spell.count; i++)
		assert_int_equal(spell.list[i].since.ns, 0);

	scene_done(&s);
	for (int k = 0; k < 800; k++) /* faster is no problem */
		step(&s, &at, k < 400 ? 41000 : 25000);
	ANSWER faster = explain(&s);
	for (size_t i = 0; i < faster.count; i++)
		assert_int_equal(faster.list[i].since.ns, 0);
}

static void test_every_14_steps(void **state)
{
	SCENE;
	const struct incident *i;
	int64_t at = 0;

	for (int k = 0; k < 800; k++)
		step(&s, &at, k % 14 == 5 && k != 33 ? 60000 : 20000);
	ANSWER a = explain(&s);
	assert_true(a.count >= 1);
	for (size_t k = 0; k < a.count; k++)
		assert_int_equal(a.list[k].period_steps, 14);
	i = &a.list[0];
	assert_contains(i->summary, "every 14 steps");
	assert_true(i->period_confidence > 0.8);
}

/* Slow at the same rate, but at random: no period. */
static void test_random_slow_steps(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int k = 0; k < 800; k++)
		step(&s, &at, scene_random(&s, 14) == 0 ? 60000 : 20000);
	ANSWER a = explain(&s);
	for (size_t i = 0; i < a.count; i++)
		assert_int_equal(a.list[i].period_steps, 0);
}

/* A hog makes every call slow and every second step slower still: that is one story. */
static void test_covered_slow_steps(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int k = 0; k < 800; k++) {
		bool hogged = k >= 300 && k < 500;
		int64_t us = !hogged ? 25000 : k % 2 ? 45000 : 34000;
		int64_t begin = step(&s, &at, us);

		if (hogged)
			scene_stay(&s, VICTIM, begin + 24500, us - 25000, us - 25000,
				WIRE_PREEMPTED, HOG, "hog");
	}
	ANSWER a = explain(&s);
	assert_true(a.count >= 1);
	assert_contains(a.list[0].summary, "hog");
	for (size_t i = 0; i < a.count; i++)
		assert_null(strstr(a.list[i].summary, "every 2 steps one"));
}

static void test_hostile(void **state)
{
	SCENE;
	int64_t at = 0;

	ANSWER none = explain(&s);
	assert_int_equal(none.count, 0);
	for (int k = 0; k < 800; k++) {
		step(&s, &at, k < 400 ? 25000 : 41000);
		if (k % 6 == 0)
			s.events[s.event_count - 1].dur_ns = UINT64_C(1) << (k % 64);
		if (k % 11 == 0)
			s.events[s.event_count - 1].start.ns = k % 2 ? INT64_MIN : INT64_MAX;
	}
	ANSWER a = explain(&s);
	assert_true(a.count <= CORRELATE_INCIDENTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slower_since),
		cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_waits_for_a_rank_elsewhere),
		cmocka_unit_test(test_waits_for_nobody_elsewhere),
		cmocka_unit_test(test_no_shift),
		cmocka_unit_test(test_every_14_steps),
		cmocka_unit_test(test_random_slow_steps),
		cmocka_unit_test(test_covered_slow_steps),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
