/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "record/discover/identity.h"
#include "base/buf.h"
#include "tree.h"

static const char *const keys[] = {"RANK", "WORLD_SIZE", "HOSTNAME"};
static struct variables v;
static char root[TREE_MAX];

static int setup(void **state)
{
	tree_init(root);
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

static int read_text(const void *data, size_t len)
{
	tree_write_len(root, "/proc/12/environ", data, len);
	return variables_read(root, 12, keys, ARRAY_SIZE(keys), &v);
}
#define READ(text) assert_int_equal(read_text(text, sizeof(text)), 0)

static void wanted_keys_only(void **state)
{
	READ("PATH=/bin\0RANK=3\0XRANK=9\0RANKS=9\0WORLD_SIZE=\0rank=9");
	assert_string_equal(variables_get(&v, "RANK"), "3");
	assert_string_equal(variables_get(&v, "WORLD_SIZE"), "");
	assert_null(variables_get(&v, "HOSTNAME"));
	assert_null(variables_get(&v, "PATH"));
	assert_false(v.cut);
}

static void the_first_of_two_counts(void **state)
{
	READ("RANK=1\0RANK=2");
	assert_string_equal(variables_get(&v, "RANK"), "1");
}

static void odd_bytes(void **state)
{
	READ("\0\0\0=\0=x\0RANK\0HOSTNAME=a=b\0WORLD_SIZE=\xff\xfe\n");
	assert_null(variables_get(&v, "RANK"));
	assert_string_equal(variables_get(&v, "HOSTNAME"), "a=b");
	assert_string_equal(variables_get(&v, "WORLD_SIZE"), "\xff\xfe\n");
	assert_int_equal(read_text("RANK=7", 6), 0); /* without a NUL at the end */
	assert_string_equal(variables_get(&v, "RANK"), "7");
	assert_int_equal(read_text("", 0), 0);
	assert_null(variables_get(&v, "RANK"));
}

static void a_value_too_long_is_none(void **state)
{
	char text[4096] = "HOSTNAME=";

	memset(text + 9, 'x', 2000);
	memcpy(text + 2010, "RANK=5", 7);
	assert_int_equal(read_text(text, 2017), 0);
	assert_null(variables_get(&v, "HOSTNAME"));
	assert_string_equal(variables_get(&v, "RANK"), "5");
	text[9 + VARIABLE_VALUE_MAX - 1] = 0; /* as long as it may be */
	assert_int_equal(read_text(text, 2017), 0);
	assert_int_equal(strlen(variables_get(&v, "HOSTNAME")), VARIABLE_VALUE_MAX - 1);
}

/* A variable lies across the border of two pieces, wherever that is. */
static void pieces(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	for (size_t before = 16384 - 12; before <= 16384 + 4; before++) {
		buf_clear(&b);
		for (size_t i = 0; i + 1 < before; i++)
			buf_putc(&b, 'x');
		buf_append(&b, "\0RANK=42\0HOSTNAME=h", 20);
		assert_int_equal(read_text(b.data, b.len), 0);
		assert_string_equal(variables_get(&v, "RANK"), "42");
		assert_string_equal(variables_get(&v, "HOSTNAME"), "h");
	}
}

static void a_hundred_thousand_variables(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);

	for (int i = 0; i < 100000; i++) {
		buf_printf(&b, "V%d=1", i);
		buf_putc(&b, 0);
	}
	buf_append(&b, "RANK=1", 7);
	assert_true(b.len < VARIABLES_BYTES_MAX);
	assert_int_equal(read_text(b.data, b.len), 0);
	assert_string_equal(variables_get(&v, "RANK"), "1");
	assert_false(v.cut);
}

static void longer_than_a_megabyte_is_told(void **state)
{
	size_t len = VARIABLES_BYTES_MAX + 100;
	_cleanup_free_ char *text = malloc(len);

	assert_non_null(text);
	memset(text, 0x80, len);
	memcpy(text, "RANK=1", 7);
	memcpy(text + VARIABLES_BYTES_MAX - 8, "\0HOSTNAME=beyond", 16);
	assert_int_equal(read_text(text, len), 0);
	assert_true(v.cut);
	assert_string_equal(variables_get(&v, "RANK"), "1");
	assert_null(variables_get(&v, "HOSTNAME"));
	memcpy(text + VARIABLES_BYTES_MAX - 13, "\0HOSTNAME=in", 13); /* exactly to the end */
	assert_int_equal(read_text(text, VARIABLES_BYTES_MAX), 0);
	assert_false(v.cut);
	assert_string_equal(variables_get(&v, "HOSTNAME"), "in");
}

static void nobody_there(void **state)
{
	assert_int_equal(variables_read(root, 99, keys, 3, &v), -ESRCH);
	assert_int_equal(variables_read(root, 12, keys, VARIABLES_MAX + 1, &v), -EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wanted_keys_only),
		TEST(the_first_of_two_counts),
		TEST(odd_bytes),
		TEST(a_value_too_long_is_none),
		TEST(pieces),
		TEST(a_hundred_thousand_variables),
		TEST(longer_than_a_megabyte_is_told),
		TEST(nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
