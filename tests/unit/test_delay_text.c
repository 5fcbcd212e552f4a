/* SPDX-License-Identifier: Apache-2.0 */
/* test_delay_text.c - sentences about slow steps: whose time it was and where, none against another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/sentences/delay_text.h"
#include "diagnose/compose/detector.h"
#include "steps_fixture.h"

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

/* Slow steps that lost most of their time to @kind, by the account's first entry on line @line. */
static void tell_waits(enum delay_kind kind, enum account_line line, struct account_entry who,
	double waits, struct incident *inc)
{
	struct stack *items[] = {&steps_stack};
	struct stack_list stacks = {items, 1};
	struct recording rec = {.stacks = &stacks};
	struct delay_list all = {.count = 1};
	struct incident_list list = {.items = inc, .max = 1};
	struct step_account a;

	steps_fill(&a);
	who.line = line;
	who.stack_hash = STEPS_HASH;
	a.entries[0] = who;
	if (waits > 0) {
		a.ordinary_waits = 4;
		a.slow_waits = waits;
	}
	all.items[0] = (struct delay){.kind = kind,
		.ordinary_ns = 2 * STEPS_MS,
		.slow_ns = 131 * STEPS_MS,
		.lead = &a.entries[0],
		.share = 0.95};
	assert_ptr_equal(incident_begin(&list, PROBLEM_STARVATION), inc);
	inc->pid = STEPS_PID;
	delay_text_slow(&rec, &a, &all, &all.items[0], NULL, inc);
	free(a.bars);
}

static void tell(enum delay_kind kind, enum account_line line, struct account_entry who,
	struct incident *inc)
{
	tell_waits(kind, line, who, 0, inc);
}

/* Two item() for every parameter cost more calls than waiting: the advice is the same. */
static void many_waits_that_are_short(void **state)
{
	struct incident many = {0}, few = {0};
	const struct account_entry self = {.pid = STEPS_PID, .comm = "python3"};

	tell_waits(DELAY_BY_HOST, ACCOUNT_HOST, self, 245, &many);
	assert_has(many.explanation,
		"A slow step waits for the GPU 245 times, an ordinary one 4 times.");
	assert_has(many.fixes[0], "item()");
	tell_waits(DELAY_BY_HOST, ACCOUNT_HOST, self, 6, &few);
	assert_null(strstr(few.explanation, "waits for the GPU"));
	assert_null(strstr(few.fixes[0], "item()"));
}

/* Steps that became longer little by little are not some that are slow. */
static void a_drift_is_told_as_such(void **state)
{
	struct incident inc = {0};
	struct incident_list list = {.items = &inc, .max = 1};
	struct delay_list all = {.count = 1};
	struct recording rec = {0};
	struct step_account a;

	steps_fill(&a);
	a.is_drift = true;
	a.drift_from_ns = 100 * STEPS_MS;
	a.drift_to_ns = 160 * STEPS_MS;
	all.items[0] = (struct delay){.kind = DELAY_BY_HOST,
		.slow_ns = 30 * STEPS_MS,
		.lead = &a.entries[0],
		.share = 0.95};
	assert_ptr_equal(incident_begin(&list, PROBLEM_GOODPUT), &inc);
	delay_text_slow(&rec, &a, &all, &all.items[0], NULL, &inc);
	assert_has(inc.summary,
		"steps became longer little by little, from 100ms to 160ms: 30ms more");
	assert_null(strstr(inc.summary, "instead of"));
	free(a.bars);
}

/* The usual advice for a starved GPU is to leave batches to workers; these have them already. */
static void the_data_loader(void **state)
{
	struct incident inc = {0};

	tell(DELAY_BY_LOADER, ACCOUNT_HOST,
		(struct account_entry){
			.owner = OWNER_LOADER, .pid = STEPS_WORKER, .comm = "pt_data_worker"},
		&inc);
	assert_has(inc.summary,
		"129ms more waiting for the data loader, whose worker is at train.py:88 (collate)");
	assert_has(inc.root_cause, "whose worker pt_data_worker is running host code");
	assert_has(inc.explanation, "Steps were found by optimizer.step (95 % sure).");
	assert_int_equal(inc.fix_count, 1);
	assert_has(inc.fixes[0], "num_workers");
}

/* The place is where the lock was held, not where it was waited for; a thread of the same process has
 * no process id of its own. */
static void the_interpreter_lock(void **state)
{
	struct incident inc = {0};

	tell(DELAY_BY_GIL, ACCOUNT_GIL,
		(struct account_entry){
			.pid = STEPS_PID, .culprit_pid = STEPS_PID, .culprit = "spinner"},
		&inc);
	assert_has(inc.summary, "interpreter lock, held at train.py:88 (collate)");
	assert_has(inc.root_cause,
		"held by another thread of the process (spinner) at train.py:88 (collate)");
	assert_null(strstr(inc.root_cause, "pid"));
}

/* A rival for the CPU in the same process has a line, too. */
static void the_processs_own_rival(void **state)
{
	struct incident inc = {0};

	tell(DELAY_BY_CPU, ACCOUNT_CPU,
		(struct account_entry){
			.pid = STEPS_PID, .culprit_pid = STEPS_PID, .culprit = "prefetch"},
		&inc);
	assert_has(inc.summary,
		"waiting for a CPU used by thread prefetch of the same process at train.py:88 (collate)");
	assert_has(inc.root_cause,
		"get no CPU: thread prefetch of the same process has it at train.py:88 (collate)");
	assert_has(inc.fixes[0], "The job's own threads compete");
}

/* Nobody is told to stop the job's own worker. */
static void the_jobs_own_worker(void **state)
{
	struct incident inc = {0};

	tell(DELAY_BY_CPU, ACCOUNT_CPU,
		(struct account_entry){.pid = STEPS_PID,
			.culprit_pid = STEPS_WORKER,
			.culprit = "pt_data_worker",
			.culprit_is_worker = true},
		&inc);
	assert_has(inc.root_cause, "get no CPU: data loader worker pt_data_worker (pid ");
	assert_has(inc.root_cause, "has it at train.py:88 (collate)");
	assert_has(inc.fixes[0], "num_workers");
	for (int i = 0; i < inc.fix_count; i++)
		assert_null(strstr(inc.fixes[i], "Stop it"));
}

/* Another process has one. */
static void a_neighbour(void **state)
{
	struct incident inc = {0};

	tell(DELAY_BY_CPU, ACCOUNT_CPU,
		(struct account_entry){.pid = STEPS_PID, .culprit_pid = 99, .culprit = "stress-ng"},
		&inc);
	assert_has(inc.root_cause, "get no CPU: stress-ng (pid 99) has it");
	assert_has(inc.fixes[0], "taskset -cp CPUS 99");
	tell(DELAY_BY_CPU, ACCOUNT_CPU,
		(struct account_entry){
			.pid = STEPS_PID, .culprit_pid = STEPS_PID, .culprit = "spinner"},
		&inc);
	assert_has(inc.root_cause, "get no CPU: thread spinner of the same process has it");
	assert_has(inc.fixes[0], "own threads compete");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_data_loader),
		cmocka_unit_test(a_drift_is_told_as_such),
		cmocka_unit_test(many_waits_that_are_short),
		cmocka_unit_test(the_processs_own_rival),
		cmocka_unit_test(the_jobs_own_worker),
		cmocka_unit_test(the_interpreter_lock),
		cmocka_unit_test(a_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
