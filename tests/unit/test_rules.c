/* SPDX-License-Identifier: Apache-2.0 */
/* test_rules.c - every verdict that can be reached has its words, and no word is left unfilled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "diagnose/calls/rules.h"

static const struct rule_words words = {.culprit = "C",
	.name = "N",
	.culprit_pid = "8",
	.victim = "V",
	.victim_pid = "4",
	.share = "71 %",
	.traffic = "83 %",
	.lost = "the extra time"};

static void check_text(const char *text, size_t limit)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	rule_text(&b, text, &words);
	assert_int_equal(b.err, 0);
	assert_null(strchr(buf_str(&b), '{'));
	/* The longest names are 15 bytes and two pids; the field must still hold it. */
	assert_in_range(b.len, 1, limit - 64);
}

/* Causes after UNEXPLAINED are of pauses: idle_text.c has the words for them. */
static void test_all_verdicts_have_words(void **state)
{
	for (int c = 0; c <= CAUSE_UNEXPLAINED; c++)
		for (int blame = 0; blame < BLAME_COUNT; blame++) {
			const struct rule *r = rule_find((enum cause)c, (enum blame)blame);

			if (c == CAUSE_UNEXPLAINED && blame < BLAME_MANY) {
				assert_null(r);
				continue;
			}
			assert_non_null(r);
			check_text(r->summary, sizeof(((struct incident *)0)->summary) - 64);
			check_text(r->root_cause, sizeof(((struct incident *)0)->root_cause));
			assert_non_null(r->fixes[0]);
			assert_null(r->fixes[INCIDENT_FIXES]);
			for (int i = 0; r->fixes[i]; i++)
				check_text(
					r->fixes[i], sizeof(((struct incident *)0)->fixes[0]) + 40);
		}
}

static void test_nobody_is_not_named(void **state)
{
	for (int c = 0; c <= CAUSE_UNEXPLAINED; c++) {
		const struct rule *r = rule_find((enum cause)c, BLAME_NOBODY);

		assert_null(strstr(r->summary, "{culprit"));
		assert_null(strstr(r->root_cause, "{culprit"));
		for (int i = 0; r->fixes[i]; i++) {
			assert_null(strstr(r->fixes[i], "{culprit"));
			assert_null(strstr(r->fixes[i], "{name"));
		}
	}
}

static void test_words(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	rule_text(&b,
		"a {culprit} {name} {culprit_pid} {victim} {victim_pid} {share} {traffic} {x} {",
		&words);
	assert_string_equal(buf_str(&b), "a C N 8 V 4 71 % 83 % {x} {");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_verdicts_have_words),
		cmocka_unit_test(test_nobody_is_not_named),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
