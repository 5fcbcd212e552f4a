/* SPDX-License-Identifier: Apache-2.0 */
/* test_script.c - of a command line the script's name is kept, without its folder and what is said to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macros.h"
#include "model/identity.h"

static void test_names(void **state)
{
	static const struct {
		const char *command, *script;
	} rows[] = {
		{"python3 train.py --lr 1", "train.py"},
		{"/usr/bin/python3.12 -u -W ignore /home/u/train.py", "train.py"},
		{"python -m torch.distributed.run train.py", "torch.distributed.run"},
		{"python3 -um pkg.train secret", "pkg.train"},
		{"python3 -c import secret", ""},
		{"python3 -c from secret import multiprocessing.spawn", ""},
		{"python3 -c from multiprocessing.spawn import spawn_main; spawn_main(5)",
			"multiprocessing.spawn"},
		{"python3 -X dev --version", ""},
		{"python3 -", ""},
		{"python3", ""},
		{"bash -e /srv/jobs/build.sh now", "build.sh"},
		{"sh -c make secret", ""},
		{"/opt/xz -9 secret.tar", ""},
		{"pythonic secret.py", ""},
		{"", ""},
	};
	char out[SCRIPT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(
			script_of(rows[i].command, strlen(rows[i].command), out), rows[i].script);
}

static void test_arguments_of_proc(void **state)
{
	static const char args[] = "python3\0-u\0/home/u/my work/train it.py\0--x\0";
	static const char spawned[] =
		"python3\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(5)\0--x\0";
	char out[SCRIPT_MAX], longest[400] = "python3 ";

	assert_string_equal(script_of(args, sizeof(args) - 1, out), "train it.py");
	assert_string_equal(script_of(spawned, sizeof(spawned) - 1, out), "multiprocessing.spawn");
	memset(longest + 8, 'a', sizeof(longest) - 9);
	assert_int_equal(strlen(script_of(longest, strlen(longest), out)), SCRIPT_MAX - 1);
}

static void test_runners(void **state)
{
	static const char *const runners[] = {
		"python3", "python3.12", "node", "MainThread", "bash"};
	static const char *const others[] = {"", "pythonic", "compactor", "xz", "pt_data_worker"};

	for (size_t i = 0; i < ARRAY_SIZE(runners); i++) {
		assert_true(script_is_runner(runners[i]));
		assert_false(script_is_runner(others[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_arguments_of_proc),
		cmocka_unit_test(test_runners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
