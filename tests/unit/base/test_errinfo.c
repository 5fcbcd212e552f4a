/* SPDX-License-Identifier: Apache-2.0 */
/* test_errinfo.c - the sentence, what it returns, and the exit code that follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/errinfo.h"

static void test_set_writes_and_returns(void **state)
{
	struct errinfo e = {0};

	assert_int_equal(errinfo_set(&e, -ENOENT, "no file %s", "x"), -ENOENT);
	assert_string_equal(e.text, "no file x");
	assert_int_equal(e.exit_code, 0);
}

static void test_null_is_allowed(void **state)
{
	assert_int_equal(errinfo_set(NULL, -EIO, "unread"), -EIO);
	assert_int_equal(errinfo_set_exit(NULL, EXIT_CONFIG, -EINVAL, "unread"), -EINVAL);
	assert_int_equal(errinfo_exit_code(NULL, -EIO), EXIT_IO);
}

static void test_later_text_replaces(void **state)
{
	struct errinfo e = {0};

	errinfo_set_exit(&e, EXIT_CONFIG, -EINVAL, "a long first sentence");
	errinfo_set(&e, -EIO, "second");
	assert_string_equal(e.text, "second");
	assert_int_equal(errinfo_exit_code(&e, -EIO), EXIT_IO); /* the first one's code is gone */
}

static void test_long_text_is_cut_and_terminated(void **state)
{
	struct errinfo e;
	char text[2000];

	memset(&e, 0xff, sizeof(e));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	errinfo_set(&e, -EIO, "%s", text);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void test_explicit_exit_code_wins(void **state)
{
	struct errinfo e = {0};

	assert_int_equal(errinfo_set_exit(&e, EXIT_CONFIG, -EINVAL, "bad file"), -EINVAL);
	assert_string_equal(e.text, "bad file");
	assert_int_equal(errinfo_exit_code(&e, -EINVAL), EXIT_CONFIG);
}

static void test_exit_codes_of_errnos(void **state)
{
	static const struct {
		int err, code;
	} rows[] = {
		{-EINVAL, 64},
		{-EBADMSG, 65},
		{-ENOENT, 66},
		{-ESRCH, 66},
		{-ENOSYS, 69},
		{-EOPNOTSUPP, 69},
		{-EROFS, 73},
		{-EIO, 74},
		{-ENOSPC, 74},
		{-EDQUOT, 74},
		{-EFBIG, 74},
		{-EBUSY, 75},
		{-EAGAIN, 75},
		{-EPERM, 77},
		{-EACCES, 77},
		{-ENOMEM, 1},
		{-E2BIG, 1},
	};
	struct errinfo e = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(errinfo_exit_code(&e, rows[i].err), rows[i].code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_writes_and_returns),
		cmocka_unit_test(test_null_is_allowed),
		cmocka_unit_test(test_later_text_replaces),
		cmocka_unit_test(test_long_text_is_cut_and_terminated),
		cmocka_unit_test(test_explicit_exit_code_wins),
		cmocka_unit_test(test_exit_codes_of_errnos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
