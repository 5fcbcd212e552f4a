/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>

#include "record/discover/discover.h"
#include "record/discover/embedded.h"
#include "tree.h"

#define BIT(kind) (1u << (kind))

static unsigned kinds(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return embedded_kinds(fd, path);
}

static void a_library_is_known_by_its_symbols(void **state)
{
	assert_int_equal(kinds(ENGINE), BIT(TARGET_CUDART)); /* inside, not exported */
	assert_int_equal(kinds(CUDART), BIT(TARGET_CUDART)); /* exported */
	assert_int_equal(kinds(NCCL), BIT(TARGET_NCCL));
	assert_int_equal(kinds(WRAPPER), BIT(TARGET_CUDART));
}

static void others_hold_none(void **state)
{
	assert_int_equal(kinds(STUBS), 0);   /* they only jump */
	assert_int_equal(kinds(PROGRAM), 0); /* looked at by itself */
	assert_int_equal(kinds(PLAIN), 0);
	assert_int_equal(kinds(CUDA), 0);
	assert_int_equal(kinds("/proc/self/maps"), 0); /* not even a library */
}

static char root[TREE_MAX], maps[8 * PATH_MAX];

static int setup(void **state)
{
	char path[512];

	tree_init(root);
	maps[0] = 0;
	tree_write(root, "/proc/7/comm", "train\n");
	snprintf(path, sizeof(path), "%s/proc/7/root", root);
	assert_int_equal(symlink("/", path), 0);
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

/* Maps @file into process 7, under the address that is free. */
static void map(const char *file)
{
	static unsigned long at = 0x7f0000000000;
	char real[PATH_MAX];
	size_t used = strlen(maps);
	struct stat st;

	assert_non_null(realpath(file, real));
	assert_int_equal(stat(real, &st), 0);
	snprintf(maps + used, sizeof(maps) - used, "%lx-%lx r-xp 0 %02x:%02x %lu %s\n", at,
		at + 0x1000, (unsigned)major(st.st_dev), (unsigned)minor(st.st_dev), st.st_ino,
		real);
	at += 0x100000;
	tree_write(root, "/proc/7/maps", maps);
}

static int find(struct embedded *e, struct target_library *rows, size_t max, size_t *dropped)
{
	bool is_partial = true;
	int n = embedded_find(e, root, 7, rows, 0, max, dropped, &is_partial);

	assert_false(is_partial);
	return n;
}

static void those_of_a_process_are_found(void **state)
{
	_cleanup_(embedded_freep) struct embedded *e = NULL;
	struct target_library rows[4];
	size_t dropped = 0;

	assert_int_equal(embedded_new(&e), 0);
	map(CUDART); /* ours by its name */
	map(PLAIN);
	map(ENGINE);
	map(STUBS);
	for (int again = 0; again < 2; again++) { /* then from what is kept */
		assert_int_equal(find(e, rows, ARRAY_SIZE(rows), &dropped), 1);
		assert_int_equal(rows[0].kind, TARGET_CUDART);
		assert_true(rows[0].embedded);
		assert_non_null(strstr(rows[0].path, "engine.so"));
	}
	map(WRAPPER);
	assert_int_equal(find(e, rows, ARRAY_SIZE(rows), &dropped), 2);
	assert_int_equal(dropped, 0);
	assert_int_equal(find(e, rows, 1, &dropped), 1);
	assert_int_equal(dropped, 1);
}

static void a_file_that_is_replaced_is_looked_at_again(void **state)
{
	_cleanup_(embedded_freep) struct embedded *e = NULL;
	struct target_library rows[4];
	char copy[512], command[2048];
	size_t dropped = 0;

	assert_int_equal(embedded_new(&e), 0);
	snprintf(copy, sizeof(copy), "%s/kernels.so", root);
	snprintf(command, sizeof(command), "cp %s %s", PLAIN, copy);
	assert_int_equal(system(command), 0);
	map(copy);
	assert_int_equal(find(e, rows, ARRAY_SIZE(rows), &dropped), 0);
	snprintf(command, sizeof(command), "cat %s > %s", ENGINE, copy); /* the same inode */
	assert_int_equal(system(command), 0);
	assert_int_equal(find(e, rows, ARRAY_SIZE(rows), &dropped), 1);
}

static void only_a_process_with_cuda_is_looked_into(void **state)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	struct target_library rows[4];
	size_t dropped;

	assert_int_equal(discover_scanner_new(root, &s), 0);
	map(ENGINE);
	assert_int_equal(discover_scanner_libraries(s, 7, rows, ARRAY_SIZE(rows), &dropped), 0);
	map(CUDA);
	assert_int_equal(discover_scanner_libraries(s, 7, rows, ARRAY_SIZE(rows), &dropped), 2);
	assert_int_equal(rows[0].kind, TARGET_CUDA);
	assert_int_equal(rows[1].kind, TARGET_CUDART);
}

static void one_may_be_named(void **state)
{
	struct target_library l;
	struct errinfo e = {0};

	assert_int_equal(discover_library_file(ENGINE, &l, &e), 0);
	assert_int_equal(l.kind, TARGET_CUDART);
	assert_int_equal(discover_library_file(STUBS, &l, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "contains none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_is_known_by_its_symbols),
		cmocka_unit_test(others_hold_none),
		cmocka_unit_test_setup_teardown(those_of_a_process_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_file_that_is_replaced_is_looked_at_again, setup, teardown),
		cmocka_unit_test_setup_teardown(
			only_a_process_with_cuda_is_looked_into, setup, teardown),
		cmocka_unit_test(one_may_be_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
