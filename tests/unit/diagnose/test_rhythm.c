/* SPDX-License-Identifier: Apache-2.0 */
/* test_rhythm.c - what comes every so many steps is told from what comes by chance, and faults from work that
 * varies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "diagnose/contrasts/rhythm.h"
#include "base/macros.h"

#define STEPS    400
#define ORDINARY (10 * NS_PER_MS)
#define SLOW     (30 * NS_PER_MS)
#define LIMIT    (17 * NS_PER_MS)

struct run {
	struct step_span spans[STEPS];
	struct step_facts facts[STEPS];
	size_t count;
};

static void add(struct run *r, uint64_t dur_ns)
{
	r->facts[r->count++] = (struct step_facts){
		.dur_ns = dur_ns, .class = dur_ns >= LIMIT ? STEP_SLOW : STEP_ORDINARY};
}

static struct rhythm find(const struct run *r, uint32_t group)
{
	struct rhythm found;

	assert_int_equal(rhythm_find(r->spans, r->facts, r->count, group, &found), 0);
	return found;
}

/* 0 <= x < 1, the same in each run. */
static double next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) / 16777216.0;
}

/* @slow slow steps of every @period; the first half of the run has none. */
static struct run periodic(int period, int slow)
{
	struct run r = {0};

	for (int i = 0; i < STEPS; i++)
		add(&r, i >= STEPS / 2 && i % period < slow ? SLOW : ORDINARY);
	return r;
}

static void test_every_so_many_steps(void **state)
{
	static const struct {
		int period, slow;
	} cases[] = {{4, 1}, {20, 1}, {40, 1}, {3, 2}, {4, 3}, {20, 4}, {40, 8}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run r = periodic(cases[i].period, cases[i].slow);
		struct rhythm found = find(&r, 1);

		assert_int_equal(found.period_steps, cases[i].period);
		assert_true(found.period_confidence > 0.95);
		assert_false(found.is_varied);
	}
}

/* With slow steps at random, more than half of the distances between stretches are near the usual one. */
static void test_chance_is_no_period(void **state)
{
	int periods = 0, runs = 0;

	for (int percent = 40; percent <= 70; percent += 5)
		for (uint32_t seed = 1; seed <= 20; seed++) {
			struct run r = {0};
			uint32_t at = seed;

			for (int i = 0; i < STEPS; i++)
				add(&r, next_random(&at) * 100 < percent ? SLOW : ORDINARY);
			periods += find(&r, 1).period_steps > 0;
			runs++;
		}
	assert_true(periods * 10 <= runs); /* one in 20 and some */
}

static void test_a_long_stretch_is_no_period(void **state)
{
	struct run r = periodic(30, 12);

	assert_int_equal(find(&r, 1).period_steps, 0);
	assert_int_equal(find(&r, 4).period_steps, 30); /* three groups */
}

/* Along a cosine from 5 to 40 ms, @times times. */
static struct run waves(double times)
{
	struct run r = {0};

	for (int i = 0; i < STEPS; i++)
		add(&r, (uint64_t)((22.5 - 17.5 * cos(6.2831853 * times * i / STEPS)) * NS_PER_MS));
	return r;
}

static void test_waves_are_varied(void **state)
{
	struct run r = waves(6);

	assert_true(find(&r, 1).is_varied);
	assert_false(find(&r, 1).is_proportional);
	assert_int_equal(find(&r, 1).period_steps, 0);
	assert_false(find(&r, 8).is_varied); /* steps of a group differ anyway */
}

/* In five stages, and then all lengths or the longest one since a moment. */
static void test_stages(void **state)
{
	static const uint64_t stages[] = {5, 8, 12, 20, 30};
	struct run r = {0};
	uint32_t seed = 7;

	for (int i = 0; i < STEPS; i++)
		add(&r, stages[MIN(i * 10 / STEPS, 4)] * NS_PER_MS);
	assert_true(find(&r, 1).is_staged);
	r = (struct run){0};
	for (int i = 0; i < STEPS; i++)
		add(&r, i < STEPS / 2 ? ORDINARY
				      : (uint64_t)((10 + 20 * next_random(&seed)) * NS_PER_MS));
	assert_false(find(&r, 1).is_staged);
	r = (struct run){0};
	for (int i = 0; i < STEPS; i++)
		add(&r, i < STEPS / 2 ? ORDINARY : SLOW);
	assert_false(find(&r, 1).is_staged);
}

static void test_what_comes_once_is_not_varied(void **state)
{
	struct run r = waves(0.5);

	assert_false(find(&r, 1).is_varied);
}

/* All lengths, but not before half of the run. */
static void test_what_begins_late_is_not_varied(void **state)
{
	struct run r = {0};
	uint32_t seed = 7;

	for (int i = 0; i < STEPS; i++)
		add(&r, i < STEPS / 2 ? ORDINARY
				      : (uint64_t)((10 + 20 * next_random(&seed)) * NS_PER_MS));
	assert_false(find(&r, 1).is_varied);
}

static void test_two_lengths_are_not_varied(void **state)
{
	struct run r = periodic(20, 10);

	assert_false(find(&r, 1).is_varied);
}

/* Steps of 5 to 50 ms at random. */
static struct run random_lengths(void)
{
	struct run r = {0};
	uint32_t seed = 7;

	for (int i = 0; i < STEPS; i++)
		add(&r, (uint64_t)((5 + 45 * next_random(&seed)) * NS_PER_MS));
	return r;
}

static void test_more_of_the_same(void **state)
{
	struct run r = random_lengths();

	for (int i = 0; i < STEPS; i++)
		r.spans[i].waits = r.facts[i].dur_ns / 250000;
	assert_true(find(&r, 1).is_varied);
	assert_true(find(&r, 1).is_proportional);
	for (int i = 0; i < STEPS; i++) {
		r.spans[i].waits = 1;
		r.spans[i].launches = i % 8 ? 0 : r.facts[i].dur_ns / 25000; /* seldom probed */
	}
	assert_true(find(&r, 1).is_proportional);
}

static void test_the_same_work_is_not_more(void **state)
{
	struct run r = random_lengths();
	uint32_t seed = 3;

	for (int i = 0; i < STEPS; i++)
		r.spans[i].waits = 100 + (uint64_t)(next_random(&seed) * 10);
	assert_true(find(&r, 1).is_varied);
	assert_false(find(&r, 1).is_proportional);
}

/* Waits that most of the length is not made of: they grow ten times as much as it does. */
static void test_many_more_waits_are_not_the_same_work(void **state)
{
	struct run r = random_lengths();

	for (int i = 0; i < STEPS; i++)
		r.spans[i].waits = 1 + (r.facts[i].dur_ns > LIMIT ? r.facts[i].dur_ns - LIMIT : 0) /
					       (NS_PER_MS / 4);
	assert_false(find(&r, 1).is_proportional);
}

static void test_nothing_at_all(void **state)
{
	struct run none = {0}, r = periodic(STEPS, 0);

	assert_int_equal(find(&none, 1).period_steps, 0);
	assert_int_equal(find(&r, 1).period_steps, 0);
	assert_false(find(&r, 1).is_varied);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_so_many_steps),
		cmocka_unit_test(test_chance_is_no_period),
		cmocka_unit_test(test_a_long_stretch_is_no_period),
		cmocka_unit_test(test_waves_are_varied),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_what_comes_once_is_not_varied),
		cmocka_unit_test(test_what_begins_late_is_not_varied),
		cmocka_unit_test(test_two_lengths_are_not_varied),
		cmocka_unit_test(test_more_of_the_same),
		cmocka_unit_test(test_the_same_work_is_not_more),
		cmocka_unit_test(test_many_more_waits_are_not_the_same_work),
		cmocka_unit_test(test_nothing_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
