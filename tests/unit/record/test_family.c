/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>

#include "record/discover/cgroup.h"
#include "base/macros.h"
#include "tree.h"

#define CUDART "7f0000000000-7f0000010000 r-xp 0 08:01 5 /opt/libcudart.so.12\n"
#define PLAIN  "7f1000000000-7f1000010000 r-xp 0 08:01 7 /usr/lib/libc.so.6\n"

static char root[TREE_MAX];

static void put_process(int pid, int ppid, const char *comm, const char *maps)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	snprintf(text, sizeof(text),
		"%d (%s) S %d 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 1 0 100 5000 42\n", pid, comm, ppid);
	tree_write(root, path, text);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	tree_write(root, path, maps);
}

/* 10 - 11 - 13 - 14, 10 - 12; 20 is a stranger; 30 says it is its own parent. */
static int setup(void **state)
{
	tree_init(root);
	put_process(10, 1, "launcher", PLAIN);
	put_process(14, 13, "x) S 10 (y", PLAIN); /* its name claims to be a child of 10 */
	put_process(13, 11, "worker", CUDART);
	put_process(11, 10, "sh", PLAIN);
	put_process(12, 10, "logger", PLAIN);
	put_process(20, 1, "bash", PLAIN);
	put_process(30, 30, "loop", PLAIN);
	tree_write(root, "/proc/uptime", "1 1\n");
	tree_write(root, "/proc/99/stat", "garbage");
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

static bool has(const uint32_t *list, int n, uint32_t pid)
{
	for (int i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

static void descendants_at_any_depth(void **state)
{
	uint32_t list[16];
	int n = family_list(root, 10, list, ARRAY_SIZE(list));

	assert_int_equal(n, 5);
	assert_int_equal(list[0], 10);
	for (uint32_t pid = 11; pid <= 14; pid++)
		assert_true(has(list, n, pid));
	assert_int_equal(family_list(root, 13, list, ARRAY_SIZE(list)), 2);
	assert_int_equal(family_list(root, 20, list, ARRAY_SIZE(list)), 1);
	assert_int_equal(family_list(root, 30, list, ARRAY_SIZE(list)), 1);
}

static void the_ceiling_holds(void **state)
{
	uint32_t list[4] = {0, 0, 0, 77};

	assert_int_equal(family_list(root, 10, list, 3), 3);
	assert_int_equal(list[0], 10);
	assert_int_equal(list[3], 77);
}

static void no_such_process(void **state)
{
	uint32_t list[4];
	struct errinfo e = {0};

	assert_int_equal(family_list(root, 55, list, ARRAY_SIZE(list)), -ESRCH);
	assert_int_equal(family_list(root, 99, list, ARRAY_SIZE(list)), -ESRCH);
	assert_int_equal(family_uses_cuda(root, 55, &e), -ESRCH);
	assert_non_null(strstr(e.text, "no process 55"));
}

static void cuda_in_the_family(void **state)
{
	struct errinfo e = {0};

	assert_int_equal(family_uses_cuda(root, 13, &e), 0); /* itself */
	assert_int_equal(family_uses_cuda(root, 10, &e), 0); /* a grandchild */
	assert_int_equal(e.text[0], 0);
	assert_int_equal(family_uses_cuda(root, 20, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "process 20 (bash) is not a CUDA process"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(descendants_at_any_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(the_ceiling_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(no_such_process, setup, teardown),
		cmocka_unit_test_setup_teardown(cuda_in_the_family, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
