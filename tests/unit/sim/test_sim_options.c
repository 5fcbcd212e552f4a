// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "options.h"

struct settings {
	uint64_t number, maybe;
	const char *text;
	bool flag;
};

#define FIELD(f) offsetof(struct settings, f)
static const struct option_row rows[] = {
	{"number", OPTION_NUMBER, FIELD(number), "a number", 1, 100, 0},
	{"maybe", OPTION_MAYBE, FIELD(maybe), "a number or nothing", 1, 100, 7},
	{"text", OPTION_TEXT, FIELD(text), "a text", 0, 0, 0},
	{"flag", OPTION_SWITCH, FIELD(flag), "on", 0, 0, 0},
	{NULL, 0, 0, NULL, 0, 0, 0},
};

static struct settings parse(int argc, const char **argv)
{
	struct settings s = {.number = 3, .text = "default"};

	optind = 0;
	options_parse(rows, argc, (char **)argv, "a test", &s);
	return s;
}

static void leave_at_once(int status, void *arg)
{
	_exit(status);
}

/* How a program with @argument would end. The child is spared a leak check: it takes seconds. */
static int status_of(const char *argument)
{
	const char *argv[] = {"x", argument, NULL};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout))
			_exit(99);
		on_exit(leave_at_once, NULL);
		parse(2, argv);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void test_values(void **state)
{
	const char *none[] = {"x", NULL};
	const char *all[] = {"x", "--number", "1e2", "--maybe", "--text=a b", "--flag", NULL};
	const char *given[] = {"x", "--maybe=9", NULL};
	struct settings s = parse(1, none);

	assert_int_equal(s.number, 3);
	assert_string_equal(s.text, "default");
	assert_false(s.flag);
	s = parse(6, all);
	assert_int_equal(s.number, 100);
	assert_int_equal(s.maybe, 7);
	assert_string_equal(s.text, "a b");
	assert_true(s.flag);
	assert_int_equal(parse(2, given).maybe, 9);
}

static void test_mistakes_end_with_64(void **state)
{
	assert_int_equal(status_of("--number=5"), 0);
	assert_int_equal(status_of("--number=101"), 64);
	assert_int_equal(status_of("--number=five"), 64);
	assert_int_equal(status_of("--unknown"), 64);
	assert_int_equal(status_of("stray"), 64);
	assert_int_equal(status_of("--help"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_mistakes_end_with_64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
