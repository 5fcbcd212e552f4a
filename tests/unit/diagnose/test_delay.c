/* SPDX-License-Identifier: Apache-2.0 */
/* test_delay.c - lines of an account, put together by cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/chains/delay.h"

#define US UINT64_C(1000)

/* A training loop with an item() for every parameter, on a real GPU: the wait at the end of the step
 * gives way to waits in its middle, and what the CPU did meanwhile is on the path. */
static struct step_account item_account(void)
{
	struct step_account a = {.steps = 325,
		.slow_steps = 141,
		.ordinary_steps = 183,
		.ordinary_step_ns = 25910 * US,
		.slow_step_ns = 39510 * US,
		.lost_ns = 1900000 * US,
		.ordinary_waits = 1,
		.slow_waits = 200};

	a.ordinary_by[OWNER_SELF][ACCOUNT_HOST] = 11340 * US;
	a.slow_by[OWNER_SELF][ACCOUNT_HOST] = 19890 * US;
	a.ordinary_by[OWNER_SELF][ACCOUNT_LAUNCH] = 850 * US;
	a.slow_by[OWNER_SELF][ACCOUNT_LAUNCH] = 7220 * US;
	a.ordinary_by[OWNER_SELF][ACCOUNT_GPU] = 13090 * US;
	a.slow_by[OWNER_SELF][ACCOUNT_GPU] = 9820 * US;
	a.ordinary_by[OWNER_SELF][ACCOUNT_CPU] = 290 * US;
	a.slow_by[OWNER_SELF][ACCOUNT_CPU] = 590 * US;
	a.entry_count = 2;
	a.entries[0] = (struct account_entry){
		.owner = OWNER_SELF, .line = ACCOUNT_GPU, .stack_hash = 7, .slow_ns = 7750 * US};
	a.entries[1] = (struct account_entry){.owner = OWNER_SELF,
		.line = ACCOUNT_HOST,
		.stack_hash = 8,
		.ordinary_ns = 1000 * US,
		.slow_ns = 2870 * US};
	return a;
}

static void a_wait_in_the_middle_of_a_step(void **state)
{
	struct step_account a = item_account();
	struct recording rec = {0};
	struct delay_list l;

	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_SYNC);
	assert_ptr_equal(l.items[0].lead, &a.entries[0]);
	assert_true(l.items[0].slow_ns - l.items[0].ordinary_ns == 11650 * US);
	assert_int_equal(l.items[1].kind, DELAY_BY_CPU);
	assert_int_equal(l.count, 2);
}

/* The same lines without the new place, with a place that waited before, or without more waits. */
static void other_reasons_for_more_host_code(void **state)
{
	struct step_account a = item_account();
	struct recording rec = {0};
	struct delay_list l;

	a.entries[0].ordinary_ns = 5000 * US;
	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_HOST);

	a = item_account();
	a.entries[0].slow_ns = 3000 * US;
	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_HOST);

	a = item_account();
	a.slow_waits = a.ordinary_waits;
	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_HOST);
}

/* A checkpoint in a recording that has some of the calls alone: what is not known of a slow step is no reason to
 * doubt what is. */
static void a_checkpoint_beside_what_is_not_known(void **state)
{
	static const struct stack_frame frames[] = {{.symbol = "cudaMemcpyAsync"},
		{.py_file = "/lib/torch/serialization.py", .py_func = "_save", .py_line = 1}};
	static const struct stack saver = {7, frames, 2, ""}, *items[] = {&saver};
	static const struct stack_list stacks = {(struct stack **)items, 1};
	struct recording rec = {.stacks = &stacks};
	struct step_account a = {
		.slow_steps = 4, .ordinary_steps = 100, .lost_ns = 1, .entry_count = 1};
	struct delay_list l;

	a.slow_by[OWNER_SELF][ACCOUNT_COPY] = 350 * US;
	a.slow_by[OWNER_SELF][ACCOUNT_DISK] = 450 * US;
	a.slow_by[OWNER_SELF][ACCOUNT_UNKNOWN] = 600 * US;
	a.entries[0] =
		(struct account_entry){.line = ACCOUNT_COPY, .stack_hash = 7, .slow_ns = 350 * US};
	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_CHECKPOINT);
	assert_true(l.items[0].slow_ns == 800 * US);
	assert_int_equal(l.items[1].kind, DELAY_BY_UNKNOWN);
	a.entries[0].slow_ns = a.slow_by[OWNER_SELF][ACCOUNT_COPY] =
		100 * US; /* control: too little of it */
	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_UNKNOWN);
}

/* Few steps that write and wait for it are checkpoints, unless all steps write. */
static void writing_now_and_then(void **state)
{
	struct step_mark mark = {.start.ns = 0, .dur_ns = 1000000 * US, .is_slow = true};
	struct event write = {.source = SOURCE_IO, .op = IO_WRITE, .pid = 7, .arg0 = 64};
	struct recording rec = {.events = &write, .event_count = 1};
	struct step_account a = {.pid = 7,
		.steps = 500,
		.slow_steps = 10,
		.ordinary_steps = 490,
		.ordinary_step_ns = 30000 * US,
		.slow_step_ns = 120000 * US,
		.lost_ns = 900000 * US,
		.marks = &mark,
		.mark_count = 1};
	struct delay_list l;

	a.slow_first.ns = 0;
	a.slow_last.ns = mark.dur_ns;
	write.start.ns = 500;
	a.ordinary_by[OWNER_SELF][ACCOUNT_DISK] = 3000 * US;
	a.slow_by[OWNER_SELF][ACCOUNT_DISK] = 90000 * US;
	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_CHECKPOINT);
	a.ordinary_by[OWNER_SELF][ACCOUNT_DISK] = 8000 * US;
	delays_find(&rec, &a, &l);
	assert_int_equal(l.items[0].kind, DELAY_BY_DISK);
}

/* What a process of the job computes is its own; that it waits for a CPU is not. */
static void a_process_that_waits_for_a_cpu(void **state)
{
	struct step_account a = {.ordinary_steps = 100, .ordinary_step_ns = 30000 * US};
	struct recording rec = {0};
	struct delay_list l;

	a.ordinary_by[OWNER_SELF][ACCOUNT_CPU] = 3000 * US;
	a.ordinary_by[OWNER_PROCESS][ACCOUNT_CPU] = 4000 * US;
	a.ordinary_by[OWNER_PROCESS][ACCOUNT_HOST] = 2000 * US;
	delays_find(&rec, &a, &l);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.items[0].kind, DELAY_BY_CPU);
	assert_true(l.items[0].slow_ns == 7000 * US);
	assert_int_equal(l.items[1].kind, DELAY_BY_PROCESS);
	assert_true(l.items[1].slow_ns == 2000 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_in_the_middle_of_a_step),
		cmocka_unit_test(other_reasons_for_more_host_code),
		cmocka_unit_test(a_checkpoint_beside_what_is_not_known),
		cmocka_unit_test(writing_now_and_then),
		cmocka_unit_test(a_process_that_waits_for_a_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
