/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_labels.c - numbers that scripts tell about themselves. */
#include "verdict.h"

#define LABELS 64

static struct verdicts judge(const char *key, const char *const *values)
{
	static struct annotation_label labels[LABELS];
	struct recording rec = {.labels = labels};

	for (; values[rec.label_count]; rec.label_count++) {
		struct annotation_label *l = &labels[rec.label_count];

		*l = (struct annotation_label){.pid = VICTIM,
			.time_ns = SCENE_T0_NS + (int64_t)rec.label_count * (int64_t)NS_PER_S};
		snprintf(l->key, sizeof(l->key), "%s", key);
		snprintf(l->value, sizeof(l->value), "%s", values[rec.label_count]);
	}
	return verdicts_of(&rec);
}

#define CALM "2.3", "2.2", "2.4", "2.3", "2.2", "2.3", "2.2", "2.4", "2.3", "2.2", "2.1", "2.2"

static void test_spike(void **state)
{
	static const char *const values[] = {CALM, CALM, "9.9", CALM, NULL};
	VERDICTS v = judge("train_loss", values);
	const struct incident *i = verdict(&v, PROBLEM_LOSS_SPIKE);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_LOW);
	assert_int_equal(i->count, 1);
	assert_has(i->summary, "rose to 9.9");
	assert_null(verdict(&v, PROBLEM_AMP));
}

static void test_falling_loss_and_other_keys(void **state)
{
	static const char *const falling[] = {"9.9", "8.1", "7.0", "6.0", "5.5", "5.0", "4.4",
		"4.1", "3.9", "3.8", "3.6", "3.5", "3.3", "3.2", "3.4", "3.1", "3.0", "3.3", "2.9",
		NULL};
	static const char *const spike[] = {CALM, CALM, "9.9", NULL};
	static const char *const text[] = {"high", "", "1.0x", NULL};
	VERDICTS calm = judge("loss", falling);
	VERDICTS other = judge("glossary", spike);
	VERDICTS words = judge("loss", text);
	VERDICTS quoted = judge("x'\"; loss", spike);

	assert_int_equal(calm.count + other.count + words.count + quoted.count, 0);
}

static void test_not_a_number(void **state)
{
	static const char *const once[] = {CALM, "nan", CALM, NULL};
	static const char *const lasting[] = {CALM, "nan", "nan", "inf", NULL};
	VERDICTS v = judge("loss", once);
	VERDICTS w = judge("grad_norm", lasting);

	assert_int_equal(verdict(&v, PROBLEM_AMP)->severity, SEVERITY_MEDIUM);
	assert_int_equal(verdict(&w, PROBLEM_AMP)->severity, SEVERITY_HIGH);
	assert_has(verdict(&w, PROBLEM_AMP)->summary, "3 of 15 values are not numbers, 3 in a row");
}

static void test_scale(void **state)
{
	static const char *const settling[] = {"65536", "32768", "16384", "16384", "16384", "16384",
		"16384", "16384", "32768", "32768", "32768", "16384", "16384", NULL};
	static const char *const falling[] = {
		"64", "32", "16", "8", "8", "4", "2", "1", "0.5", NULL};
	VERDICTS calm = judge("amp_scale", settling);
	VERDICTS v = judge("amp_scale", falling);

	assert_int_equal(calm.count, 0);
	assert_int_equal(verdict(&v, PROBLEM_AMP)->severity, SEVERITY_HIGH);
	assert_has(verdict(&v, PROBLEM_AMP)->summary, "lowered 7 times in 9 values, to 0.5");
}

static void test_hostile(void **state)
{
	static const char *const values[] = {"1e308", "-1e308", "1e-320", "0x1p1023", "-0", "1e12",
		"1e12", "1e12", "1e12", "1e12", "1e12", "1e12", "1e12", "1e12", "1e12", "1e12",
		"1e12", "1e12", "1e12", "1e12", "1e12", "1e12", "1e12", "1e12", NULL};
	VERDICTS v = judge("loss", values);

	assert_int_equal(v.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spike),
		cmocka_unit_test(test_falling_loss_and_other_keys),
		cmocka_unit_test(test_not_a_number),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
