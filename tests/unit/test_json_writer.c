/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "json/writer.h"

static void writes_all_kinds(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	json_begin_object(&w);
	json_key(&w, "s");
	json_put_string(&w, "q\" b\\ n\n \x01 µ");
	json_key(&w, "list");
	json_begin_array(&w);
	json_put_int(&w, INT64_MIN);
	json_put_uint(&w, INT64_MAX);
	json_put_uint(&w, UINT64_MAX);
	json_put_double(&w, 0.1);
	json_put_double(&w, 1e300);
	json_put_double(&w, NAN);
	json_put_double(&w, -INFINITY);
	json_put_bool(&w, true);
	json_put_null(&w);
	json_put_string(&w, NULL);
	json_begin_object(&w);
	json_end_object(&w);
	json_end_array(&w);
	json_end_object(&w);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b),
		"{\"s\":\"q\\\" b\\\\ n\\u000a \\u0001 µ\",\"list\":[-9223372036854775808,"
		"9223372036854775807,\"18446744073709551615\",0.1,1e+300,null,null,true,null,null,"
		"{}]}\n");
}

static void thousandths_are_exact(void **state)
{
	static const int64_t values[] = {0, 1, 250, 1000, -1500, 1700000000000000750, INT64_MIN};
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	json_begin_array(&w);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		json_put_thousandths(&w, values[i]);
	json_end_array(&w);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(
		buf_str(&b), "[0,0.001,0.25,1,-1.5,1700000000000000.75,-9223372036854775.808]\n");
}

static void bad_bytes_become_replacement(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	json_put_string_len(&w,
		"a\xff\xc0\xaf"
		"b\0c\xe2\x80\xa8",
		10);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b), "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
					 "b\\u0000c\\u2028\"\n");
}

static void indents(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	w.indent = true;
	json_begin_object(&w);
	json_key(&w, "a");
	json_begin_array(&w);
	json_put_int(&w, 1);
	json_put_int(&w, 2);
	json_end_array(&w);
	json_key(&w, "e");
	json_begin_array(&w);
	json_end_array(&w);
	json_end_object(&w);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"e\": []\n}\n");
}

static void documents_follow_each_other(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	json_put_int(&w, 1);
	assert_int_equal(json_finish(&w), 0);
	json_put_int(&w, 2);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b), "1\n2\n");
}

/* Each letter is a call; what is wrong must stick and add nothing to the output. */
static int play(const char *calls, struct buf *b)
{
	struct json_writer w = json_writer_to_buf(b);

	for (; *calls; calls++) {
		switch (*calls) {
		case '{': json_begin_object(&w); break;
		case '}': json_end_object(&w); break;
		case '[': json_begin_array(&w); break;
		case ']': json_end_array(&w); break;
		case 'k': json_key(&w, "k"); break;
		case 'v': json_put_int(&w, 7); break;
		}
	}
	return json_finish(&w);
}

static void wrong_order_sticks(void **state)
{
	static const struct {
		const char *calls, *output;
	} rows[] = {
		{"", ""},
		{"{", "{"},
		{"{v}", "{"},
		{"{kk", "{\"k\":"},
		{"{k}", "{\"k\":"},
		{"]", ""},
		{"[}v]", "["},
		{"k", ""},
		{"[k", "["},
		{"vv", "7"},
		{"{}{}", "{}"},
		{"[]]v", "[]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(100);

		assert_int_equal(play(rows[i].calls, &b), -EINVAL);
		assert_string_equal(buf_str(&b), rows[i].output);
	}
}

static void depth_has_a_ceiling(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1000);
	char calls[2 * JSON_DEPTH_MAX + 4] = "";

	memset(calls, '[', JSON_DEPTH_MAX);
	memset(calls + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_int_equal(play(calls, &b), 0);
	memset(calls, '[', JSON_DEPTH_MAX + 1);
	assert_int_equal(play(calls, &b), -E2BIG);
}

static void output_errors_stick(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4);
	FILE *full = fopen("/dev/full", "w");
	struct json_writer w = json_writer_to_file(full);

	assert_int_equal(play("[vvvvv]", &b), -ENOBUFS);
	setvbuf(full, NULL, _IONBF, 0);
	json_put_int(&w, 1);
	assert_int_equal(json_finish(&w), -ENOSPC);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_all_kinds),
		cmocka_unit_test(thousandths_are_exact),
		cmocka_unit_test(bad_bytes_become_replacement),
		cmocka_unit_test(indents),
		cmocka_unit_test(documents_follow_each_other),
		cmocka_unit_test(wrong_order_sticks),
		cmocka_unit_test(depth_has_a_ceiling),
		cmocka_unit_test(output_errors_stick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
