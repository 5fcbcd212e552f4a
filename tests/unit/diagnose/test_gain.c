/* SPDX-License-Identifier: Apache-2.0 */
/* test_gain.c - what a fix is worth: never more than there is, alone or together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "diagnose/compose/gain.h"

#define MS UINT64_C(1000000)

static struct gain of(
	const struct step_account *a, const struct delay_list *all, int i, uint64_t busy_ns)
{
	struct gain g;

	gain_of(a, &all->items[i], 1 - all->unknown,
		&(struct gain_facts){.busy_ns = busy_ns, .here = 1}, &g);
	assert_true(g.least_ns <= g.fixed_ns && g.fixed_ns <= g.most_ns && g.most_ns <= g.unit_ns);
	return g;
}

static void a_slow_step_without_its_delay(void **state)
{
	struct step_mark marks[] = {
		{.dur_ns = 42 * MS}, {.dur_ns = 46 * MS}, {.dur_ns = 174 * MS, .is_slow = true}};
	struct step_account a = {.ordinary_step_ns = 44 * MS,
		.slow_step_ns = 174 * MS,
		.lost_ns = 1,
		.marks = marks,
		.mark_count = 3};
	struct delay_list all = {.items = {{.kind = DELAY_BY_GPU, .share = 1}}, .count = 1};
	struct gain g = of(&a, &all, 0, 0);

	assert_int_equal(g.unit_ns, 174 * MS);
	assert_int_equal(g.fixed_ns, 44 * MS);
	assert_int_equal(g.least_ns, 42 * MS);
	assert_int_equal(g.most_ns, 46 * MS);
}

static void several_lead_back_to_the_ordinary(void **state)
{
	struct step_account a = {
		.ordinary_step_ns = 100 * MS, .slow_step_ns = 300 * MS, .lost_ns = 1};
	struct delay_list all = {.items = {{.kind = DELAY_BY_CPU, .share = 0.5},
					 {.kind = DELAY_BY_UNKNOWN, .share = 0.2},
					 {.kind = DELAY_BY_DISK, .share = 0.3}},
		.count = 3,
		.unknown = 0.2};
	struct gain cpu = of(&a, &all, 0, 0), disk = of(&a, &all, 2, 0);
	struct gain unknown = of(&a, &all, 1, 0);

	assert_true(cpu.unit_ns - cpu.fixed_ns + disk.unit_ns - disk.fixed_ns <= 200 * MS + 1);
	assert_int_equal(cpu.fixed_ns, 175 * MS);
	assert_int_equal(cpu.most_ns, 200 * MS); /* if nothing unknown is its */
	assert_int_equal(unknown.unit_ns, 0);    /* what is not known cannot be mended */
}

/* Of what waits for somebody else ordinary units may have some as well, of host code it is their own. */
static void ordinary_units_may_gain_too(void **state)
{
	struct step_account a = {
		.ordinary_step_ns = 100 * MS, .slow_step_ns = 300 * MS, .lost_ns = 1};
	struct delay_list all = {.items = {{.kind = DELAY_BY_NETWORK,
					 .ordinary_ns = 70 * MS,
					 .slow_ns = 270 * MS,
					 .share = 1}},
		.count = 1};

	assert_int_equal(of(&a, &all, 0, 0).least_ns, 30 * MS);
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 100 * MS);
	all.items[0].kind = DELAY_BY_HOST;
	assert_int_equal(of(&a, &all, 0, 0).least_ns, 100 * MS);
}

static void the_gpu_bounds_it(void **state)
{
	struct step_account a = {.ordinary_step_ns = 100 * MS, .ordinary_bytes = 120e6};
	struct delay_list all = {
		.items = {{.kind = DELAY_BY_GC, .slow_ns = 80 * MS, .share = 0.8}}, .count = 1};
	struct gain g = of(&a, &all, 0, 0);

	assert_int_equal(g.fixed_ns, 60 * MS);
	assert_int_equal(
		g.most_ns, 100 * MS); /* nobody waits for the GPU: it may work all the time */
	a.ordinary_ns[ACCOUNT_GPU] = 15 * MS;
	g = of(&a, &all, 0, 0);
	assert_int_equal(g.fixed_ns, 20 * MS);
	assert_int_equal(g.most_ns, 60 * MS); /* how much the GPU does meanwhile is not known */
	g = of(&a, &all, 0, 5 * MS);
	assert_int_equal(g.most_ns, 20 * MS);
	g = of(&a, &all, 0, 50 * MS);
	assert_int_equal(g.fixed_ns, 50 * MS);
	assert_int_equal(g.least_ns, 20 * MS);
	g = of(&a, &all, 0, 200 * MS);
	assert_int_equal(g.fixed_ns, 100 * MS);
	all.items[0].kind = DELAY_BY_COPY; /* the bytes still take their time on the link */
	g = of(&a, &all, 0, 5 * MS);
	assert_int_equal(g.most_ns, 30 * MS);
	all.items[0].kind = DELAY_BY_GPU; /* shorter work of the GPU itself: half of it goes */
	all.items[0].end = (struct resource_use){.resource = RESOURCE_PRECISION, .share = 0.5};
	g = of(&a, &all, 0, 95 * MS);
	assert_int_equal(g.fixed_ns, 60 * MS);
	assert_int_equal(g.most_ns, 80 * MS);
	all.items[0].kind = DELAY_BY_HOST; /* what is not at the place that is named may stay */
	gain_of(&a, &all.items[0], 1, &(struct gain_facts){.busy_ns = 5 * MS, .here = 0.85}, &g);
	assert_int_equal(g.fixed_ns, 32 * MS);
	assert_int_equal(g.least_ns, 20 * MS);
	all.items[0].slow_ns =
		60 * MS; /* what else is done there goes along, what may be there perhaps */
	gain_of(&a, &all.items[0], 1,
		&(struct gain_facts){.busy_ns = 5 * MS,
			.busy_error_ns = 40 * MS,
			.here = 1,
			.beside_ns = 10 * MS,
			.unplaced_ns = 20 * MS},
		&g);
	assert_int_equal(g.fixed_ns, 30 * MS);
	assert_int_equal(g.least_ns, 10 * MS);
	/* If the GPU is busier than its readings say, and a tenth of the work is to be done in another way. */
	assert_int_equal(g.most_ns, 52 * MS);
	all.items[0].kind = DELAY_BY_GC;
	all.items[0].slow_ns = 300 * MS; /* a damaged account */
	g = of(&a, &all, 0, 0);
	assert_int_equal(g.fixed_ns, 0);
}

static void a_short_step_bounds_the_gpus_work(void **state)
{
	struct step_mark marks[8];
	struct step_account a = {
		.ordinary_step_ns = 100 * MS, .marks = marks, .mark_count = 8, .group = 1};
	struct delay_list all = {
		.items = {{.kind = DELAY_BY_GC, .slow_ns = 80 * MS, .share = 0.8}}, .count = 1};

	for (int i = 0; i < 8; i++)
		marks[i] = (struct step_mark){.dur_ns = (uint64_t)(i < 3 ? 28 + i : 140) * MS};
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 25 * MS); /* 20 to 30 */
	a.group = 4; /* the GPU is waited for once in four */
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 60 * MS);
	a.group = 1;
	assert_int_equal(of(&a, &all, 0, 50 * MS).fixed_ns, 50 * MS); /* readings say more */
}

/* A wait that is a good part of what is left without the delay is for work that is given after it; else the GPU may have
 * worked meanwhile. */
static void what_is_left_of_a_wait(void **state)
{
	struct step_account a = {.ordinary_step_ns = 50 * MS};
	struct delay_list all = {
		.items = {{.kind = DELAY_BY_NETWORK, .slow_ns = 44 * MS, .share = 0.88}},
		.count = 1};

	a.ordinary_ns[ACCOUNT_GPU] = 3 * MS;
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 6 * MS);
	a.ordinary_ns[ACCOUNT_GPU] = MS;
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 28 * MS); /* 6 to 50 */
	all.items[0].slow_ns = 20 * MS;                         /* of the rest it is little */
	all.items[0].share = 0.4;
	a.ordinary_ns[ACCOUNT_GPU] = 6 * MS;
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 30 * MS);
}

/* The GPU does not work before it is given something, nor after a wait for all of it. */
static void what_the_gpu_has_to_do(void **state)
{
	struct step_account a = {.ordinary_step_ns = 50 * MS, .ordinary_open_ns = 10e6};
	struct delay_list all = {
		.items = {{.kind = DELAY_BY_NETWORK, .slow_ns = 44 * MS, .share = 0.88}},
		.count = 1};
	struct gain g = of(&a, &all, 0, 0);

	assert_int_equal(g.fixed_ns, 8 * MS); /* 6 to 10 */
	assert_int_equal(g.most_ns, 10 * MS);
	a.ordinary_open_ns = 4e6;
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 6 * MS);
	assert_int_equal(of(&a, &all, 0, 0).most_ns, 6 * MS);
	a.ordinary_open_ns = 50e6;
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 28 * MS);
	assert_int_equal(of(&a, &all, 0, 20 * MS).fixed_ns, 20 * MS); /* readings say more */
}

static void what_the_gpu_hides_is_no_gain(void **state)
{
	struct step_account a = {.ordinary_step_ns = 100 * MS};
	const struct account_entry lead = {.line = ACCOUNT_CPU, .owner = OWNER_SELF};
	struct delay_list all = {
		.items = {{.kind = DELAY_BY_CPU, .slow_ns = 40 * MS, .share = 0.4, .lead = &lead}},
		.count = 1};

	a.ordinary_ns[ACCOUNT_GPU] = 30 * MS;
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 60 * MS);
	a.hidden_by[OWNER_SELF][ACCOUNT_CPU] = 0.75;
	assert_int_equal(of(&a, &all, 0, 0).fixed_ns, 90 * MS);
	assert_int_equal(of(&a, &all, 0, 0).least_ns, 90 * MS);
}

static void how_busy_the_gpu_is(void **state)
{
	struct gpu_sample s[6];
	struct recording rec = {.gpus = s, .gpu_count = 6};
	struct step_account a = {
		.ordinary_step_ns = 100 * MS, .first.ns = 10 - (int64_t)NS_PER_S, .last.ns = 20};
	const struct delay cpu = {.kind = DELAY_BY_CPU};
	struct gain_facts facts;

	for (int i = 0; i < 6; i++) {
		gpu_sample_init(&s[i]);
		s[i].time.ns = 11 + i;
		s[i].index = i % 2;
		s[i].util_gpu_pct = i % 2 ? 40 : 10;
	}
	gain_find(&rec, &a, &cpu, 0, &facts);
	assert_int_equal(facts.busy_ns, 40 * MS);
	assert_int_equal(facts.busy_error_ns, 0);
	s[1].util_gpu_pct = 10;
	gain_find(&rec, &a, &cpu, 0, &facts);
	assert_int_equal(facts.busy_ns, 30 * MS);
	assert_in_range(facts.busy_error_ns, 8 * MS, 9 * MS); /* 14 over the root of 3 */
	s[5].time.ns = 99;                                    /* two readings are too few */
	gain_find(&rec, &a, &cpu, 0, &facts);
	assert_int_equal(facts.busy_ns, 10 * MS);
	a.first.ns = 10; /* a reading says what was so in the second before it */
	gain_find(&rec, &a, &cpu, 0, &facts);
	assert_int_equal(facts.busy_ns, 0);
	a.first.ns = 10 - (int64_t)NS_PER_S;
	rec.gpu_count = 0;
	gain_find(&rec, &a, &cpu, 0, &facts);
	assert_int_equal(facts.busy_ns, 0);
}

static void the_fields_of_an_incident(void **state)
{
	struct gain g = {4, 3, 2, 4};
	struct incident inc = {0};

	gain_put(&g, &inc);
	assert_int_equal(inc.unit_ns, 4);
	assert_int_equal(inc.fixed_ns, 3);
	assert_int_equal(inc.fixed_least_ns, 2);
	assert_int_equal(inc.fixed_most_ns, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_step_without_its_delay),
		cmocka_unit_test(several_lead_back_to_the_ordinary),
		cmocka_unit_test(ordinary_units_may_gain_too),
		cmocka_unit_test(the_gpu_bounds_it),
		cmocka_unit_test(a_short_step_bounds_the_gpus_work),
		cmocka_unit_test(what_is_left_of_a_wait),
		cmocka_unit_test(what_the_gpu_has_to_do),
		cmocka_unit_test(what_the_gpu_hides_is_no_gain),
		cmocka_unit_test(how_busy_the_gpu_is),
		cmocka_unit_test(the_fields_of_an_incident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
