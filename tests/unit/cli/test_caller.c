/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace_command.h"

static const char environ_text[] =
	"PATH=/home/me/venv/bin:/usr/bin\0LD_LIBRARY_PATH=/opt\0\0nonsense\0HOME=/home/me\0PATH=/second";

static void the_environment_of_sudo(void **state)
{
	struct caller c = CALLER_INIT;

	assert_int_equal(caller_take_environ(&c, environ_text, sizeof(environ_text)), 0);
	assert_int_equal(c.env_count, 3);
	assert_null(c.envp[3]);
	assert_string_equal(caller_variable(&c, "LD_LIBRARY_PATH"), "/opt");
	assert_string_equal(caller_variable(&c, "PATH"), "/second");
	assert_null(caller_variable(&c, "PAT"));
	assert_null(caller_variable(&c, "nonsense"));
	caller_done(&c);
	assert_int_equal(caller_take_environ(&c, "", 0), 0);
	assert_int_equal(c.env_count, 0);
	caller_done(&c);
}

static size_t assign(struct caller *c, const char *words, size_t len, size_t own)
{
	caller_done(c);
	assert_int_equal(caller_take_environ(c, environ_text, sizeof(environ_text)), 0);
	assert_int_equal(caller_take_assignments(c, words, len, own), 0);
	return c->env_count;
}
#define ASSIGN(words, own) assign(&c, words, sizeof(words), own)

/* Those right before our own words, whatever options stand before them, and none of ours. */
static void what_its_command_line_sets(void **state)
{
	struct caller c = CALLER_INIT;

	assert_int_equal(ASSIGN("sudo\0ingero\0trace\0--\0env\0X=1", 5), 3);
	assert_int_equal(
		ASSIGN("sudo\0-p\0A=prompt\0-E\0CUDA_VISIBLE_DEVICES=1\0HOME=/x\0ingero\0trace", 2),
		4);
	assert_string_equal(caller_variable(&c, "CUDA_VISIBLE_DEVICES"), "1");
	assert_string_equal(caller_variable(&c, "HOME"), "/x");
	assert_null(caller_variable(&c, "A"));
	assert_int_equal(ASSIGN("sudo\0A=\0B_1=2 3\0ingero", 1), 5);
	assert_string_equal(caller_variable(&c, "A"), "");
	assert_string_equal(caller_variable(&c, "B_1"), "2 3");
	assert_int_equal(ASSIGN("sudo\0A=1\0-u\0root\0ingero", 1), 3);
	assert_int_equal(ASSIGN("sudo", 7), 3);
	assert_int_equal(ASSIGN("sudo\0009=1\0=2\0a-b=3\0ingero", 1), 3);
	caller_done(&c);
}

static void without_sudo_it_is_ours(void **state)
{
	struct caller c;

	unsetenv("SUDO_UID");
	setenv("INGERO_TEST_CALLER", "here", 1);
	assert_int_equal(caller_find(&c, NULL), 0);
	assert_false(c.is_other);
	assert_string_equal(c.note, "");
	assert_string_equal(caller_variable(&c, "INGERO_TEST_CALLER"), "here");
	caller_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environment_of_sudo),
		cmocka_unit_test(what_its_command_line_sets),
		cmocka_unit_test(without_sudo_it_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
