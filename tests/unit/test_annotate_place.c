/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "agent/annotate/socket_path.h"

static void in_folder(struct scratch *s, const char *name, char out[ANNOTATE_PATH_MAX])
{
	assert_true(snprintf(out, ANNOTATE_PATH_MAX, "%s/%s", s->folder, name) < ANNOTATE_PATH_MAX);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_a_folder_of_its_own(void **state)
{
	struct scratch *s = *state;
	char path[ANNOTATE_PATH_MAX], folder[ANNOTATE_PATH_MAX];
	struct errinfo err = {0};
	int fd = -1;

	in_folder(s, "new", folder);
	in_folder(s, "new/a.sock", path);
	if (socket_path_bind(path, ANNOTATE_NO_GROUP, &fd, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(mode_of(folder), 0700);
	assert_int_equal(mode_of(path), 0600);
	/* another process listens: refused; it is gone: replaced */
	assert_int_equal(socket_path_bind(path, ANNOTATE_NO_GROUP, &fd, &err), -EBUSY);
	close(fd);
	assert_int_equal(socket_path_bind(path, getegid(), &fd, &err), 0);
	assert_int_equal(mode_of(folder), 0710);
	assert_int_equal(mode_of(path), 0770);
	close(fd);
}

static void test_unsafe_folders(void **state)
{
	struct scratch *s = *state;
	char path[ANNOTATE_PATH_MAX], folder[ANNOTATE_PATH_MAX], link[ANNOTATE_PATH_MAX];
	struct errinfo err = {0};
	int fd = -1;

	in_folder(s, "open", folder);
	in_folder(s, "open/a.sock", path);
	assert_int_equal(mkdir(folder, 0700), 0);
	for (mode_t mode = 0720; mode; mode = mode == 0720 ? 0702 : 0) {
		assert_int_equal(chmod(folder, mode), 0);
		assert_int_equal(socket_path_bind(path, ANNOTATE_NO_GROUP, &fd, &err), -EPERM);
		assert_int_equal(mode_of(folder), mode); /* left alone */
	}
	assert_int_equal(chmod(folder, 0700), 0);
	in_folder(s, "link", link);
	assert_int_equal(symlink(folder, link), 0);
	in_folder(s, "link/a.sock", link);
	assert_int_equal(socket_path_bind(link, ANNOTATE_NO_GROUP, &fd, &err), -EPERM);
	assert_int_equal(socket_path_bind(path, ANNOTATE_NO_GROUP, &fd, &err), 0); /* control */
	close(fd);
	assert_int_equal(socket_path_bind("a.sock", ANNOTATE_NO_GROUP, &fd, &err), -EINVAL);
	assert_int_equal(socket_path_bind("/a.sock", ANNOTATE_NO_GROUP, &fd, &err), -EINVAL);
}

static void test_only_a_socket_is_replaced(void **state)
{
	struct scratch *s = *state;
	char path[ANNOTATE_PATH_MAX], folder[ANNOTATE_PATH_MAX], other[ANNOTATE_PATH_MAX];
	struct errinfo err = {0};
	struct stat st;
	int fd = -1;

	in_folder(s, "d", folder);
	in_folder(s, "d/a.sock", path);
	in_folder(s, "precious", other);
	assert_int_equal(mkdir(folder, 0700), 0);
	scratch_write(path, "x", 1);
	assert_int_equal(socket_path_bind(path, ANNOTATE_NO_GROUP, &fd, &err), -EEXIST);
	assert_int_equal(unlink(path), 0);
	scratch_write(other, "x", 1);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(socket_path_bind(path, ANNOTATE_NO_GROUP, &fd, &err), -EEXIST);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat(other, &st), 0);
}

static void test_default(void **state)
{
	char path[ANNOTATE_PATH_MAX];
	struct errinfo err = {0};

	if (geteuid() == 0) {
		assert_int_equal(socket_path_default(path, &err), 0);
		assert_string_equal(path, "/run/ingero/annotate.sock");
		return;
	}
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_int_equal(socket_path_default(path, &err), 0);
	assert_string_equal(path, "/run/user/7/ingero/annotate.sock");
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(socket_path_default(path, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_folder_of_its_own),
		TEST(test_unsafe_folders),
		TEST(test_only_a_socket_is_replaced),
		TEST(test_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
