/* SPDX-License-Identifier: Apache-2.0 */
#include "cert_fixture.h"

#include <errno.h>

#include "net/pki/ca.h"

#define HEAD "# ingero certificates 1\n"
#define HEX  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int parse(const char *text, struct ca_index *x, struct errinfo *e)
{
	return ca_index_parse("index", text, strlen(text), x, e);
}

static void test_round_trip(void **state)
{
	static const char text[] = HEAD "4a " HEX " 100 200 1 both gpu-1 gpu-1,10.0.0.1\n"
					"4b " HEX " 100 300 1 client me me\n"
					"4c " HEX " 150 400 2 both gpu-1 gpu-1,::1\n";
	_cleanup_buf_ struct buf b = BUF_INIT(CA_INDEX_BYTES_MAX);
	struct ca_index x = {0};

	assert_int_equal(parse(text, &x, NULL), 0);
	assert_int_equal(x.count, 3);
	assert_true(x.rows[1].client && !x.rows[0].client);
	assert_int_equal(x.rows[2].generation, 2);
	assert_ptr_equal(ca_index_find(&x, "gpu-1"), &x.rows[2]);
	assert_null(ca_index_find(&x, "gpu"));
	assert_false(ca_index_is_current(&x, 0));
	assert_int_equal(ca_index_write(&x, &b), 0);
	assert_string_equal(buf_str(&b), text);
	ca_index_remove(&x, 0);
	assert_int_equal(x.count, 2);
	assert_string_equal(x.rows[0].name, "me");
	ca_index_done(&x);
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"4a " HEX " 100 200 1 both gpu-1\n",
		"4a " HEX " 100 200 1 both gpu-1 gpu-1 more\n",
		"4a " HEX " 100 200 1 both gpu-1 gpu-1", /* cut short */
		"4a " HEX " 100 200 1 any gpu-1 gpu-1\n",
		"4a " HEX " -1 200 1 both gpu-1 gpu-1\n",
		"4a " HEX " 100 99999999999999999999 1 both gpu-1 gpu-1\n",
		"4a " HEX " 100 200 1 both ../x gpu-1\n",
		"4a " HEX " 100 200 1 both gpu-1 a/b\n",
		"4A " HEX " 100 200 1 both gpu-1 gpu-1\n",
		"../4a " HEX " 100 200 1 both gpu-1 gpu-1\n",
		"4a 01 100 200 1 both gpu-1 gpu-1\n",
		"\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ca_index x = {0};
		struct errinfo e = {0};
		char text[512];

		snprintf(text, sizeof(text), HEAD "%s", bad[i]);
		assert_int_equal(parse(text, &x, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "index: line 2"));
		assert_int_equal(x.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bad_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
