/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "model/identity.h"

static void only_what_is_missed_is_a_gap(void **state)
{
	struct process_layers l = {0};

	assert_false(layer_has_gap(&l));
	l.rows[LAYER_RUNTIME].state = LAYER_COVERED;
	assert_false(layer_has_gap(&l));
	l.rows[LAYER_NCCL].state = LAYER_UNCOVERED;
	assert_true(layer_has_gap(&l));
	l.rows[LAYER_NCCL].state = LAYER_FAILED;
	assert_true(layer_has_gap(&l));
	assert_true(layer_is_gap(&l.rows[LAYER_NCCL]));
	assert_false(layer_is_gap(&l.rows[LAYER_RUNTIME]));
}

static void sentences(void **state)
{
	struct layer_row r = {.state = LAYER_UNCOVERED, .detail = "no symbols"};
	char out[LAYER_SENTENCE_MAX], tiny[8];

	assert_string_equal(layer_sentence(LAYER_RUNTIME, &r, out, sizeof(out)),
		"runtime calls are not covered: no symbols");
	r = (struct layer_row){.state = LAYER_COVERED};
	assert_string_equal(
		layer_sentence(LAYER_DRIVER, &r, out, sizeof(out)), "driver calls are covered");
	r.state = LAYER_ABSENT;
	assert_string_equal(layer_sentence(LAYER_NCCL, &r, out, sizeof(out)), "");
	r.state = LAYER_FAILED;
	memset(r.detail, 'x', sizeof(r.detail) - 1);
	assert_true(strlen(layer_sentence(LAYER_NCCL, &r, out, sizeof(out))) > LAYER_DETAIL_MAX);
	assert_int_equal(strlen(layer_sentence(LAYER_NCCL, &r, tiny, sizeof(tiny))), 7);
}

static void names(void **state)
{
	assert_string_equal(layer_name(LAYER_RUNTIME), "runtime");
	assert_string_equal(layer_name(LAYER_IDENTITY), "identity");
	assert_string_equal(layer_state_name(LAYER_ABSENT), "absent");
	assert_string_equal(layer_state_name(LAYER_UNCOVERED), "not_covered");
}

static void sameness(void **state)
{
	struct process_layers a = {0}, b = {0};

	b.rows[0].since.ns = 5; /* not told */
	assert_true(layer_same(&a, &b));
	strncpy(b.rows[2].detail, "x", 2);
	assert_false(layer_same(&a, &b));
	b = a;
	b.rows[1].state = LAYER_COVERED;
	assert_false(layer_same(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_missed_is_a_gap),
		cmocka_unit_test(sentences),
		cmocka_unit_test(names),
		cmocka_unit_test(sameness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
