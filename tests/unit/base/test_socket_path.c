/* SPDX-License-Identifier: Apache-2.0 */
/* test_socket_path.c - whose folder a socket may be in, and what is replaced. */
#include "store_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/socket_path.h"

static void in_folder(struct scratch *s, const char *name, char out[SOCKET_PATH_MAX])
{
	assert_true(snprintf(out, SOCKET_PATH_MAX, "%s/%s", s->folder, name) < SOCKET_PATH_MAX);
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
	char path[SOCKET_PATH_MAX], folder[SOCKET_PATH_MAX];
	struct errinfo err = {0};
	int fd = -1;

	in_folder(s, "new", folder);
	in_folder(s, "new/a.sock", path);
	if (socket_path_bind(path, SOCKET_NO_GROUP, &fd, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(mode_of(folder), 0700);
	assert_int_equal(mode_of(path), 0600);
	/* another process listens: refused; it is gone: replaced */
	assert_int_equal(socket_path_bind(path, SOCKET_NO_GROUP, &fd, &err), -EBUSY);
	close(fd);
	assert_int_equal(socket_path_bind(path, getegid(), &fd, &err), 0);
	assert_int_equal(mode_of(folder), 0710);
	assert_int_equal(mode_of(path), 0770);
	close(fd);
}

static void test_unsafe_folders(void **state)
{
	struct scratch *s = *state;
	char path[SOCKET_PATH_MAX], folder[SOCKET_PATH_MAX], link[SOCKET_PATH_MAX];
	struct errinfo err = {0};
	int fd = -1;

	in_folder(s, "open", folder);
	in_folder(s, "open/a.sock", path);
	assert_int_equal(mkdir(folder, 0700), 0);
	for (mode_t mode = 0720; mode; mode = mode == 0720 ? 0702 : 0) {
		assert_int_equal(chmod(folder, mode), 0);
		assert_int_equal(socket_path_bind(path, SOCKET_NO_GROUP, &fd, &err), -EPERM);
		assert_int_equal(mode_of(folder), mode); /* left alone */
	}
	assert_int_equal(chmod(folder, 0700), 0);
	in_folder(s, "link", link);
	assert_int_equal(symlink(folder, link), 0);
	in_folder(s, "link/a.sock", link);
	assert_int_equal(socket_path_bind(link, SOCKET_NO_GROUP, &fd, &err), -EPERM);
	assert_int_equal(socket_path_bind(path, SOCKET_NO_GROUP, &fd, &err), 0); /* control */
	close(fd);
	assert_int_equal(socket_path_bind("a.sock", SOCKET_NO_GROUP, &fd, &err), -EINVAL);
	assert_int_equal(socket_path_bind("/a.sock", SOCKET_NO_GROUP, &fd, &err), -EINVAL);
}

static void test_only_a_socket_is_replaced(void **state)
{
	struct scratch *s = *state;
	char path[SOCKET_PATH_MAX], folder[SOCKET_PATH_MAX], other[SOCKET_PATH_MAX];
	struct errinfo err = {0};
	struct stat st;
	int fd = -1;

	in_folder(s, "d", folder);
	in_folder(s, "d/a.sock", path);
	in_folder(s, "precious", other);
	assert_int_equal(mkdir(folder, 0700), 0);
	scratch_write(path, "x", 1);
	assert_int_equal(socket_path_bind(path, SOCKET_NO_GROUP, &fd, &err), -EEXIST);
	assert_int_equal(unlink(path), 0);
	scratch_write(other, "x", 1);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(socket_path_bind(path, SOCKET_NO_GROUP, &fd, &err), -EEXIST);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat(other, &st), 0);
}

/* Exits with 0 if it became the listener, 1 if another one was. */
static void child_bind(const char *path, int gate, int keep)
{
	char c;
	int fd, r;

	(void)!read(gate, &c, 1); /* all begin when the other end is closed */
	r = socket_path_bind(path, SOCKET_NO_GROUP, &fd, NULL);
	if (r == 0)
		(void)!read(keep, &c, 1); /* listens until everybody has tried */
	_exit(r == 0 ? 0 : r == -EBUSY ? 1 : 2);
}

/* A dead socket is there and eight programs start at once: one listens, and its socket stays. */
static void test_programs_that_start_at_once(void **state)
{
	struct scratch *s = *state;
	char path[SOCKET_PATH_MAX];
	int fd = -1;

	in_folder(s, "d/a.sock", path);
	assert_int_equal(socket_path_bind(path, SOCKET_NO_GROUP, &fd, NULL), 0);
	close(fd);
	for (int round = 0; round < 20; round++) {
		int gate[2], keep[2], status, winners = 0;

		assert_int_equal(pipe(gate), 0);
		assert_int_equal(pipe(keep), 0);
		for (int i = 0; i < 8; i++)
			if (fork() == 0) {
				close(gate[1]);
				close(keep[1]);
				child_bind(path, gate[0], keep[0]);
			}
		close(gate[0]);
		close(gate[1]);
		for (int i = 0; i < 7; i++) {
			assert_true(wait(&status) > 0);
			assert_int_equal(WEXITSTATUS(status), 1);
		}
		assert_int_equal(socket_path_connect(path, 0, &fd, NULL), 0);
		close(fd);
		close(keep[0]);
		close(keep[1]);
		assert_true(wait(&status) > 0);
		winners += WEXITSTATUS(status) == 0;
		assert_int_equal(winners, 1);
	}
}

/* Sockets of two groups in one folder: both groups get through it. */
static void test_two_groups(void **state)
{
	struct scratch *s = *state;
	char one[SOCKET_PATH_MAX], two[SOCKET_PATH_MAX], folder[SOCKET_PATH_MAX];
	int fd = -1;

	if (geteuid() != 0) {
		printf("# skip: only root may give files to any group\n");
		skip();
	}
	in_folder(s, "d", folder);
	in_folder(s, "d/a.sock", one);
	in_folder(s, "d/b.sock", two);
	assert_int_equal(socket_path_bind(one, 4242, &fd, NULL), 0);
	close(fd);
	assert_int_equal(mode_of(folder), 0710);
	assert_int_equal(socket_path_bind(two, SOCKET_NO_GROUP, &fd, NULL), 0);
	close(fd);
	assert_int_equal(mode_of(folder), 0710); /* the first one's group is not locked out */
	assert_int_equal(unlink(two), 0);
	assert_int_equal(socket_path_bind(two, 4343, &fd, NULL), 0);
	close(fd);
	assert_int_equal(mode_of(folder), 0711);
	assert_int_equal(mode_of(two), 0770);
}

static void test_default(void **state)
{
	char path[SOCKET_PATH_MAX];
	struct errinfo err = {0};

	if (geteuid() == 0) {
		assert_int_equal(socket_path_default("annotate.sock", path, &err), 0);
		assert_string_equal(path, "/run/ingero/annotate.sock");
		return;
	}
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_int_equal(socket_path_default("annotate.sock", path, &err), 0);
	assert_string_equal(path, "/run/user/7/ingero/annotate.sock");
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(socket_path_default("annotate.sock", path, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_folder_of_its_own),
		TEST(test_unsafe_folders),
		TEST(test_only_a_socket_is_replaced),
		TEST(test_programs_that_start_at_once),
		TEST(test_two_groups),
		TEST(test_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
