/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command/option.h"

struct settings {
	bool json, record;
	const char *db, *mark;
	int64_t last;
	double factor;
	uint64_t duration_ns, size_bytes;
	struct option_pids pids;
	struct option_strings labels;
};

#define AT(field) .offset = offsetof(struct settings, field)
static const struct option_row rows[] = {
	{.name = "json", .letter = 'j', .kind = OPTION_FLAG, AT(json), .help = "JSON"},
	{.name = "record", .kind = OPTION_FLAG, AT(record), .help = "store (default true)"},
	{.name = "db", .kind = OPTION_STRING, AT(db), .value_name = "PATH", .help = "database"},
	{.name = "mark",
		.kind = OPTION_TEXT,
		AT(mark),
		.value_name = "PATH",
		.help = "empty: none"},
	{.name = "last",
		.kind = OPTION_INT,
		AT(last),
		.value_name = "N",
		.help = "n",
		.min = 1,
		.max = 100},
	{.name = "factor",
		.kind = OPTION_NUMBER,
		AT(factor),
		.value_name = "X",
		.help = "x",
		.min = 1000,
		.max = 4000},
	{.name = "duration",
		.letter = 'd',
		.kind = OPTION_DURATION,
		AT(duration_ns),
		.value_name = "D",
		.help = "how long",
		.min = 1},
	{.name = "max-db",
		.kind = OPTION_SIZE,
		AT(size_bytes),
		.value_name = "SIZE",
		.help = "size"},
	{.name = "pid",
		.letter = 'p',
		.kind = OPTION_PIDS,
		AT(pids),
		.value_name = "PID",
		.help = "pids"},
	{.name = "label",
		.letter = 'l',
		.kind = OPTION_STRINGS,
		AT(labels),
		.value_name = "K=V",
		.help = "labels"},
	{.name = "elsewhere", .kind = OPTION_REFUSED, .help = "use --db", .hidden = true},
	{.name = "secret", .kind = OPTION_FLAG, AT(json), .help = "never shown", .hidden = true},
	{0},
};
static const struct command test_command = {.name = "test",
	.synopsis = "test [flags] [ARG...]",
	.summary = "Test",
	.details = "More.",
	.options = rows,
	.settings_size = sizeof(struct settings),
	.max_args = 3};

static struct settings got;
static struct errinfo err;
static char *args[16];
static int first, arg_count;

/* Splits at spaces and parses; "_" stands for an empty argument. */
static int parse(const char *line)
{
	static char text[512];

	snprintf(text, sizeof(text), "test %s", line);
	got = (struct settings){.record = true};
	err = (struct errinfo){0};
	arg_count = 0;
	for (char *p = strtok(text, " "); p; p = strtok(NULL, " "))
		args[arg_count++] = strcmp(p, "_") == 0 ? (char *)"" : p;
	first = -1;
	return option_parse(&test_command, arg_count, args, &got, &first, &err);
}

static void values_in_all_forms(void **state)
{
	assert_int_equal(
		parse("--json --db=a=b --last 7 -d 5s --max-db 10g -p 1,2 --pid 3 --pid=2"), 0);
	assert_true(got.json && got.record);
	assert_string_equal(got.db, "a=b");
	assert_int_equal(got.last, 7);
	assert_int_equal(got.duration_ns, 5000000000);
	assert_int_equal(got.size_bytes, 10ULL << 30);
	assert_int_equal(got.pids.count, 3);
	assert_int_equal(got.pids.pid[2], 3);
	assert_int_equal(first, arg_count);
	assert_int_equal(parse("--record=false -jd500ms"), 0);
	assert_true(got.json && !got.record);
	assert_int_equal(got.duration_ns, 500000000);
	assert_int_equal(parse("-d=2s --mark _"), 0);
	assert_int_equal(got.duration_ns, 2000000000);
	assert_string_equal(got.mark, "");
	/* what a script's unset variable leaves */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(parse(i ? "--db=" : "--db _"), -EINVAL);
		assert_string_equal(err.text, "--db: the value is empty: give PATH");
	}
	assert_int_equal(parse("--db --json"), 0); /* a value is a value */
	assert_string_equal(got.db, "--json");
}

/* What stands behind -- is a command's, flags and all; in front of it are ours. */
static void a_command_keeps_its_words(void **state)
{
	struct command runs = test_command;
	char *words[] = {(char *)"test", (char *)"--json", (char *)"--", (char *)"python",
		(char *)"--db", (char *)"x", (char *)"--"};

	runs.runs_command = true;
	runs.max_args = 0;
	got = (struct settings){0};
	assert_int_equal(option_parse(&runs, 7, words, &got, &first, &err), 0);
	assert_true(got.json && !got.db);
	assert_int_equal(first, 3);
	assert_string_equal(words[3], "python");
	assert_string_equal(words[6], "--");
	assert_int_equal(option_parse(&runs, 2, words, &got, &first, &err), 0);
	assert_int_equal(first, 2);
	assert_int_equal(option_parse(&runs, 3, words, &got, &first, &err), -EINVAL);
	assert_string_equal(err.text, "test: no command given after --");
	words[1] = (char *)"python";
	assert_int_equal(option_parse(&runs, 4, words, &got, &first, &err), -EINVAL);
	assert_string_equal(
		err.text, "test: unexpected argument 'python': put the command to run after --");
}

static void numbers_have_a_range(void **state)
{
	static const char *const wrong[] = {"--factor nan", "--factor inf", "--factor 0x2",
		"--factor 0.999", "--factor 4.001", "--factor 2x", "--factor _", "--factor 2e0"};

	assert_int_equal(parse("--factor 2.5"), 0);
	assert_float_equal(got.factor, 2.5, 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(parse(wrong[i]), -EINVAL);
	assert_int_equal(parse("--factor 5"), -EINVAL);
	assert_string_equal(err.text, "--factor: '5' is not a number from 1 to 4");
}

static void strings_are_collected(void **state)
{
	static char *many[2 * 65 + 1];

	assert_int_equal(parse("--label a=b -l c=d,e --label=f"), 0);
	assert_int_equal(got.labels.count, 3);
	assert_string_equal(got.labels.value[1], "c=d,e");
	assert_string_equal(got.labels.value[2], "f");
	many[0] = (char *)"test";
	for (size_t i = 1; i < ARRAY_SIZE(many); i++)
		many[i] = i % 2 ? (char *)"-l" : (char *)"x";
	got = (struct settings){0};
	assert_int_equal(
		option_parse(&test_command, ARRAY_SIZE(many), many, &got, &first, &err), -EINVAL);
	assert_string_equal(err.text, "--label: given more than 64 times");
}

static void positionals_keep_their_order(void **state)
{
	assert_int_equal(parse("one --json two -d 5s -- --three"), 0);
	assert_int_equal(arg_count - first, 3);
	assert_string_equal(args[first], "one");
	assert_string_equal(args[first + 1], "two");
	assert_string_equal(args[first + 2], "--three");
	assert_true(got.json);
	assert_int_equal(got.duration_ns, 5000000000);
	assert_int_equal(parse("- --"), 0);
	assert_int_equal(arg_count - first, 1);
	assert_string_equal(args[first], "-");
	assert_int_equal(parse("a b c d"), -EINVAL);
	assert_string_equal(err.text, "test: unexpected argument 'd'");
	assert_int_equal(parse("a b c /"), -EINVAL); /* there is such a file, and a --db */
	assert_string_equal(
		err.text, "test: unexpected argument '/': use --db to name a recording");
	/* a flag at the end must not take a positional argument that stood before it */
	assert_int_equal(parse("one --db"), -EINVAL);
	assert_string_equal(err.text, "--db needs a value: PATH");
}

static void mistakes_are_explained(void **state)
{
	static const struct {
		const char *line, *text;
	} bad[] = {
		{"--jsno", "unknown flag --jsno: did you mean --json?"},
		{"--duraton=5s", "unknown flag --duraton: did you mean --duration?"},
		{"--zzz", "unknown flag --zzz"},
		{"--secre", "unknown flag --secre"},
		{"-x", "unknown flag -x"},
		{"-\x1b", "unknown flag -\\x1b"},
		{"--json=maybe", "--json: 'maybe' is not true or false"},
		{"--last 0", "--last: '0' is not a whole number from 1 to 100"},
		{"--last 7x", "--last: '7x' is not a whole number from 1 to 100"},
		{"--last 99999999999999999999",
			"--last: '99999999999999999999' is not a whole number from 1 to 100"},
		{"-d 5", "--duration: '5' is not a duration like 30s, 500ms or 1h30m"},
		{"-d 0s", "--duration: '0s' is not longer than 0"},
		{"--max-db -1", "--max-db: '-1' is not a size like 10g, 500m or 0"},
		{"--pid 1,,2", "--pid: '1,,2' is not a process id or a list like 12,34"},
		{"--pid 0", "--pid: '0' is not a process id or a list like 12,34"},
		{"--pid -4", "--pid: '-4' is not a process id or a list like 12,34"},
		{"--pid 4194305", "--pid: '4194305' is not a process id or a list like 12,34"},
		{"-d", "-d needs a value: D"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse(bad[i].line), -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		assert_int_equal(first, -1);
	}
}

static void pids_have_a_ceiling(void **state)
{
	char line[512] = "--pid 1";

	for (int i = 2; i <= 64; i++)
		sprintf(line + strlen(line), ",%d", i);
	assert_int_equal(parse(line), 0);
	assert_int_equal(got.pids.count, 64);
	strcat(line, ",65");
	assert_int_equal(parse(line), -EINVAL);
	assert_string_equal(err.text, "--pid: more than 64 processes");
}

static void help_is_asked_for(void **state)
{
	assert_int_equal(parse("--help"), 1);
	assert_int_equal(parse("-jh"), 1);
	assert_int_equal(parse("--json x --help"), 1);
}

static void a_refused_flag_says_what_to_use(void **state)
{
	const char *const lines[] = {"--elsewhere", "--elsewhere=3", "--elsewhere 3 --json"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(parse(lines[i]), -EOPNOTSUPP);
		assert_int_equal(errinfo_exit_code(&err, -EOPNOTSUPP), EXIT_USAGE);
		assert_string_equal(err.text, "--elsewhere is not accepted: use --db");
	}
}

static void help_lists_what_is_not_hidden(void **state)
{
	char out[2048] = "";
	FILE *f = tmpfile();
	int saved = dup(STDOUT_FILENO);

	fflush(stdout);
	dup2(fileno(f), STDOUT_FILENO);
	option_print_help("ingero", &test_command);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(f);
	assert_true(fread(out, 1, sizeof(out) - 1, f) > 0);
	fclose(f);
	assert_non_null(strstr(out, "Usage:\n  ingero test [flags] [ARG...]\n"));
	assert_non_null(strstr(out, "  -d, --duration D   how long\n"));
	assert_non_null(strstr(out, "      --max-db SIZE  size\n"));
	assert_non_null(strstr(out, "  -h, --help         show this help\n"));
	assert_null(strstr(out, "secret"));
	assert_non_null(strstr(out, "\nMore.\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_in_all_forms),
		cmocka_unit_test(positionals_keep_their_order),
		cmocka_unit_test(a_command_keeps_its_words),
		cmocka_unit_test(numbers_have_a_range),
		cmocka_unit_test(strings_are_collected),
		cmocka_unit_test(mistakes_are_explained),
		cmocka_unit_test(pids_have_a_ceiling),
		cmocka_unit_test(help_is_asked_for),
		cmocka_unit_test(a_refused_flag_says_what_to_use),
		cmocka_unit_test(help_lists_what_is_not_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
