/* SPDX-License-Identifier: Apache-2.0 */
/* test_all_clear.c - an empty list of incidents says what was examined, how, and what was not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "answer/encode/report.h"
#include "base/macros.h"
#include "steps_fixture.h"

static struct report_scope scope_of(struct step_report *r)
{
	struct report_scope s = {.node = "a",
		.events = 3284,
		.examined = {.calls = 3000, .stays = 200, .readings = 52, .groups = 1},
		.accounts = *r};

	return s;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void test_what_was_examined(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(step_report_done) struct step_report r = {0};
	struct report_scope s;

	assert_int_equal(steps_fill_report(&r), 0);
	r.items[1].origin = STEP_BY_TIME;
	r.items[1].confidence = 0.67;
	s = scope_of(&r);
	all_clear_put(&b, &s, 100);
	assert_string_equal(buf_str(&b),
		"  No problems found in 512 steps and 200 windows of time of 2 processes.\n"
		"  Examined: python3 (PID 4821): 512 steps in 55s. Step boundary: optimizer.step (95 %). Time:\n"
		"            waiting for the GPU 74 %, host code 16 %.\n"
		"            infer\\x1b[2J (PID 4822): 200 windows of time in 4.0s. Step boundary: none found, equal\n"
		"            windows of time (67 %). Time: waiting for the GPU 75 %, launching kernels 20 %.\n"
		"  Also examined: 3,000 calls, 200 off-CPU intervals, 52 readings of the GPU\n"
		"  Not judged: ranks (no collectives recorded)\n");
}

/* What is compared with nothing is said where it takes a good part of the time: an evaluation may come too often. */
static void test_other_work(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(step_report_done) struct step_report r = {0};
	struct step_account *a;
	struct report_scope s;
	uint64_t all = 0;

	assert_int_equal(steps_fill_report(&r), 0);
	a = &r.items[0];
	for (int i = 0; i < ACCOUNT_LINES; i++)
		all += a->total_ns[i];
	a->slow_steps = 0;
	a->other_steps = 12;
	a->ordinary_steps = 500;
	a->ordinary_step_ns = all / 1000;
	s = scope_of(&r);
	all_clear_put(&b, &s, 300);
	assert_has(buf_str(&b),
		"512 steps in 55s, 12 of them with other work (an evaluation, for instance), which takes "
		"50 % of it. Step boundary:");
	a->ordinary_step_ns = all / 510;
	buf_clear(&b);
	all_clear_put(&b, &s, 300);
	assert_has(buf_str(&b), "512 steps in 55s. Step boundary:");
}

/* The line of the program that waits; with ranks nobody knows whose work it is. */
static void test_where_it_waits(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(step_report_done) struct step_report r = {0};
	struct stack *stacks[] = {&steps_stack};
	struct report_scope s;

	assert_int_equal(steps_fill_report(&r), 0);
	r.items[1].entries[0].stack_hash = STEPS_HASH;
	s = scope_of(&r);
	s.stacks = (struct stack_list){.items = stacks, .count = 1};
	all_clear_processes(&b, &s, 1000);
	assert_has(buf_str(&b), "waiting for the GPU 75 % in collate (train.py:88), launching");
	/* A host that has a quarter of the time may be what the GPU waits for. */
	assert_null(strstr(buf_str(&b), "GPU-bound"));
	r.items[0].total_ns[ACCOUNT_GPU] *= 10;
	buf_clear(&b);
	all_clear_processes(&b, &s, 1000);
	assert_has(buf_str(&b), "GPU-bound");
	s.examined.collectives = 7;
	buf_clear(&b);
	all_clear_processes(&b, &s, 1000);
	assert_null(strstr(buf_str(&b), "GPU-bound"));
}

/* Without units nobody is told that there are no problems. */
static void test_nothing_to_look_at(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct step_report none = {0};
	struct report_scope s = scope_of(&none);

	s.examined.brief_count = 1;
	s.examined.brief[0].pid = 77;
	strcpy(s.examined.brief[0].comm, "probe");
	all_clear_put(&b, &s, 1000);
	assert_null(strstr(buf_str(&b), "No problems"));
	assert_has(buf_str(&b), "No process used a GPU for long enough.");
	assert_has(buf_str(&b), "Not judged: probe (PID 77) (used a GPU too briefly");
}

static void test_time_that_is_not_known(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(step_report_done) struct step_report r = {0};
	struct report_scope s;

	assert_int_equal(steps_fill_report(&r), 0);
	s = scope_of(&r);
	all_clear_put(&b, &s, 1000);
	assert_null(strstr(buf_str(&b), "of the time of"));
	r.items[0].total_ns[ACCOUNT_UNKNOWN] = r.items[0].total_ns[ACCOUNT_GPU];
	buf_clear(&b);
	all_clear_put(&b, &s, 1000);
	assert_has(buf_str(&b),
		"Not judged: 43 % of the time of python3 (PID 4821) (3 rows of the ledger were lost); ");
}

/* Of many processes the first are told. */
static void test_many_processes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct step_account all[6] = {0};
	struct step_report r = {all, ARRAY_SIZE(all)};
	struct report_scope s = scope_of(&r);

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		all[i].pid = (uint32_t)(100 + i);
		all[i].steps = 10;
		all[i].total_ns[ACCOUNT_HOST] = 10 * STEPS_MS;
	}
	all_clear_put(&b, &s, 1000);
	assert_has(buf_str(&b), "in 60 steps of 6 processes.");
	assert_has(buf_str(&b), "(PID 103): 10 steps in 10ms.");
	assert_null(strstr(buf_str(&b), "(PID 104)"));
	assert_has(buf_str(&b), "            and 2 more processes: ");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all[i].last.ns = 30 * STEPS_MS;
	buf_clear(&b);
	all_clear_put(&b, &s, 1000);
	assert_has(buf_str(&b), "in 60 steps of 6 processes, which take 60ms of 180ms.");
}

static void test_the_same_in_json(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(step_report_done) struct step_report r = {0};
	struct json_writer w = json_writer_to_buf(&b);
	struct report_scope s;
	json_t *tree, *one;

	assert_int_equal(steps_fill_report(&r), 0);
	s = scope_of(&r);
	all_clear_json(&w, &s);
	tree = json_loads(buf_str(&b), 0, NULL);
	assert_non_null(tree);
	assert_string_equal(json_string_value(json_object_get(tree, "node")), "a");
	assert_int_equal(json_array_size(json_object_get(tree, "processes")), 2);
	one = json_array_get(json_object_get(tree, "processes"), 0);
	assert_int_equal(json_integer_value(json_object_get(one, "units")), 512);
	assert_string_equal(json_string_value(json_object_get(one, "boundary")), "optimizer.step");
	assert_true(json_real_value(json_object_get(one, "confidence")) == 0.95);
	assert_int_equal(json_array_size(json_object_get(one, "lines")), 2);
	one = json_array_get(json_object_get(one, "lines"), 0);
	assert_string_equal(json_string_value(json_object_get(one, "line")), "gpu");
	assert_true(json_real_value(json_object_get(one, "share")) > 0.7);
	assert_int_equal(json_integer_value(json_object_get(tree, "calls")), 3000);
	assert_int_equal(json_array_size(json_object_get(tree, "not_judged")), 1);
	json_decref(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_examined),
		cmocka_unit_test(test_other_work),
		cmocka_unit_test(test_where_it_waits),
		cmocka_unit_test(test_nothing_to_look_at),
		cmocka_unit_test(test_time_that_is_not_known),
		cmocka_unit_test(test_many_processes),
		cmocka_unit_test(test_the_same_in_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
