/* SPDX-License-Identifier: Apache-2.0 */
/* Without memory: tests/fault/test_alloc_mcp.c and test_alloc_base.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "json/tree.h"

static int take(const char *text, json_t **ret, json_error_t *why)
{
	return json_tree_read(text, strlen(text), JSON_REJECT_DUPLICATES, ret, why);
}

static void a_text_becomes_a_value_and_a_text_again(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1000);
	json_t *value = NULL;

	assert_int_equal(take("{\"a\": [1, \"x\"]}", &value, NULL), 0);
	buf_puts(&b, "before ");
	assert_int_equal(json_tree_write(value, JSON_COMPACT, &b), 0);
	assert_string_equal(buf_str(&b), "before {\"a\":[1,\"x\"]}");
	json_decref(value);
}

static void bad_text_is_told_with_its_place(void **state)
{
	json_t *value = (json_t *)state;
	json_error_t why;

	errno = ENOMEM; /* of something before */
	assert_int_equal(take("{\"a\":1,\"a\":2}", &value, &why), -EINVAL);
	assert_ptr_equal(value, state); /* untouched */
	assert_non_null(strstr(why.text, "duplicate"));
	assert_int_equal(take("", &value, NULL), -EINVAL);
}

static void a_full_buffer_is_an_error_that_sticks(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4);
	json_t *value = NULL;

	assert_int_equal(take("[1,2,3,4,5]", &value, NULL), 0);
	assert_int_equal(json_tree_write(value, JSON_COMPACT, &b), -ENOBUFS);
	assert_int_equal(b.err, -ENOBUFS);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_becomes_a_value_and_a_text_again),
		cmocka_unit_test(bad_text_is_told_with_its_place),
		cmocka_unit_test(a_full_buffer_is_an_error_that_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
