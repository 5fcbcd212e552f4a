/* SPDX-License-Identifier: Apache-2.0 */
/* test_problem.c - the catalogue is complete, and docs/detections.md says the same.
 *
 * `test_problem --print` prints the table that the document has to hold: after a change of
 * model/problem.c, put it there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"
#include "model/problem.h"

#define LINE_MAX_BYTES 1024

static bool has_scenario(const char *id, const char *kind)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), SCENARIOS "/%s%s.json", id, kind);
	return stat(path, &st) == 0;
}

static void row_write(enum problem p, char out[LINE_MAX_BYTES])
{
	const struct problem_row *r = problem_row(p);

	snprintf(out, LINE_MAX_BYTES, "| %s | `%s` | %s | %s | %s | %s |\n", r->number, r->id,
		r->title, severity_name(r->worst), r->text->seen_by, r->text->limits);
}

static char *document(void)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(DETECTIONS, "re");
	size_t n;

	assert_non_null(text);
	assert_non_null(f);
	n = fread(text, 1, (1 << 20) - 1, f);
	assert_true(n > 0 && n < (1 << 20) - 1);
	fclose(f);
	return text;
}

static void test_rows_are_complete(void **state)
{
	for (int p = 0; p < PROBLEM_COUNT; p++) {
		const struct problem_row *r = problem_row((enum problem)p);

		assert_true(r->id[0] && r->title[0] && r->text->seen_by[0] && r->text->hint[0]);
		assert_non_null(r->text->limits);
		assert_true(r->worst < SEVERITY_COUNT);
		for (int q = 0; q < p; q++)
			assert_string_not_equal(r->id, problem_row((enum problem)q)->id);
		for (int k = 0; k < INCIDENT_FIXES && r->text->fixes[k]; k++) {
			assert_true(r->text->fixes[k][0]);
			assert_true(strlen(r->text->fixes[k]) <
				    sizeof(((struct incident *)0)->fixes[0]));
		}
	}
	assert_ptr_equal(problem_row(PROBLEM_COUNT), problem_row(PROBLEM_SLOW_CALL));
}

static void test_document(void **state)
{
	_cleanup_free_ char *text = document();
	char line[LINE_MAX_BYTES];
	size_t rows = 0;

	for (int p = 0; p < PROBLEM_COUNT; p++) {
		row_write((enum problem)p, line);
		assert_true(strlen(line) < LINE_MAX_BYTES - 1);
		if (!strstr(text, line))
			fail_msg("docs/detections.md lacks this row (test_problem --print): %s",
				line);
	}
	for (const char *at = text; (at = strstr(at, " | `")); at++)
		rows++;
	assert_int_equal(rows, PROBLEM_COUNT); /* and none that the catalogue does not have */
	row_write(PROBLEM_PCIE, line);
	line[strlen(line) - 4] ^= 1;
	assert_null(strstr(text, line)); /* control: a changed row would be seen */
}

/* Every scenario has its look-alike. */
static void test_scenarios_are_pairs(void **state)
{
	int pairs = 0;

	for (int p = 0; p < PROBLEM_COUNT; p++) {
		const char *id = problem_row((enum problem)p)->id;

		assert_int_equal(has_scenario(id, ""), has_scenario(id, "-lookalike"));
		pairs += has_scenario(id, "");
	}
	assert_true(pairs > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_complete),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_scenarios_are_pairs),
	};
	char line[LINE_MAX_BYTES];

	if (argc > 1 && !strcmp(argv[1], "--print")) {
		for (int p = 0; p < PROBLEM_COUNT; p++) {
			row_write((enum problem)p, line);
			fputs(line, stdout);
		}
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
