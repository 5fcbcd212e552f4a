/* SPDX-License-Identifier: Apache-2.0 */
/* A token that is made once: the same for whoever comes later, its owner's alone, and never out of
 * a file that somebody else could have put there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"
#include "net/server/token.h"

struct folder {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	snprintf(f->path, sizeof(f->path), "/tmp/ingero-token-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct folder *f = *state;

	unlinkat(f->fd, "token", 0);
	unlinkat(f->fd, "other", 0);
	close(f->fd);
	assert_int_equal(rmdir(f->path), 0); /* nothing else was left behind */
	free(f);
	return 0;
}

static void put_file(struct folder *f, const char *name, const char *text, mode_t mode)
{
	int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int given;

static int give(int fd)
{
	given++;
	return fd < 0 ? -EBADF : 0;
}

static int give_in_vain(int fd)
{
	(void)fd;
	return -EPERM;
}

static void test_made_once(void **state)
{
	_cleanup_free_ char *first = NULL, *again = NULL, *other = NULL;
	struct folder *f = *state;
	struct stat st;

	given = 0;
	assert_int_equal(token_keep(f->fd, "token", give, &first, NULL), 0);
	assert_int_equal(strspn(first, "0123456789abcdef"), 48);
	assert_int_equal(strlen(first), 48);
	assert_int_equal(given, 1);
	assert_int_equal(fstatat(f->fd, "token", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(token_keep(f->fd, "token", give, &again, NULL), 0);
	assert_string_equal(again, first);
	assert_int_equal(given, 1);
	assert_int_equal(token_make(&other), 0);
	assert_string_not_equal(other, first);
}

/* The control is the same content in a file that is right. */
static void test_what_is_not_taken(void **state)
{
	static const struct {
		const char *text;
		mode_t mode;
		int result;
	} rows[] = {
		{"0123456789abcdef0123\n", 0600, 0},
		{"0123456789abcdef0123\n", 0640, -EPERM},
		{"0123456789abcdef0123\n", 0604, -EPERM},
		{"short\n", 0600, -EINVAL},
		{"", 0600, -EINVAL},
	};
	struct folder *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *token = NULL;
		struct errinfo e = {0};

		put_file(f, "token", rows[i].text, rows[i].mode);
		assert_int_equal(token_keep(f->fd, "token", NULL, &token, &e), rows[i].result);
		assert_true(rows[i].result == 0 ? !strcmp(token, "0123456789abcdef0123")
						: !token && strstr(e.text, "remove it"));
	}
}

static void test_links(void **state)
{
	_cleanup_free_ char *token = NULL;
	struct folder *f = *state;
	struct errinfo e = {0};

	put_file(f, "other", "0123456789abcdef0123\n", 0600);
	assert_int_equal(token_keep(f->fd, "other", NULL, &token, &e), 0); /* control */
	free(TAKE(token));
	assert_int_equal(symlinkat("other", f->fd, "token"), 0);
	assert_int_equal(token_keep(f->fd, "token", NULL, &token, &e), -ELOOP);
	unlinkat(f->fd, "token", 0);
	assert_int_equal(linkat(f->fd, "other", f->fd, "token", 0), 0);
	assert_int_equal(token_keep(f->fd, "token", NULL, &token, &e), -EPERM);
	assert_null(token);
}

/* A file that cannot be handed over is not left there. */
static void test_not_given(void **state)
{
	_cleanup_free_ char *token = NULL;
	struct folder *f = *state;
	struct stat st;

	assert_int_equal(token_keep(f->fd, "token", give_in_vain, &token, NULL), -EPERM);
	assert_int_equal(fstatat(f->fd, "token", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_null(token);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_made_once),
		TEST(test_what_is_not_taken),
		TEST(test_links),
		TEST(test_not_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
