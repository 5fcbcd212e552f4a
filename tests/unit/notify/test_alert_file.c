/* SPDX-License-Identifier: Apache-2.0 */
/* test_alert_file.c - the file of `trace --notify`: what it may say, and what is refused with its line. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "notify/alert/alerter.h"

#define HOOK "alerts:\n  - type: webhook\n    url: http://127.0.0.1:1/hook\n"

static void read_good(const char *text, enum severity least)
{
	_cleanup_(alert_file_freep) struct alert_file *f = NULL;
	struct errinfo e = {0};

	if (alert_file_read("n.yaml", text, strlen(text), &f, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(f->alerts.count, 1);
	assert_int_equal(f->alerts.receivers[0].type, ALERT_WEBHOOK);
	assert_string_equal(f->alerts.receivers[0].path, "/hook");
	assert_int_equal(f->least, least);
}

static void severities(void **state)
{
	read_good(HOOK, SEVERITY_MEDIUM);
	read_good(HOOK "min_severity: LOW\n", SEVERITY_LOW);
	read_good("min_severity: CRITICAL\n" HOOK, SEVERITY_CRITICAL);
}

static void refused_with_the_line(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"", "alerts"},
		{"min_severity: HIGH\n", "no receiver"},
		{HOOK "min_severity: BAD\n", "n.yaml: line 4"},
		{HOOK "min_severity: high\n", "LOW, MEDIUM, HIGH or CRITICAL"},
		{HOOK "min_severity: [HIGH]\n", "n.yaml: line 4"},
		{HOOK "forward: []\n", "unknown key 'forward'"},
		{HOOK "    secret: s3cret\n", "secret_file"},
		{"alerts:\n  - type: webhook\n    url: http://example.com/x\n", "not encrypted"},
		{"alerts:\n  - type: smoke\n", "line 2"},
		{"alerts: 7\n", "must be a list"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct alert_file *f = NULL;
		struct errinfo e = {0};
		int r = alert_file_read("n.yaml", rows[i].text, strlen(rows[i].text), &f, &e);

		if (r >= 0 || !strstr(e.text, rows[i].words) || strstr(e.text, "s3cret"))
			fail_msg("%s: '%s' lacks '%s'", rows[i].text, e.text, rows[i].words);
		assert_int_equal(errinfo_exit_code(&e, r), EXIT_CONFIG);
		assert_null(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(severities),
		cmocka_unit_test(refused_with_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
