/* SPDX-License-Identifier: Apache-2.0 */
/* test_demo_scenario.c - the published six are there, under their names and aliases, each with acts
 * that fit the stage and a recording that is read and measured. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "cli/demo_scenario.h"
#include "answer/explain.h"
#include "diagnose/compose/diagnose.h"

static void the_published_six_are_found(void **state)
{
	static const char *const names[] = {"incident", "cold-start", "memcpy-bottleneck",
		"periodic-spike", "cpu-contention", "gpu-steal"};
	size_t n = 0;

	for (size_t i = 0; i < 6; i++)
		assert_string_equal(demo_scenario_find(names[i])->name, names[i]);
	while (demo_scenarios[n].name)
		n++;
	assert_int_equal(n, 6);
	assert_string_equal(demo_scenario_find("gpu-contention")->name, "gpu-steal");
	assert_string_equal(demo_scenario_find("contention")->name, "gpu-steal");
	assert_null(demo_scenario_find("nonsense"));
	assert_null(demo_scenario_find(""));
}

/* The first act brings the process that is traced; two more arguments are added to it. */
static void acts_fit_the_stage(void **state)
{
	for (const struct demo_scenario *s = demo_scenarios; s->name; s++) {
		size_t actors = 0;

		assert_true(s->acts[0].traced);
		for (const struct act *a = s->acts; a->says; a++) {
			int n = 0;

			assert_true(a->seconds > 0);
			actors += a->program != NULL;
			while (n < STAGE_ARGS && a->args[n])
				n++;
			assert_true(n + 3 <= STAGE_ARGS);
		}
		assert_true(actors <= STAGE_ACTORS);
	}
}

static void recordings_are_measured(void **state)
{
	for (const struct demo_scenario *s = demo_scenarios; s->name; s++) {
		struct nodedb_filter all = {0};
		struct nodedb_content c = {0};
		struct errinfo e = {0};
		_cleanup_free_ struct incident *list = NULL;
		_cleanup_buf_ struct buf b = BUF_INIT(1024);
		struct recording rec;
		size_t count = 0;

		assert_int_equal(nodedb_read_packed(s->recording, &all, &c, &e), 0);
		assert_int_equal(c.skipped_rows, 0);
		rec = explain_recording(&c);
		assert_int_equal(diagnose_run(&rec, &list, &count), 0);
		if (!measure_put(&b, s->measure, &rec, list, count))
			fail_msg("%s: its recording has nothing to measure", s->name);
		nodedb_content_done(&c);
	}
}

static void a_damaged_recording_is_refused(void **state)
{
	const struct nodedb_packed *whole = demo_scenarios[0].recording;
	_cleanup_free_ unsigned char *copy = malloc(whole->size);
	struct nodedb_packed damaged = {copy, whole->size};
	struct nodedb_content c = {0};
	struct errinfo e = {0};

	memcpy(copy, whole->data, whole->size);
	copy[whole->size / 2] ^= 0xff;
	assert_int_equal(nodedb_read_packed(&damaged, NULL, &c, &e), -EBADMSG);
	damaged.size = whole->size - 9; /* what is there as its length is none */
	assert_int_equal(nodedb_read_packed(&damaged, NULL, &c, &e), -EBADMSG);
	damaged.size = 17;
	assert_int_equal(nodedb_read_packed(&damaged, NULL, &c, &e), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_six_are_found),
		cmocka_unit_test(acts_fit_the_stage),
		cmocka_unit_test(recordings_are_measured),
		cmocka_unit_test(a_damaged_recording_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
