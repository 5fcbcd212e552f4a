/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "record/discover/discover.h"
#include "tree.h"

static int setup(void **state)
{
	*state = malloc(TREE_MAX);
	tree_init(*state);
	return 0;
}

static int teardown(void **state)
{
	tree_done(*state);
	free(*state);
	return 0;
}

#define STAT_TAIL " S 7 1 1 0 -1 4194560 1 0 0 0 3 4 0 0 20 0 5 0 98765 123456789 42 1 2 3\n"

static void facts_of_a_process(void **state)
{
	struct discover_process p;

	tree_write(*state, "/proc/12/stat", "12 (python3)" STAT_TAIL);
	tree_write(
		*state, "/proc/12/status", "Name:\tpython3\nUmask:\t0022\nUid:\t1000\t0\t0\t0\n");
	tree_write_len(*state, "/proc/12/cmdline",
		"python3\0train.py\0--lr\0"
		"1\0",
		24);
	tree_write(*state, "/proc/12/cgroup", "5:cpu:/old\n0::/system.slice/x.scope\n");
	assert_int_equal(discover_process(*state, 12, &p), 0);
	assert_int_equal(p.pid, 12);
	assert_int_equal(p.ppid, 7);
	assert_int_equal(p.uid, 1000);
	assert_int_equal(p.threads, 5);
	assert_int_equal(p.start_ticks, 98765);
	assert_int_equal(p.vsize_bytes, 123456789);
	assert_string_equal(p.comm, "python3");
	assert_string_equal(p.cmdline, "python3 train.py --lr 1");
	assert_string_equal(p.cgroup, "/system.slice/x.scope");
}

static void names_are_any_bytes(void **state)
{
	static const char *const names[] = {
		") S 1 1", "a) R 9 9 9", "(", ")", "", "\n", "x (y) z", "0123456789abcde"};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct discover_process p;

		snprintf(text, sizeof(text), "12 (%s)%s", names[i], STAT_TAIL);
		tree_write(*state, "/proc/12/stat", text);
		assert_int_equal(discover_process_stat(*state, 12, &p), 0);
		assert_string_equal(p.comm, names[i]);
		assert_int_equal(p.start_ticks, 98765);
	}
}

static void nonsense_is_refused(void **state)
{
	static const char *const texts[] = {"", "12", "12 (x", "12 x) S", "12 (x)",
		"12 )x(" STAT_TAIL, "12 (x) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 5 0 98765",
		"12 (x) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 5 0 9x 8\n",
		"12 (x) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 5 0 99999999999999999999999 8\n"};
	struct discover_process p = {.pid = 4711};

	assert_int_equal(discover_process(*state, 12, &p), -ESRCH);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		tree_write(*state, "/proc/12/stat", texts[i]);
		assert_int_equal(discover_process_stat(*state, 12, &p), -EBADMSG);
	}
	assert_int_equal(p.pid, 4711);
}

static void long_command_lines_are_cut(void **state)
{
	static char cmdline[100000];
	struct discover_process p;

	memset(cmdline, 'x', sizeof(cmdline));
	tree_write(*state, "/proc/12/stat", "12 (a)" STAT_TAIL);
	tree_write(*state, "/proc/12/status", "Name:\ta\nUid:\t0\t0\n");
	tree_write_len(*state, "/proc/12/cmdline", cmdline, sizeof(cmdline));
	assert_int_equal(discover_process(*state, 12, &p), 0);
	assert_int_equal(strlen(p.cmdline), TARGET_CMDLINE_MAX - 1);
	assert_string_equal(p.cgroup, "");
}

/* A user of a thousand groups: what comes after them is not read whole, and then not guessed. */
static void a_long_status_is_cut(void **state)
{
	static char status[16384] = "Name:\ta\nUid:\t1000\t0\nGroups:\t";
	size_t len = strlen(status);
	uint32_t uid = 0;

	tree_write(*state, "/proc/12/status", "Name:\ta\nCpus_allowed:\tff,0000000f\n");
	assert_int_equal(discover_cpus(*state, 12), 12);
	memset(status + len, '7', 8100 - len);
	strcpy(status + 8100, "\nCpus_allowed:\t"
			      "ffffffff,ffffffff,ffffffff,ffffffff,ffffffff,ffffffff,"
			      "ffffffff,ffffffff,ffffffff,ffffffff,ffffffff,ffffffff\n");
	tree_write(*state, "/proc/12/status", status);
	assert_int_equal(discover_uid(*state, 12, &uid), 0);
	assert_int_equal(uid, 1000);
	assert_int_equal(discover_cpus(*state, 12), 0);
}

static void this_process_is_found(void **state)
{
	struct discover_process p;

	assert_int_equal(discover_process("", (uint32_t)getpid(), &p), 0);
	assert_int_equal(p.uid, getuid());
	assert_int_equal(p.ppid, getppid());
	assert_true(p.start_ticks > 0 && p.vsize_bytes > 0 && p.threads >= 1);
	assert_non_null(strstr(p.cmdline, "test_process"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(facts_of_a_process, setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_any_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(long_command_lines_are_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_status_is_cut, setup, teardown),
		cmocka_unit_test(this_process_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
