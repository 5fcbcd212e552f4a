/* SPDX-License-Identifier: Apache-2.0 */
/* test_incident_field.c - the table of an incident's fields: what is read from the struct, and what is not
 * taken from a stranger. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "incident_fixture.h"
#include "wire/names.h"

#define OF(NAME) (&incident_fields[INCIDENT_F_##NAME])

/* Names are looked up, so that one that is given twice would be read once. */
static void names_are_given_once(void **state)
{
	size_t columns = 0;

	for (size_t a = 0; a < INCIDENT_FIELD_COUNT; a++) {
		const struct incident_field *f = &incident_fields[a];

		assert_true(f->column || f->key);
		assert_true(f->meaning[0]);
		columns += f->column != NULL;
		assert_false(f->is_added && f->renew > INCIDENT_LATEST);
		for (size_t b = 0; b < a; b++) {
			const struct incident_field *g = &incident_fields[b];

			assert_false(f->column && g->column && !strcmp(f->column, g->column));
			assert_false(f->key && g->key && !strcmp(f->key, g->key));
		}
	}
	assert_true(columns >= 27);
	assert_ptr_equal(incident_field_of_key("tail_ratio"), OF(TAIL_RATIO));
	assert_null(incident_field_of_key("tail"));
	assert_ptr_equal(incident_field_of_column("first_seen"), OF(FIRST));
	assert_null(incident_field_of_column("first_seen_ns"));
}

static struct incident_value get(
	const struct incident_field *f, const struct incident *i, bool named)
{
	struct incident_value v;

	incident_field_get(f, i, named, &v);
	return v;
}

static void values_of_every_form(void **state)
{
	struct incident i = {.id = "n:x",
		.pid = 7,
		.calls = UINT64_MAX,
		.first = {-5},
		.severity = SEVERITY_CRITICAL,
		.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH,
		.slow_calls = 3,
		.count = 9,
		.tail_ratio = NAN,
		.culprit_rank = -1,
		.completeness = -1};

	assert_string_equal(get(OF(ID), &i, false).s, "n:x");
	assert_int_equal(get(OF(PID), &i, false).u, 7);
	assert_true(get(OF(CALLS), &i, false).u == UINT64_MAX);
	assert_int_equal(get(OF(FIRST), &i, false).i, -5);
	assert_string_equal(get(OF(SEVERITY), &i, false).s, "CRITICAL");
	assert_int_equal(get(OF(SOURCE), &i, false).u, SOURCE_CUDA);
	assert_string_equal(get(OF(SOURCE), &i, true).s, "cuda");
	assert_int_equal(get(OF(OP), &i, false).u, CUDA_LAUNCH);
	assert_int_equal(get(OF(OP), &i, true).type, INCIDENT_TEXT);
	assert_int_equal(get(OF(COUNT), &i, true).u, 3);
	i.unit = "gaps";
	assert_int_equal(get(OF(COUNT), &i, true).u, 9);
	assert_string_equal(get(OF(UNIT), &i, true).s, "gaps");
	assert_true(get(OF(TAIL_RATIO), &i, true).d == 0);
	assert_int_equal(get(OF(CAUSES), &i, true).type, INCIDENT_NOTHING);
	assert_int_equal(get(OF(NODE), &i, true).type, INCIDENT_NOTHING);
}

static void what_is_absent(void **state)
{
	struct incident i = {.culprit_rank = -1, .completeness = -1};

	assert_int_equal(get(OF(CULPRIT_RANK), &i, true).type, INCIDENT_NOTHING);
	assert_int_equal(get(OF(COMPLETENESS), &i, true).type, INCIDENT_NOTHING);
	assert_int_equal(get(OF(PERIOD_STEPS), &i, true).type, INCIDENT_NOTHING);
	/* The columns of the first fields hold a number in every row. */
	assert_true(get(OF(COMPLETENESS), &i, false).d == -1);
	i.culprit_rank = 0;
	i.completeness = 0;
	i.period_steps = 1;
	assert_int_equal(get(OF(CULPRIT_RANK), &i, true).i, 0);
	assert_int_equal(get(OF(COMPLETENESS), &i, true).type, INCIDENT_REAL);
	assert_int_equal(get(OF(PERIOD_STEPS), &i, true).u, 1);
}

/* "" is no place: it is not said, and NULL in the table. */
static void the_place(void **state)
{
	struct incident i = {.place = "train.py:71 (step)"};

	assert_string_equal(get(OF(PLACE), &i, false).s, "train.py:71 (step)");
	i.place[0] = 0;
	assert_int_equal(get(OF(PLACE), &i, false).type, INCIDENT_NOTHING);
	assert_int_equal(get(OF(PLACE), &i, true).type, INCIDENT_NOTHING);
}

static void set_int(const struct incident_field *f, struct incident *i, int64_t n)
{
	incident_field_set(f, i, &(struct incident_value){.type = INCIDENT_INT, .i = n});
}

static void set_real(const struct incident_field *f, struct incident *i, double d)
{
	incident_field_set(f, i, &(struct incident_value){.type = INCIDENT_REAL, .d = d});
}

static void set_text(const struct incident_field *f, struct incident *i, const char *s)
{
	incident_field_set(f, i, &(struct incident_value){.type = INCIDENT_TEXT, .s = s});
}

static void what_strangers_send(void **state)
{
	struct incident i = {.pid = 7, .calls = 8, .culprit_rank = 2, .severity = SEVERITY_HIGH};

	set_int(OF(PID), &i, (int64_t)UINT32_MAX + 1);
	set_int(OF(PID), &i, -1);
	set_text(OF(PID), &i, "9");
	assert_int_equal(i.pid, 7);
	set_int(OF(CALLS), &i, -1);
	set_real(OF(CALLS), &i, 3);
	assert_int_equal(i.calls, 8);
	set_int(OF(CULPRIT_RANK), &i, -2);
	assert_int_equal(i.culprit_rank, 2);
	set_int(OF(CULPRIT_RANK), &i, -1);
	assert_int_equal(i.culprit_rank, -1);
	set_text(OF(SEVERITY), &i, "AWFUL");
	assert_int_equal(i.severity, SEVERITY_HIGH);
	set_text(OF(SEVERITY), &i, "LOW");
	assert_int_equal(i.severity, SEVERITY_LOW);
	set_real(OF(CONFIDENCE), &i, 7.0);
	assert_true(i.confidence == 1);
	set_int(OF(CONFIDENCE), &i, -7);
	assert_true(i.confidence == -1);
	set_real(OF(TAIL_RATIO), &i, INFINITY);
	assert_true(i.tail_ratio == 0);
	set_int(OF(TAIL_RATIO), &i, 70);
	assert_true(i.tail_ratio == 70);
	set_int(OF(LAST), &i, -9);
	assert_int_equal(i.last.ns, -9);
	incident_field_set(
		OF(CALLS), &i, &(struct incident_value){.type = INCIDENT_UINT, .u = UINT64_MAX});
	assert_int_equal(i.calls, 8);
}

/* One character more than the member holds is cut, and no half of an é is left. */
static void long_texts(void **state)
{
	struct incident i = {0};

	set_text(OF(COMM), &i, "01234567890123é");
	assert_string_equal(i.comm, "01234567890123");
	set_text(OF(COMM), &i, "0123456789012345");
	assert_string_equal(i.comm, "012345678901234");
	set_text(OF(COMM), &i, "");
	assert_string_equal(i.comm, "");
}

/* What was read can be set, and is then the same: all but names that are no text of the struct. */
static void there_and_back(void **state)
{
	struct incident from, to = {.completeness = -1, .culprit_rank = -1, .unit = "gaps"};
	struct incident_value v;

	incident_fill(&from);
	from.unit = to.unit; /* else count is that of slow calls */
	for (size_t n = 0; n < INCIDENT_FIELD_COUNT; n++) {
		v = get(&incident_fields[n], &from, true);
		incident_field_set(&incident_fields[n], &to, &v);
	}
	assert_memory_equal(&to, &from, sizeof(to));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_given_once),
		cmocka_unit_test(values_of_every_form),
		cmocka_unit_test(what_is_absent),
		cmocka_unit_test(the_place),
		cmocka_unit_test(what_strangers_send),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
