/* SPDX-License-Identifier: Apache-2.0 */
/* test_lead.c - who is named, from tables of causes: no other culprit of the table has more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "diagnose/calls/lead.h"
#include "base/macros.h"

#define VICTIM 4821U
#define HOG    8821U

static struct incident_cause row(enum cause cause, uint32_t pid, const char *name, uint64_t ns)
{
	struct incident_cause c = {
		.cause = cause, .culprit_pid = pid, .culprit_share = 1, .ns = ns, .calls = 1};

	memcpy(c.culprit, name, strnlen(name, COMM_LEN - 1));
	return c;
}

/* Rows in per cent of the excess, largest first, as culprit_sum() leaves them. */
static struct verdict lead_of(struct incident *inc, const struct incident_cause *rows, int count)
{
	struct verdict v = {0};
	uint64_t explained = 0;

	*inc = (struct incident){.pid = VICTIM, .excess_ns = 100, .cause_count = count};
	memcpy(inc->causes, rows, (size_t)count * sizeof(*rows));
	for (int i = 0; i < count; i++)
		if (rows[i].cause != CAUSE_UNEXPLAINED)
			explained += rows[i].ns;
	inc->explained = (double)explained / 100;
	lead_choose(inc, &v);
	return v;
}

static void assert_share(double got, int percent)
{
	assert_true(got > percent / 100.0 - 1e-9 && got < percent / 100.0 + 1e-9);
}

static void test_one_culprit_of_disk_and_cpu(void **state)
{
	const struct incident_cause rows[] = {row(CAUSE_BLOCK_IO, HOG, "writer", 47),
		row(CAUSE_RUN_QUEUE, 0, "", 37), row(CAUSE_PREEMPTED, HOG, "writer", 16)};
	struct incident inc;
	struct verdict v = lead_of(&inc, rows, ARRAY_SIZE(rows));

	assert_int_equal(v.lead->culprit_pid, HOG);
	assert_int_equal(v.lead->cause, CAUSE_BLOCK_IO);
	assert_share(v.lead_share, 47);
	assert_share(v.other_share, 16);
	assert_false(v.is_crowd);
}

/* Its parts of both layers are small, together they are not. */
static void test_parts_count_together(void **state)
{
	const struct incident_cause rows[] = {row(CAUSE_UNEXPLAINED, 0, "", 60),
		row(CAUSE_BLOCK_IO, HOG, "writer", 20), row(CAUSE_RUN_QUEUE, HOG, "writer", 12),
		row(CAUSE_PREEMPTED, HOG, "writer", 8)};
	struct incident inc;
	struct verdict v = lead_of(&inc, rows, ARRAY_SIZE(rows));

	assert_int_equal(v.lead->culprit_pid, HOG);
	assert_share(v.lead_share + v.other_share, 40);
}

/* The layer in which it took most, by its largest row there. */
static void test_layer_of_the_culprit(void **state)
{
	const struct incident_cause rows[] = {row(CAUSE_BLOCK_IO, HOG, "writer", 40),
		row(CAUSE_PREEMPTED, HOG, "writer", 30), row(CAUSE_RUN_QUEUE, HOG, "writer", 25)};
	struct incident inc;
	struct verdict v = lead_of(&inc, rows, ARRAY_SIZE(rows));

	assert_int_equal(v.lead->cause, CAUSE_PREEMPTED);
	assert_share(v.lead_share, 55);
	assert_share(v.other_share, 40);
}

/* Control: the same table, but the CPU was taken by somebody else of that name or of none. */
static void test_others_are_not_it(void **state)
{
	const struct incident_cause own[] = {row(CAUSE_RUN_QUEUE, 0, "", 45),
		row(CAUSE_BLOCK_IO, HOG, "python3", 39),
		row(CAUSE_PREEMPTED, VICTIM, "python3", 16)};
	const struct incident_cause nameless[] = {row(CAUSE_RUN_QUEUE, 0, "", 45),
		row(CAUSE_BLOCK_IO, HOG, "", 39), row(CAUSE_PREEMPTED, HOG + 1, "", 16)};
	struct incident inc;
	struct verdict v = lead_of(&inc, own, ARRAY_SIZE(own));

	assert_int_equal(v.lead->culprit_pid, 0);
	assert_share(v.lead_share, 45);
	assert_share(v.other_share, 0);
	v = lead_of(&inc, nameless, ARRAY_SIZE(nameless));
	assert_int_equal(v.lead->culprit_pid, 0);
}

static void test_many(void **state)
{
	struct incident_cause rows[] = {row(CAUSE_PREEMPTED, 0, "", 40),
		row(CAUSE_RUN_QUEUE, 0, "", 30), row(CAUSE_RUN_QUEUE, 11, "a", 10),
		row(CAUSE_RUN_QUEUE, 12, "b", 10), row(CAUSE_RUN_QUEUE, 13, "c", 10)};
	struct incident inc;
	struct verdict v = lead_of(&inc, rows + 2, 3);

	assert_true(v.is_crowd);
	assert_share(v.layer_share, 30);
	rows[0].is_many = rows[1].is_many = true; /* many that were folded are not nobody */
	v = lead_of(&inc, rows, ARRAY_SIZE(rows));
	assert_true(v.is_crowd);
	assert_share(v.layer_share, 100);
	rows[0].is_many = rows[1].is_many = false; /* control */
	v = lead_of(&inc, rows, ARRAY_SIZE(rows));
	assert_false(v.is_crowd);
	assert_int_equal(v.lead->culprit_pid, 0);
}

static void test_too_little(void **state)
{
	const struct incident_cause rows[] = {
		row(CAUSE_UNEXPLAINED, 0, "", 80), row(CAUSE_PREEMPTED, HOG, "hog", 20)};
	struct incident inc;
	struct verdict v = lead_of(&inc, rows, ARRAY_SIZE(rows));

	assert_int_equal(v.lead->cause, CAUSE_UNEXPLAINED);
	assert_share(v.lead_share, 80);
	v = lead_of(&inc, rows, 0);
	assert_int_equal(v.lead->cause, CAUSE_UNEXPLAINED);
}

/* Whatever the table: who is named has the most of all in it. */
static void test_headline_agrees_with_its_table(void **state)
{
	static const enum cause causes[] = {CAUSE_PREEMPTED, CAUSE_RUN_QUEUE, CAUSE_BLOCK_IO};
	static const char *const names[] = {"", "a", "b", "c"};
	uint64_t seed = 1;

	for (int trial = 0; trial < 5000; trial++) {
		uint64_t of[ARRAY_SIZE(names)] = {0};
		struct incident_cause rows[12];
		struct incident inc;
		struct verdict v;
		int n = 0;

		for (size_t c = 0; c < ARRAY_SIZE(causes); c++)
			for (uint32_t who = 0; who < ARRAY_SIZE(names); who++) {
				seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
				rows[n] = row(causes[c], who, names[who], (seed >> 33) % 15);
				of[who] += rows[n++].ns;
			}
		v = lead_of(&inc, rows, n);
		for (size_t who = 0; who < ARRAY_SIZE(names); who++)
			if (!v.is_crowd && v.lead->cause != CAUSE_UNEXPLAINED)
				assert_true(of[who] <= of[v.lead->culprit_pid]);
			else
				assert_true(of[who] < 25);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_culprit_of_disk_and_cpu),
		cmocka_unit_test(test_parts_count_together),
		cmocka_unit_test(test_layer_of_the_culprit),
		cmocka_unit_test(test_others_are_not_it),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_too_little),
		cmocka_unit_test(test_headline_agrees_with_its_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
