/* SPDX-License-Identifier: Apache-2.0 */
/* test_secret_file.c - whose secrets are read: modes and owners, as root and as somebody else. */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "net/secret_file.h"

#define SERVICE  65532u
#define STRANGER 65533u

static char path[] = "/tmp/ingero-secret-XXXXXX";

static int read_it(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(64);
	struct errinfo e = {0};
	int r = secret_file_read(path, "key file", 64, &b, &e);

	if (r == 0 && strcmp(buf_str(&b), "secret") != 0)
		return -EBADMSG;
	return r < 0 && !e.text[0] ? -EPROTO : r;
}

/* As user @uid who is in @gid, in a process that ends. */
static int read_as(uid_t uid, gid_t gid)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (uid && (setgroups(1, &gid) < 0 || setgid(gid) < 0 || setuid(uid) < 0))
			_exit(255);
		_exit(-read_it());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void test_modes_of_ones_own(void **state)
{
	static const struct {
		mode_t mode;
		int r;
	} rows[] = {{0600, 0}, {0400, 0}, {0640, -EPERM}, {0604, -EPERM}, {0660, -EPERM}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(chmod(path, rows[i].mode), 0);
		assert_int_equal(read_it(), rows[i].r);
	}
}

static void test_owners(void **state)
{
	static const struct {
		uid_t owner;
		gid_t group;
		mode_t mode;
		uid_t reader;
		int r;
	} rows[] = {
		{0, SERVICE, 0440, SERVICE, 0}, /* as Kubernetes mounts a Secret */
		{0, SERVICE, 0640, SERVICE, 0},
		{0, SERVICE, 0660, SERVICE, -EPERM}, /* the group could change it */
		{0, SERVICE, 0444, SERVICE, -EPERM}, /* everybody could read it */
		{0, SERVICE, 0440, 0, -EPERM},       /* root needs no group */
		{SERVICE, SERVICE, 0440, SERVICE, -EPERM},
		{STRANGER, SERVICE, 0440, SERVICE, -EPERM},
		{SERVICE, SERVICE, 0400, SERVICE, 0},
	};

	if (geteuid() != 0) {
		print_message("# skip: files of others need root\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r;

		assert_int_equal(chown(path, rows[i].owner, rows[i].group), 0);
		assert_int_equal(chmod(path, rows[i].mode), 0);
		r = read_as(rows[i].reader, SERVICE);
		if (r != rows[i].r)
			fail_msg("row %zu: %d", i, r);
	}
	assert_int_equal(chown(path, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes_of_ones_own),
		cmocka_unit_test(test_owners),
	};
	int fd = mkstemp(path), r;

	if (fd < 0 || write(fd, "secret", 6) != 6)
		return 1;
	close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return r;
}
