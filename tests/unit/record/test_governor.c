/* SPDX-License-Identifier: Apache-2.0 */
/* test_governor.c - a made-up job is played: what its launches cost stays within the budget, windows come at all
 * moments, and all launches are probed again when there are few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/trace/governor.h"
#include "base/macros.h"

#define HIT_NS  1000
#define STEP_NS (5 * NS_PER_MS)

struct play {
	struct governor g;
	mono_time now;
	bool is_open;
	double probed, left;  /* launches */
	uint64_t open_ns, ns; /* since begun */
	int windows;
};

static void begin(struct play *p, double budget, bool can_switch)
{
	*p = (struct play){.is_open = true, .now.ns = NS_PER_S};
	governor_init(&p->g, budget, HIT_NS, can_switch, 42, p->now);
}

/* @seconds with @rate launches a second. */
static void play(struct play *p, double rate, double seconds)
{
	p->open_ns = p->ns = 0;
	p->probed = 0;
	p->windows = 0;
	while (p->ns < (uint64_t)(seconds * (double)NS_PER_S)) {
		double made = p->left + rate * (double)STEP_NS / (double)NS_PER_S;
		uint64_t seen = p->is_open ? (uint64_t)made : 0;
		bool was = p->is_open;

		p->left = p->is_open ? made - (double)seen : 0;
		p->probed += (double)seen;
		p->now.ns += STEP_NS;
		p->ns += STEP_NS;
		p->open_ns += p->is_open ? STEP_NS : 0;
		p->is_open = governor_step(&p->g, p->now, seen, p->is_open);
		p->windows += p->is_open && !was;
	}
}

static double cost(const struct play *p)
{
	return p->probed * HIT_NS / (double)p->ns;
}

static void few_launches_are_always_probed(void **state)
{
	struct play p;

	begin(&p, 0.01, true);
	play(&p, 9000, 60); /* 0.9 % */
	assert_true(p.open_ns == p.ns);
}

static void a_short_burst_is_probed_whole(void **state)
{
	struct play p;

	begin(&p, 0.01, true);
	play(&p, 100, 5);
	play(&p, 90000, 0.1);
	assert_true(p.open_ns == p.ns);
}

static void many_launches_stay_within_the_budget(void **state)
{
	static const double rates[] = {15000, 50000, 200000, 700000};

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct play p;

		begin(&p, 0.01, true);
		play(&p, rates[i], 2);
		assert_true(cost(&p) < 0.02); /* with the credit of the first second */
		play(&p, rates[i], 60);
		assert_true(cost(&p) < 0.0115 && cost(&p) > 0.003);
		assert_true(p.windows > 25);
	}
}

static void a_job_with_a_rhythm_is_met_at_all_of_its_moments(void **state)
{
	int at[10] = {0}, seen = 0;
	struct play p;

	begin(&p, 0.01, true);
	play(&p, 50000, 2);
	for (int i = 0; i < 50000; i++) {
		play(&p, 50000, 0.005);
		at[p.now.ns / (25 * NS_PER_MS) % 10] += p.is_open; /* of a rhythm of 250 ms */
		seen += p.is_open;
	}
	for (int i = 0; i < 10; i++)
		assert_true(at[i] > 0.07 * seen && at[i] < 0.13 * seen);
}

static void a_window_that_is_far_too_dear_is_cut(void **state)
{
	struct play p;
	double before;

	begin(&p, 0.01, true);
	play(&p, 20000, 5);
	before = p.g.launch_rate;
	while (!p.is_open)
		play(&p, 20000, 0.005);
	play(&p, 3e6, 1);
	assert_true(cost(&p) < 0.2); /* 300 % if it stayed open */
	assert_true(p.g.launch_rate > 2 * before);
}

static void it_comes_back(void **state)
{
	struct play p;

	begin(&p, 0.01, true);
	play(&p, 100000, 5);
	assert_true(p.g.in_windows);
	play(&p, 100, 20);
	assert_false(p.g.in_windows);
	play(&p, 100, 5);
	assert_true(p.open_ns == p.ns);
}

static void what_others_cost_leaves_a_quarter_to_launches(void **state)
{
	struct play p;

	begin(&p, 0.01, true);
	governor_second(&p.g, 10, 50000, 1); /* 5 % for others */
	play(&p, 50000, 2);
	play(&p, 50000, 60);
	assert_true(cost(&p) > 0.001 && cost(&p) < 0.004);
	assert_true(p.g.overhead > 0.049);
}

static void without_a_limit_or_a_quick_switch_all_are_probed(void **state)
{
	struct play p;

	begin(&p, 0, true);
	play(&p, 1e6, 5);
	assert_true(p.open_ns == p.ns);
	begin(&p, 0.01, false);
	play(&p, 1e6, 5);
	assert_true(p.open_ns == p.ns);
	governor_second(&p.g, 1000000, 0, 1);
	assert_true(p.g.overhead > 0.99); /* it says so all the same */
}

static void a_comparison_moves_the_account_no_further_than_it_must(void **state)
{
	struct play p;

	begin(&p, 0.01, true);
	governor_learn(&p.g, 0.05, 0.2); /* of no load nothing is learnt */
	assert_true(p.g.launch_factor == 1);
	play(&p, 8000, 5);                 /* 0.8 % by hits x cost */
	governor_learn(&p.g, 0.002, 0.03); /* it may well be true */
	assert_true(p.g.launch_factor == 1);
	governor_learn(&p.g, 0.016, 0.03); /* twice as much at least */
	assert_true(p.g.launch_factor > 1.9 && p.g.launch_factor < 2.1);
	play(&p, 8000, 60);
	assert_true(p.g.in_windows);
	governor_learn(&p.g, 5, 6);
	assert_true(p.g.launch_factor <= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_launches_are_always_probed),
		cmocka_unit_test(a_short_burst_is_probed_whole),
		cmocka_unit_test(many_launches_stay_within_the_budget),
		cmocka_unit_test(a_job_with_a_rhythm_is_met_at_all_of_its_moments),
		cmocka_unit_test(a_window_that_is_far_too_dear_is_cut),
		cmocka_unit_test(it_comes_back),
		cmocka_unit_test(what_others_cost_leaves_a_quarter_to_launches),
		cmocka_unit_test(without_a_limit_or_a_quick_switch_all_are_probed),
		cmocka_unit_test(a_comparison_moves_the_account_no_further_than_it_must),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
