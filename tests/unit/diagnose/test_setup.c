/* SPDX-License-Identifier: Apache-2.0 */
/* test_setup.c - which waits at a job's beginning are those of its set-up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/units/setup.h"
#include "ledger_fixture.h"

#define STEPS  40
#define BEFORE 15 /* of them are of the beginning */

/* What the first steps and the others have: fills in a row. */
typedef void filler(struct ledger_row *r);

static void upload(struct ledger_row *r)
{
	r->copies = 1;
}

static void few_launches(struct ledger_row *r)
{
	r->copies = 1;
	r->launches = 2;
}

static void many_launches(struct ledger_row *r)
{
	r->launches = 200;
}

static void graph(struct ledger_row *r)
{
	r->copies = 1;
	r->ns[LEDGER_GRAPH] = 1000;
}

static void plain_wait(struct ledger_row *r)
{
	r->launches = 0;
}

static void not_probed(struct ledger_row *r)
{
	r->copies = 1;
	r->launches_off = 1;
}

static size_t count(filler *first, filler *then)
{
	struct ledger_row rows[STEPS] = {0};
	struct step steps[STEPS];
	uint64_t scratch[2 * STEPS];
	struct recording rec = {.ledger = rows, .ledger_count = STEPS};

	for (int i = 0; i < STEPS; i++) {
		int64_t at = LEDGER_T0 + i * (int64_t)MS(1);

		rows[i] = (struct ledger_row){
			.start.ns = at, .dur_ns = MS(1), .pid = JOB, .tid = MAIN, .waits = 1};
		(i < BEFORE ? first : then)(&rows[i]);
		steps[i] = (struct step){.start_ns = at, .end_ns = at + (int64_t)MS(1)};
	}
	return setup_count(&rec, JOB, MAIN, steps, STEPS, scratch);
}

static void test_uploads(void **state)
{
	assert_int_equal(count(upload, many_launches), BEFORE);
	assert_int_equal(count(few_launches, many_launches), BEFORE);
}

/* A program whose steps launch hardly anything, until something is wrong. */
static void test_steps_that_launch_little(void **state)
{
	assert_int_equal(count(graph, many_launches), 0);
	assert_int_equal(count(plain_wait, many_launches), 0);
}

static void test_what_is_not_known(void **state)
{
	assert_int_equal(count(upload, upload), 0);
	assert_int_equal(count(not_probed, many_launches), 0);
	assert_int_equal(setup_count(&(struct recording){0}, JOB, MAIN, NULL, 0, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uploads),
		cmocka_unit_test(test_steps_that_launch_little),
		cmocka_unit_test(test_what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
