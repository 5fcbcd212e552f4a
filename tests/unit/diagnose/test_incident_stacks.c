/* SPDX-License-Identifier: Apache-2.0 */
/* test_incident_stacks.c - the stacks of an incident: each once, the heaviest first, and those of lost time through
 * the whole engine. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "diagnose/findings/detector.h"
#include "diagnose/compose/diagnose.h"
#include "ledger_fixture.h"

static void each_is_listed_once(void **state)
{
	struct incident_stack list[] = {{.hash = 7, .ns = 30, .calls = 1},
		{.hash = 3, .ns = 50, .calls = 1}, {.hash = 7, .ns = 40, .calls = 1}};
	struct incident inc = {0};

	incident_stacks_merge(list, ARRAY_SIZE(list), &inc);
	assert_int_equal(inc.stack_count, 2);
	assert_int_equal(inc.stack_total, 2);
	assert_int_equal(inc.stacks[0].hash, 7);
	assert_int_equal(inc.stacks[0].ns, 70);
	assert_int_equal(inc.stacks[0].calls, 2);
	assert_int_equal(inc.stacks[1].hash, 3);
	assert_int_equal(inc.stack_ns, 120);
}

static void many_stacks_keep_the_heaviest(void **state)
{
	struct incident_stack list[100];
	struct incident inc = {0};

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = (struct incident_stack){.hash = i + 1, .ns = i * 37 % 100, .calls = 1};
	incident_stacks_merge(list, ARRAY_SIZE(list), &inc);
	assert_int_equal(inc.stack_count, INCIDENT_STACKS);
	assert_int_equal(inc.stack_total, 100);
	assert_int_equal(inc.stacks[0].ns, 99);
	for (int i = 1; i < inc.stack_count; i++)
		assert_true(inc.stacks[i - 1].ns >= inc.stacks[i].ns);
}

/* From half of the steps on 10 ms of host code, at a known place if @has_place. No stack has more than was lost. */
static struct incident slower(bool has_place, uint64_t *ret_hash)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	_cleanup_free_ struct incident *list = NULL;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct recording rec;
	size_t n;

	*ret_hash = line_stack(s, "/home/u/train.py", 71, NULL);
	for (int i = 0; i < 120; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_GPU_WAIT, MS(20));
		mark(&t, MARK_WAIT);
		if (i < 60)
			continue;
		if (has_place)
			sample(s, JOB, MAIN, t.at + 1, *ret_hash);
		spend(&t, LEDGER_RUN, MS(10));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	rec = ledger_recording(s);
	assert_int_equal(diagnose_run(&rec, &list, &n), 0);
	assert_int_equal(n, 1);
	return list[0];
}

static void where_time_was_lost(void **state)
{
	uint64_t hash;
	struct incident inc = slower(true, &hash);

	assert_int_equal(inc.stack_count, 1);
	assert_int_equal(inc.stacks[0].hash, hash);
	assert_in_range(inc.stack_ns, inc.excess_ns / 2, inc.excess_ns);
}

static void none_is_none(void **state)
{
	uint64_t hash;
	struct incident inc = slower(false, &hash);

	assert_int_equal(inc.stack_count, 0);
	assert_int_equal(inc.stack_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_listed_once),
		cmocka_unit_test(many_stacks_keep_the_heaviest),
		cmocka_unit_test(where_time_was_lost),
		cmocka_unit_test(none_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
