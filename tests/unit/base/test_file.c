/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>

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

/* What a reader gets of @path below the folder "/inside": the first bytes, or "" and an error. */
static int read_inside(const char *tree, const char *path, int flags, char out[16])
{
	_cleanup_fd_ int fd = -1;
	char root[512];
	ssize_t n;

	snprintf(root, sizeof(root), "%s/inside", tree);
	out[0] = 0;
	fd = file_open_inside(root, path, flags, NULL);
	if (fd < 0)
		return fd;
	n = read(fd, out, 15);
	assert_true(n >= 0);
	out[n] = 0;
	return 0;
}

static void link_in(const char *tree, const char *to, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/inside/%s", tree, name);
	assert_int_equal(symlink(to, path), 0);
}

/* Links that lead out of the root; each leads there if it is followed by an ordinary open(2). */
static void inside_no_link_leads_out(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	static const char *const names[] = {"absolute", "up", "folder/secret", "magic/secret"};
	char secret[512], magic[64], out[16];
	_cleanup_fd_ int dir = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	tree_write(*state, "/secret", "stolen");
	tree_write(*state, "/inside/etc/a", "own");
	snprintf(secret, sizeof(secret), "%s/secret", (char *)*state);
	snprintf(magic, sizeof(magic), "/proc/self/fd/%d", dir);
	link_in(*state, secret, "absolute");
	link_in(*state, "../secret", "up");
	link_in(*state, *state, "folder");
	link_in(*state, magic, "magic");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[512], plain[600];

		snprintf(path, sizeof(path), "/%s", names[i]);
		snprintf(plain, sizeof(plain), "/inside/%s", names[i]);
		buf_clear(&b);
		assert_int_equal(file_read_at(*state, plain, 100, &b), 0); /* the control */
		assert_string_equal(buf_str(&b), "stolen");
		assert_true(read_inside(*state, path, 0, out) < 0);
	}
	assert_true(read_inside(*state, "/../secret", 0, out) < 0);

	/* Absolute links of the inside lead to where its processes find them. */
	link_in(*state, "/etc/a", "good");
	link_in(*state, "../../../etc", "etc2");
	assert_int_equal(read_inside(*state, "/good", 0, out), 0);
	assert_string_equal(out, "own");
	assert_int_equal(read_inside(*state, "/etc2/a", 0, out), 0);
	assert_string_equal(out, "own");
	assert_int_equal(read_inside(*state, "/good", O_NOFOLLOW, out), -EINVAL);
	assert_int_equal(read_inside(*state, "/etc2/a", O_NOFOLLOW, out), 0);
}

static void inside_only_regular_files_are_opened(void **state)
{
	char path[512], out[16];

	tree_write(*state, "/inside/a", "own");
	snprintf(path, sizeof(path), "%s/inside/pipe", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_inside(*state, "/pipe", 0, out), -EINVAL); /* does not wait */
	assert_int_equal(read_inside(*state, "/", 0, out), -EINVAL);
	assert_int_equal(read_inside(*state, "/none", 0, out), -ENOENT);
	assert_int_equal(read_inside(*state, "/a", 0, out), 0); /* the control */
	assert_int_equal(file_open_inside("/none/at/all", "/a", 0, NULL), -ENOENT);
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
	/* a directory is not replaced, and nothing is left beside it */
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
		cmocka_unit_test_setup_teardown(inside_no_link_leads_out, setup, teardown),
		cmocka_unit_test_setup_teardown(
			inside_only_regular_files_are_opened, setup, teardown),
		cmocka_unit_test_setup_teardown(line_is_the_first, setup, teardown),
		cmocka_unit_test(proc_files_have_no_size),
		cmocka_unit_test_setup_teardown(write_replaces_and_leaves_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
