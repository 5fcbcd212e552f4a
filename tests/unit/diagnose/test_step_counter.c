/* SPDX-License-Identifier: Apache-2.0 */
/* test_step_counter.c - what steps took only grows, and every moment counts once, however the accounts of
 * successive looks are cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/live/step_counter.h"
#include "base/macros.h"

#define MS     ((int64_t)NS_PER_MS)
#define FORGET (300 * (int64_t)NS_PER_S)
#define BARS   64

/* A process whose steps take 100 ms each, from @from_ms to @to_ms, @each to a bar; host code is a tenth
 * of them, every tenth is slow. */
struct look {
	struct account_bar bars[BARS];
	struct step_account account;
	struct step_report report;
};

static const struct step_report *look_at(
	struct look *l, int64_t from_ms, int64_t to_ms, uint32_t each)
{
	*l = (struct look){.account = {.pid = 7, .comm = "train", .first.ns = from_ms * MS}};
	for (int64_t at = from_ms; at + 100 * each <= to_ms; at += 100 * each) {
		struct account_bar *b = &l->bars[l->account.bar_count++];

		assert_true(l->account.bar_count <= BARS);
		*b = (struct account_bar){.start.ns = at * MS,
			.dur_ns = 100 * each * NS_PER_MS,
			.steps = each,
			.slow_steps = each / 10};
		b->ns[ACCOUNT_HOST] = b->dur_ns / 10;
		b->ns[ACCOUNT_GPU] = b->dur_ns - b->ns[ACCOUNT_HOST];
	}
	l->account.bars = l->bars;
	l->report = (struct step_report){&l->account, 1};
	return &l->report;
}

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-6 * fmax(1, fabs(b)))
		fail_msg("%f is not %f", a, b);
}

static double ns_of(const struct step_count *s)
{
	double ns = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		ns += s->ns[i];
	return ns;
}

static wall_time at_ms(int64_t ms)
{
	return (wall_time){ms * MS};
}

static void counted_once(void **state)
{
	struct step_counter c = {0};
	struct look l;

	step_counter_update(&c, look_at(&l, 0, 20000, 10), at_ms(60000), FORGET);
	assert_int_equal(c.count, 1);
	assert_string_equal(c.items[0].comm, "train");
	assert_near(c.items[0].steps, 200);
	assert_near(c.items[0].slow_steps, 20);
	assert_near(c.items[0].ns[ACCOUNT_HOST], 2e9);
	assert_near(ns_of(&c.items[0]), 20e9);
	step_counter_update(&c, look_at(&l, 0, 20000, 10), at_ms(65000), FORGET);
	assert_near(c.items[0].steps, 200);
	/* the window has moved, its bars have other edges, one step more is there */
	step_counter_update(&c, look_at(&l, 5300, 20100, 4), at_ms(70000), FORGET);
	assert_near(c.items[0].steps, 201);
	assert_near(ns_of(&c.items[0]), 20.1e9);
	assert_int_equal(c.items[0].since.ns, 0);
	/* older ones do not count again */
	step_counter_update(&c, look_at(&l, 0, 10000, 7), at_ms(75000), FORGET);
	assert_near(c.items[0].steps, 201);
}

static void only_what_is_settled(void **state)
{
	struct step_counter c = {0};
	struct look l;
	double before = 0;

	for (int64_t now = 1000; now <= 40000; now += 700) {
		step_counter_update(
			&c, look_at(&l, MAX(now - 20000, (int64_t)0), now, 5), at_ms(now), FORGET);
		if (!c.count || !c.items[0].steps)
			continue;
		assert_true(c.items[0].steps >= before);
		assert_true(c.items[0].until.ns <= now * MS - STEP_COUNTER_SETTLE_NS);
		assert_near(
			ns_of(&c.items[0]), (double)(c.items[0].until.ns - c.items[0].since.ns));
		before = c.items[0].steps;
	}
	assert_true(before > 300);
}

static void silent_ones_are_forgotten(void **state)
{
	struct step_counter c = {0};
	struct step_report none = {0};
	struct look l;

	step_counter_update(&c, look_at(&l, 0, 20000, 10), at_ms(30000), FORGET);
	step_counter_update(&c, &none, at_ms(300000), FORGET);
	assert_int_equal(c.count, 1);
	step_counter_update(&c, &none, at_ms(330000), FORGET);
	assert_int_equal(c.count, 0);
}

static void many_processes(void **state)
{
	struct step_counter c = {0};
	struct look l;

	for (uint32_t pid = 1; pid <= STEP_COUNTER_MAX + 3; pid++) {
		look_at(&l, 0, 1000, 1);
		l.account.pid = pid;
		step_counter_update(&c, &l.report, at_ms(60000), FORGET);
	}
	assert_int_equal(c.count, STEP_COUNTER_MAX);
	assert_int_equal(c.left_out, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted_once),
		cmocka_unit_test(only_what_is_settled),
		cmocka_unit_test(silent_ones_are_forgotten),
		cmocka_unit_test(many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
