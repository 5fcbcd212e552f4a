/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "net/server/token.h"

#define A "0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210"

static char dir[64], path[80];

static int make_folder(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test-token-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/tokens", dir);
	unsetenv("INGERO_TLS_ALLOW_LOOSE_KEY_PERMS");
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(dir);
}

static void write_tokens(const char *text, mode_t mode)
{
	assert_int_equal(file_write_atomic(path, text, strlen(text), mode), 0);
}

static void test_who_is_admitted(void **state)
{
	struct token_set *t = NULL;

	write_tokens("# the fleet's\n" A "\n\n  " B "   # node 7\n", 0600);
	assert_int_equal(token_set_new(path, NULL, &t, NULL), 0);
	assert_true(token_set_find(t, "Bearer " A));
	assert_true(token_set_find(t, "bearer  " B));
	assert_false(token_set_find(t, NULL));
	assert_false(token_set_find(t, ""));
	assert_false(token_set_find(t, "Bearer"));
	assert_false(token_set_find(t, "Bearer "));
	assert_false(token_set_find(t, A));
	assert_false(token_set_find(t, "Basic " A));
	assert_false(token_set_find(t, "Bearer " A "0"));
	assert_false(token_set_find(t, "Bearer 0123456789abcde"));
	assert_false(token_set_find(t, "Bearer " A " "));
	assert_false(token_set_find(t, "Bearer " A "," B));
	token_set_free(t);
}

static void test_the_environment(void **state)
{
	struct token_set *t = (void *)1;

	unsetenv("TEST_TOKEN");
	assert_int_equal(token_set_new(NULL, "TEST_TOKEN", &t, NULL), 0);
	assert_null(t);
	setenv("TEST_TOKEN", "", 1);
	assert_int_equal(token_set_new(NULL, "TEST_TOKEN", &t, NULL), 0);
	assert_null(t);
	setenv("TEST_TOKEN", A, 1);
	assert_int_equal(token_set_new(NULL, "TEST_TOKEN", &t, NULL), 0);
	assert_true(token_set_find(t, "Bearer " A));
	assert_int_equal(token_set_reload(t, NULL), 0);
	assert_true(token_set_find(t, "Bearer " A));
	token_set_free(t);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *said;
	} rows[] = {
		{"short\n", -EINVAL, "fewer than 16"},
		{A "\nshort\n", -EINVAL, "fewer than 16"},
		{A " " B "\n", -EINVAL, "blanks"},
		{A "\x01\n", -EINVAL, "blanks"},
		{"", -ENODATA, "contains no token"},
		{"# nothing\n\n", -ENODATA, "contains no token"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct token_set *t = NULL;
		struct errinfo e = {0};

		write_tokens(rows[i].text, 0600);
		assert_int_equal(token_set_new(path, NULL, &t, &e), rows[i].r);
		assert_non_null(strstr(e.text, rows[i].said));
		assert_null(strstr(e.text, "short")); /* a token is never repeated */
		assert_null(t);
	}
}

static void test_loose_files(void **state)
{
	struct token_set *t = NULL;
	struct errinfo e = {0};

	write_tokens(A "\n", 0644);
	assert_int_equal(token_set_new(path, NULL, &t, &e), -EPERM);
	assert_non_null(strstr(e.text, "chmod 600"));
	assert_int_equal(e.exit_code, EXIT_NO_PERMISSION);
	setenv("INGERO_TLS_ALLOW_LOOSE_KEY_PERMS", "1", 1);
	assert_int_equal(token_set_new(path, NULL, &t, &e), 0);
	token_set_free(t);
	unsetenv("INGERO_TLS_ALLOW_LOOSE_KEY_PERMS");
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(token_set_new(path, NULL, &t, &e), 0);
	token_set_free(t);
	assert_int_equal(token_set_new("/nonexistent/tokens", NULL, &t, &e), -ENOENT);
	assert_int_equal(e.exit_code, EXIT_NO_INPUT);
	assert_int_equal(token_set_new(dir, NULL, &t, &e), -EINVAL);
}

static void test_reload(void **state)
{
	struct token_set *t = NULL;
	struct errinfo e = {0};

	write_tokens(A "\n", 0600);
	assert_int_equal(token_set_new(path, NULL, &t, &e), 0);
	write_tokens(B "\n", 0600);
	assert_true(token_set_find(t, "Bearer " A)); /* not before it is asked for */
	assert_int_equal(token_set_reload(t, &e), 0);
	assert_false(token_set_find(t, "Bearer " A));
	assert_true(token_set_find(t, "Bearer " B));
	write_tokens(A "\nbad\n", 0600);
	assert_int_equal(token_set_reload(t, &e), -EINVAL);
	assert_true(token_set_find(t, "Bearer " B));
	assert_false(token_set_find(t, "Bearer " A));
	unlink(path);
	assert_int_equal(token_set_reload(t, &e), -ENOENT);
	assert_true(token_set_find(t, "Bearer " B));
	write_tokens(A "\n", 0600);
	token_set_free(t);
}

static void test_many(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct token_set *t = NULL;
	struct errinfo e = {0};

	for (int i = 0; i < 1024; i++)
		buf_printf(&b, "0123456789-%05d\n", i);
	write_tokens(b.data, 0600);
	assert_int_equal(token_set_new(path, NULL, &t, &e), 0);
	assert_true(token_set_find(t, "Bearer 0123456789-00000"));
	assert_true(token_set_find(t, "Bearer 0123456789-01023"));
	token_set_free(t);
	buf_puts(&b, "0123456789-01024\n");
	write_tokens(b.data, 0600);
	assert_int_equal(token_set_new(path, NULL, &t, &e), -E2BIG);
}

static void test_the_one_to_send(void **state)
{
	char *token = (void *)1;
	struct errinfo e = {0};

	unsetenv("TEST_TOKEN");
	assert_int_equal(token_read(NULL, "TEST_TOKEN", &token, &e), 0);
	assert_null(token);
	setenv("TEST_TOKEN", B, 1);
	assert_int_equal(token_read(NULL, "TEST_TOKEN", &token, &e), 0);
	assert_string_equal(token, B);
	free(token);
	write_tokens("# comment\n" A "\n" B "\n", 0600);
	assert_int_equal(token_read(path, "TEST_TOKEN", &token, &e), 0);
	assert_string_equal(token, A);
	free(token);
	write_tokens("\n", 0600);
	assert_int_equal(token_read(path, NULL, &token, &e), -ENODATA);
}

/* The number of a token is its own: the same in every set, known to no other, never that of none. */
static void test_numbers(void **state)
{
	_cleanup_(token_set_freep) struct token_set *one = NULL, *two = NULL;
	uint64_t number;

	(void)state;
	assert_int_equal(token_set_of("0123456789abcdef", &one, NULL), 0);
	assert_int_equal(token_set_of("fedcba9876543210", &two, NULL), 0);
	/* SHA-256 of the text begins with 9f9f5111f7b27a78 */
	number = token_set_find(one, "Bearer 0123456789abcdef");
	assert_int_equal(number, 0x9f9f5111f7b27a78);
	assert_int_equal(number, token_number("0123456789abcdef", 16));
	assert_int_not_equal(number, token_set_find(two, "Bearer fedcba9876543210"));
	assert_int_equal(token_set_find(two, "Bearer 0123456789abcdef"), 0);
	assert_int_equal(token_set_find(one, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_admitted),
		cmocka_unit_test(test_the_environment),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_loose_files),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_the_one_to_send),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
