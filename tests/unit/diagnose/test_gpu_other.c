/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_other.c - who uses the GPU more while the steps of another are slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "diagnose/chains/gpu_other.h"
#include "base/clock.h"
#include "base/macros.h"

#define JOB 100
#define T0  INT64_C(1700000000000000000)

/* Ten seconds, the last five of them slow; each process has one row in each second. */
struct scene {
	struct account_bar bars[10];
	struct ledger_row rows[400];
	size_t count;
	struct step_account account;
};

static void scene_init(struct scene *s)
{
	*s = (struct scene){0};
	for (int i = 0; i < 10; i++)
		s->bars[i] = (struct account_bar){.start.ns = T0 + i * (int64_t)NS_PER_S,
			.dur_ns = NS_PER_S,
			.steps = 10,
			.slow_steps = i < 5 ? 0 : 10};
	s->account = (struct step_account){.pid = JOB, .bars = s->bars, .bar_count = 10};
}

struct doing { /* in a second, before and since */
	uint64_t wait_ms[2], megabytes[2];
};

static void process(struct scene *s, uint32_t pid, struct doing d)
{
	for (int i = 0; i < 10; i++) {
		struct ledger_row *r = &s->rows[s->count++];
		uint64_t wait = d.wait_ms[i >= 5] * NS_PER_MS;

		*r = (struct ledger_row){.start.ns = T0 + i * (int64_t)NS_PER_S,
			.dur_ns = NS_PER_S,
			.pid = pid,
			.tid = pid,
			.copy_bytes = d.megabytes[i >= 5] * 1000000};
		r->ns[LEDGER_GPU_WAIT] = wait;
		r->ns[LEDGER_SLEEP] = NS_PER_S - wait;
		snprintf(r->comm, sizeof(r->comm), "p%u", pid);
	}
}

static struct gpu_others find(struct scene *s)
{
	struct recording rec = {.ledger = s->rows, .ledger_count = s->count};
	struct gpu_others o;

	gpu_others_find(&rec, &s->account, &o);
	return o;
}

static void test_who_is_one(void **state)
{
	static const struct {
		struct doing d;
		int count;
		bool is_new;
	} rows[] = {
		{{{0, 990}, {0, 14000}}, 1, true},
		{{{0, 0}, {0, 14000}}, 1, true}, /* copies that nobody waits for */
		{{{0, 990}, {0, 0}}, 1, true},
		{{{600, 900}, {0, 0}}, 1, false}, /* it may be held up itself */
		{{{0, 50}, {0, 100}}, 0, false},
		{{{900, 900}, {9000, 9000}}, 0, false},
		{{{900, 100}, {9000, 100}}, 0, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scene s;
		struct gpu_others o;

		scene_init(&s);
		process(&s, JOB, (struct doing){{100, 900}, {10000, 40000}});
		process(&s, 7, rows[i].d);
		o = find(&s);
		assert_int_equal(o.count, rows[i].count);
		assert_int_equal(o.is_new, rows[i].is_new);
		assert_int_equal(o.named[0].pid, rows[i].count ? 7 : 0);
	}
}

static void test_many(void **state)
{
	struct scene s;
	struct gpu_others o;

	scene_init(&s);
	for (uint32_t i = 0; i < 38; i++)
		process(&s, 1 + i, (struct doing){{0, 500 + i}, {0, 1000}});
	o = find(&s);
	assert_int_equal(o.count, 32); /* as many as it looks at */
	assert_int_equal(o.named[0].pid, 32);
	assert_int_equal(o.named[1].pid, 31);
	assert_int_equal(o.named[2].pid, 30);
	assert_string_equal(o.named[0].comm, "p32");
	assert_float_equal(o.named[0].rate[PACE_SLOW], 1e9, 1e6);
}

static void test_nothing_to_compare_with(void **state)
{
	struct scene s;

	scene_init(&s);
	process(&s, 7, (struct doing){{0, 990}, {0, 0}});
	s.account.bar_count = 5; /* no slow ones */
	assert_int_equal(find(&s).count, 0);
	s.account.bar_count = 0;
	assert_int_equal(find(&s).count, 0);
	assert_int_equal(pace_at(&s.account, T0), PACE_MIXED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_one),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_nothing_to_compare_with),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
