/* SPDX-License-Identifier: Apache-2.0 */
/* test_foreign.c - files of a stranger's file system: debug information by build id, and the map of a
 * JIT. Each attack is one that an ordinary open(2) falls for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>

#include "record/stack/remote.h"
#include "tree.h"

#define DEBUG "/inside/usr/lib/debug/.build-id/fe/dcba9876543210fedcba9876543210fedcba98.debug"
#define MAP   "/proc/12/root/tmp/perf-7.map"

static const uint8_t id[20] = {0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10, 0xfe, 0xdc, 0xba,
	0x98, 0x76, 0x54, 0x32, 0x10, 0xfe, 0xdc, 0xba, 0x98};

static char root[TREE_MAX], inside[TREE_MAX + 16], path[TREE_MAX + 128], secret[TREE_MAX + 16];

static int setup(void **state)
{
	tree_init(root);
	snprintf(inside, sizeof(inside), "%s/inside", root);
	snprintf(secret, sizeof(secret), "%s/secret", root);
	tree_write(root, "/secret", "stolen");
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

static const char *at(const char *name)
{
	snprintf(path, sizeof(path), "%s%s", root, name);
	return path;
}

/* What is read of @fd, which is closed: its first bytes. */
static const char *text_of(int fd)
{
	static char text[16];
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(n >= 0);
	text[n] = 0;
	return text;
}

static void debug_information_is_found_by_build_id(void **state)
{
	assert_int_equal(foreign_open_debug(inside, id, sizeof(id)), -ENOENT);
	tree_write(root, DEBUG, "names");
	assert_string_equal(text_of(foreign_open_debug(inside, id, sizeof(id))), "names");
	assert_int_equal(foreign_open_debug("", id, sizeof(id)), -ENOENT);
	assert_int_equal(foreign_open_debug(inside, id, 1), -ENOENT);
	assert_int_equal(foreign_open_debug(inside, id, 65), -ENOENT);
}

static void debug_information_is_not_taken_from_outside(void **state)
{
	tree_write(root, DEBUG, "");
	unlink(at(DEBUG));
	assert_int_equal(symlink(secret, at(DEBUG)), 0);
	assert_string_equal(text_of(open(at(DEBUG), O_RDONLY)), "stolen"); /* the control */
	assert_int_equal(foreign_open_debug(inside, id, sizeof(id)), -ENOENT);
	unlink(at(DEBUG));
	tree_write(root, "/inside/opt/real", "names");
	assert_int_equal(symlink("/opt/real", at(DEBUG)), 0); /* absolute, of the inside */
	assert_string_equal(text_of(foreign_open_debug(inside, id, sizeof(id))), "names");
	unlink(at(DEBUG));
	assert_int_equal(mkfifo(at(DEBUG), 0600), 0); /* nobody writes to it */
	assert_int_equal(foreign_open_debug(inside, id, sizeof(id)), -ENOENT);
}

/* ---- the map of a JIT ---- */

/* A user that is not root: only root can give a file to another, and others are one already. */
static uid_t somebody(void)
{
	return geteuid() ? geteuid() : 4711;
}

static void map_make(void)
{
	tree_write(root, MAP, "1000 10 jitted\n");
	if (geteuid() == 0)
		assert_int_equal(chown(at(MAP), somebody(), (gid_t)-1), 0);
}

static void process_is_of(uid_t user)
{
	char text[128];

	snprintf(text, sizeof(text), "Name:\tx\nUid:\t%u\t%u\t0\t0\nGid:\t1\t1\t1\t1\n", user + 9,
		user);
	tree_write(root, "/proc/12/status", text);
}

static int map_open(void)
{
	struct stat st;

	return foreign_open_perf_map(root, 12, 7, &st);
}

static void a_map_is_of_the_processs_user(void **state)
{
	struct stat st = {0};
	int fd;

	map_make();
	assert_int_equal(map_open(), -ESRCH); /* nobody to own it */
	process_is_of(somebody());
	fd = foreign_open_perf_map(root, 12, 7, &st);
	assert_string_equal(text_of(fd), "1000 10 jitted\n");
	assert_int_equal(st.st_size, 15);
	assert_int_equal(foreign_open_perf_map(root, 12, 8, &st), -ENOENT);
	process_is_of(somebody() + 1);
	assert_int_equal(map_open(), -EPERM);
	if (geteuid() == 0) {
		assert_int_equal(chown(at(MAP), 0, (gid_t)-1), 0);
		assert_string_equal(text_of(map_open()), "1000 10 jitted\n");
	} else {
		printf("# skip: root's own file, because only root can make one\n");
	}
}

static void a_map_is_no_link(void **state)
{
	char other[TREE_MAX + 128];

	map_make();
	process_is_of(somebody());
	assert_true(map_open() >= 0); /* the control */
	snprintf(other, sizeof(other), "%s/proc/12/root/tmp/other", root);
	assert_int_equal(link(at(MAP), other), 0);
	assert_int_equal(map_open(), -EPERM); /* a second name of somebody's file */
	unlink(other);
	assert_int_equal(rename(at(MAP), other), 0);
	assert_int_equal(symlink("other", at(MAP)), 0);
	assert_true(open(at(MAP), O_RDONLY) >= 0); /* the control */
	assert_int_equal(map_open(), -EINVAL);
	unlink(at(MAP));
	assert_int_equal(mkfifo(at(MAP), 0600), 0);
	assert_int_equal(map_open(), -EINVAL);
}

/* /tmp itself leads out of the container. */
static void a_map_is_not_taken_from_outside(void **state)
{
	char tmp[TREE_MAX + 128];

	map_make();
	process_is_of(somebody());
	snprintf(tmp, sizeof(tmp), "%s/proc/12/root/tmp", root);
	snprintf(secret, sizeof(secret), "%s/outside", root);
	assert_int_equal(rename(tmp, secret), 0);
	assert_int_equal(symlink(secret, tmp), 0);
	assert_true(open(at(MAP), O_RDONLY) >= 0); /* the control */
	assert_true(map_open() < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			debug_information_is_found_by_build_id, setup, teardown),
		cmocka_unit_test_setup_teardown(
			debug_information_is_not_taken_from_outside, setup, teardown),
		cmocka_unit_test_setup_teardown(a_map_is_of_the_processs_user, setup, teardown),
		cmocka_unit_test_setup_teardown(a_map_is_no_link, setup, teardown),
		cmocka_unit_test_setup_teardown(a_map_is_not_taken_from_outside, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
