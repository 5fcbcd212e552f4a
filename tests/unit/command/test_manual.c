/* SPDX-License-Identifier: Apache-2.0 */
/* test_manual.c - roff from tables: what is escaped, paragraphs, and that nothing is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cluster/cli/commands.h"
#include "command/program.h"

static const struct option_row options[] = {
	{.name = "some-path",
		.letter = 'x',
		.kind = OPTION_STRING,
		.value_name = "PATH",
		.help = ".a 'quote' \\ and `µ`"},
	{.name = "secret", .help = "hidden", .hidden = true},
	{.name = "flag", .help = "'tis"},
	{0},
};

static const struct command made = {
	.name = "made",
	.synopsis = "made [flags]",
	.summary = "Do it",
	.details =
		"First line\nsecond line.\n\n.Next paragraph\n  ingero made   as it is\n  again\n"
		"After it",
	.options = options,
};

static void test_page(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	const char *text;

	manual_page(&b, &ingero_program, &made);
	assert_int_equal(b.err, 0);
	text = buf_str(&b);
	assert_non_null(strstr(text, ".TH INGERO-MADE 1 \"20"));
	assert_non_null(strstr(text, ".SH NAME\ningero\\-made \\- Do it\n"));
	assert_non_null(strstr(text, "\\fB\\-x\\fR, \\fB\\-\\-some\\-path\\fR \\fIPATH\\fR\n"));
	assert_non_null(strstr(text, "\n\\&.a \\(aqquote\\(aq \\e and \\(ga\\[u00B5]\\(ga\n"));
	assert_non_null(strstr(text, "\n\\&\\(aqtis\n"));
	assert_null(strstr(text, "secret"));
	assert_non_null(strstr(text, ".PP\nFirst line\nsecond line.\n.PP\n\\&.Next paragraph\n"
				     ".PP\n.nf\n.RS 2\ningero made   as it is\nagain\n.RE\n.fi\n"
				     ".PP\nAfter it\n"));
	assert_non_null(strstr(text, "\\-\\-debug"));
	for (const char *line = text; (line = strchr(line, '\n')); line++)
		assert_true(line[1] != '\''); /* would be a request */
}

static void test_index(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	manual_index(&b, &ingero_program);
	assert_int_equal(b.err, 0);
	for (const struct command *const *c = ingero_program.commands; *c; c++) {
		_cleanup_buf_ struct buf name = BUF_INIT(128);

		buf_puts(&name, ".BR ingero\\-");
		for (const char *at = (*c)->name; *at; at++)
			buf_printf(&name, "%s%c", *at == '-' ? "\\" : "", *at);
		buf_puts(&name, " (1)\n");
		assert_non_null(strstr(buf_str(&b), buf_str(&name)));
	}
	assert_non_null(strstr(buf_str(&b), ".B 77\nno permission\n"));
	assert_non_null(strstr(buf_str(&b), ".B INGERO_DB\n"));
}

static void test_other_program(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	manual_page(&b, &cluster_program, program_find(&cluster_program, "version"));
	assert_int_equal(b.err, 0);
	assert_non_null(strstr(buf_str(&b), ".TH INGERO-CLUSTER-VERSION 1 "));
	assert_non_null(strstr(buf_str(&b), ".SH SYNOPSIS\n.B ingero\\-cluster\nversion "));
	assert_non_null(strstr(buf_str(&b), ",\n.BR ingero\\-cluster\\-completion (1)"));
	assert_null(strstr(buf_str(&b), ".BR ingero (1)"));
}

static void test_partial_answers(void **state)
{
	_cleanup_buf_ struct buf with = BUF_INIT(1 << 20), without = BUF_INIT(1 << 20);

	manual_page(&with, &ingero_program, program_find(&ingero_program, "query"));
	manual_page(&without, &ingero_program, program_find(&ingero_program, "trace"));
	assert_non_null(strstr(buf_str(&with), "2 if some nodes did and some did not"));
	assert_null(strstr(buf_str(&without), "some nodes"));
}

static void test_rows(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	manual_rows(&b, &ingero_program);
	assert_int_equal(b.err, 0);
	assert_non_null(
		strstr(buf_str(&b), "ingero\tmerge\t`--output PATH`, `-o`\tpath of the merged"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_other_program),
		cmocka_unit_test(test_partial_answers),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
