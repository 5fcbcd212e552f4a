/* SPDX-License-Identifier: Apache-2.0 */
/* test_timeline_thread.c - threads that a runtime keeps and that mostly wait explain nobody's wait; those
 * that do something do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "diagnose/rows/timeline.h"
#include "ledger_fixture.h"

/* The job waits 10 of 20 ms of each step, until thread HOLDER, called @name, wakes it, which is on a CPU for
 * @busy_ns of each step. @summed: the waits are too short for rows. */
static const struct account_entry *waited_for(struct ledger_scene *s, const char *name,
	uint64_t busy_ns, bool summed, struct step_report *report)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread other = thread_at(s, JOB, HOLDER, name, LEDGER_T0);
	struct recording rec;

	for (int i = 0; i < 51; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_LAUNCH, MS(10));
		if (summed)
			spend(&t, LEDGER_LOCK, MS(10));
		else
			stay(&t, LEDGER_LOCK, MS(10), 0, JOB, HOLDER);
		stay(&other, LEDGER_POLL, MS(20) - busy_ns, 0, 0, 0);
		spend(&other, LEDGER_RUN, busy_ns);
		mark(&other, MARK_TICK);
	}
	if (summed)
		short_stays(s, MAIN, t.at, (uint64_t)(t.at - LEDGER_T0), LEDGER_LOCK, 51 * MS(10),
			HOLDER, 0);
	rec = ledger_recording(s);
	assert_int_equal(account_run(&rec, report), 0);
	assert_int_equal(report->count, 1);
	for (int i = 0; i < report->items[0].entry_count; i++)
		if (report->items[0].entries[i].line != ACCOUNT_LAUNCH)
			return &report->items[0].entries[i];
	return NULL;
}

static void check_nobodys(const char *name, bool summed)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	_cleanup_(step_report_done) struct step_report report = {0};
	const struct account_entry *e = waited_for(s, name, US(100), summed, &report);

	assert_non_null(e);
	assert_int_equal(e->line, ACCOUNT_LOCK);
	assert_int_equal(e->owner, OWNER_SELF);
	assert_int_equal(e->culprit_pid, 0);
	assert_string_equal(e->culprit, "");
}

static void test_idle_threads_are_nobody(void **state)
{
	check_nobodys("pt_nccl_watchdg", false);
	check_nobodys("grpcpp_sync_ser", false);
	check_nobodys("tokio-runtime-w", false);
	check_nobodys("jemalloc_bg_thd", true);
}

/* A pool that compiles is what the job waits for. */
static void test_busy_pools_are_somebody(void **state)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	_cleanup_(step_report_done) struct step_report report = {0};
	const struct account_entry *e = waited_for(s, "tf_XLAEigen", MS(18), false, &report);

	assert_non_null(e);
	assert_int_equal(e->line, ACCOUNT_HOST);
	assert_int_equal(e->owner, OWNER_THREAD);
	assert_string_equal(e->comm, "tf_XLAEigen");
}

/* A thread with any other name that is waited for is followed, be it on a CPU ever so little. */
static void test_other_threads_are_followed(void **state)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	_cleanup_(step_report_done) struct step_report report = {0};
	const struct account_entry *e = waited_for(s, "pt_data_pin", US(100), false, &report);

	assert_non_null(e);
	assert_int_equal(e->owner, OWNER_THREAD);
	assert_string_equal(e->comm, "pt_data_pin");
}

static void test_who_feeds(void **state)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	_cleanup_(timeline_done) struct timeline t = {0};
	struct ledger_thread feeds = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread waits = thread_at(s, JOB, HOLDER, "grpc_worker", LEDGER_T0);
	struct recording rec;

	spend(&feeds, LEDGER_LAUNCH, MS(1));
	mark(&feeds, MARK_TICK);
	spend(&waits, LEDGER_GPU_WAIT, MS(1));
	spend(&waits, LEDGER_POLL, MS(99));
	mark(&waits, MARK_TICK);
	rec = ledger_recording(s);
	assert_int_equal(timeline_make(&rec, &t), 0);
	assert_true(timeline_feeds(&t, MAIN));
	assert_false(timeline_is_idle(&t, MAIN));
	assert_false(timeline_feeds(&t, HOLDER));
	assert_true(timeline_is_idle(&t, HOLDER));
	assert_false(timeline_feeds(&t, PIN)); /* not there */
	assert_false(timeline_is_idle(&t, PIN));
}

/* Rows that no tracer wrote: all begin together, the longest first. They are put in order in the time that sorting takes. */
static void test_rows_that_begin_together(void **state)
{
	enum { ROWS = 1000000 };
	_cleanup_free_ struct ledger_row *rows = calloc(ROWS, sizeof(*rows));
	struct recording rec = {.ledger = rows, .ledger_count = ROWS, .node = ""};
	struct timeline t;

	assert_non_null(rows);
	for (size_t i = 0; i < ROWS; i++)
		rows[i] = (struct ledger_row){
			.start.ns = LEDGER_T0, .dur_ns = ROWS - i, .pid = JOB, .tid = MAIN};
	assert_int_equal(timeline_make(&rec, &t), 0);
	assert_int_equal(t.row_count, ROWS);
	for (size_t i = 0; i < ROWS; i++)
		assert_ptr_equal(t.rows[i], &rows[ROWS - 1 - i]);
	timeline_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_threads_are_nobody),
		cmocka_unit_test(test_busy_pools_are_somebody),
		cmocka_unit_test(test_other_threads_are_followed),
		cmocka_unit_test(test_who_feeds),
		cmocka_unit_test(test_rows_that_begin_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
