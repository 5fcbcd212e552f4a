/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "base/file.h"
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

static void read_keeps_to_its_ceiling(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100), small = BUF_INIT(2);

	tree_write(*state, "/a", "hello");
	assert_int_equal(file_read_at(*state, "/a", 5, &b), 0);
	assert_string_equal(buf_str(&b), "hello");
	buf_clear(&b);
	assert_int_equal(file_read_at(*state, "/a", 4, &b), -EFBIG);
	assert_string_equal(buf_str(&b), "hell");
	assert_int_equal(file_read_at(*state, "/a", 5, &small), -ENOBUFS);
}

static void read_refuses_what_is_no_file(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	char path[512], longest[5000];

	assert_int_equal(file_read_at(*state, "/none", 10, &b), -ENOENT);
	assert_int_equal(file_read_at(*state, "", 10, &b), -EINVAL); /* a directory */
	snprintf(path, sizeof(path), "%s/pipe", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(file_read(path, 10, &b), -EINVAL); /* and does not wait for a writer */
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(file_read_at(*state, longest, 10, &b), -ENAMETOOLONG);
}

static void line_is_the_first(void **state)
{
	char out[8];

	tree_write(*state, "/l", "one\ntwo\n");
	assert_int_equal(file_read_line(*state, "/l", out, sizeof(out)), 0);
	assert_string_equal(out, "one");
	tree_write(*state, "/l", "longer than the room");
	assert_int_equal(file_read_line(*state, "/l", out, sizeof(out)), 0);
	assert_string_equal(out, "longer ");
}

static void proc_files_have_no_size(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);

	assert_int_equal(file_read("/proc/self/status", 65536, &b), 0);
	assert_non_null(strstr(buf_str(&b), "CapEff"));
}

static void write_replaces_and_leaves_nothing(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	char path[512], gone[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/f", (char *)*state);
	tree_write(*state, "/f", "old");
	assert_int_equal(file_write_atomic(path, "new!", 4, 0640), 0);
	assert_int_equal(file_read(path, 100, &b), 0);
	assert_string_equal(buf_str(&b), "new!");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	snprintf(gone, sizeof(gone), "%s/no/f", (char *)*state);
	assert_int_equal(file_write_atomic(gone, "x", 1, 0600), -ENOENT);
	/* the target is a directory: rename fails and the temporary file goes */
	assert_int_equal(file_write_atomic(*state, "x", 1, 0600), -EISDIR);
	snprintf(gone, sizeof(gone),
		"rm %s/f && rmdir %s && ls %s.* 2>/dev/null | wc -l | grep -qx 0", (char *)*state,
		(char *)*state, (char *)*state);
	assert_int_equal(system(gone), 0);
	assert_int_equal(mkdir(*state, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read_keeps_to_its_ceiling, setup, teardown),
		cmocka_unit_test_setup_teardown(read_refuses_what_is_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(line_is_the_first, setup, teardown),
		cmocka_unit_test(proc_files_have_no_size),
		cmocka_unit_test_setup_teardown(write_replaces_and_leaves_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
