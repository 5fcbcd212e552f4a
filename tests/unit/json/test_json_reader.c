/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "json/tree.h"

static struct json_reader reader(const char *s)
{
	struct json_reader r;

	json_reader_init(&r, s, strlen(s), 1 << 16);
	return r;
}

static void reads_every_kind(void **state)
{
	_cleanup_(json_reader_done) struct json_reader r =
		reader(" {\"a\" : [1, -9223372036854775808,9223372036854775808, 1.5e3,-0.25] ,"
		       "\"b\":{\"t\":true,\"f\":false,\"n\":null},\"\":\"x\"} ");

	assert_int_equal(json_read(&r), JSON_READ_OBJECT);
	assert_int_equal(json_read(&r), JSON_READ_KEY);
	assert_true(json_read_is(&r, "a"));
	assert_false(json_read_is(&r, "ab"));
	assert_int_equal(json_read(&r), JSON_READ_ARRAY);
	assert_int_equal(json_read(&r), JSON_READ_INT);
	assert_int_equal(r.i, 1);
	assert_int_equal(json_read(&r), JSON_READ_INT);
	assert_true(r.i == INT64_MIN);
	assert_int_equal(json_read(&r), JSON_READ_REAL); /* one too large for 64 bits */
	assert_true(r.d == 9223372036854775808.0);
	assert_int_equal(json_read(&r), JSON_READ_REAL);
	assert_true(r.d == 1500);
	assert_int_equal(json_read(&r), JSON_READ_REAL);
	assert_true(r.d == -0.25);
	assert_int_equal(json_read(&r), JSON_READ_ARRAY_END);
	assert_int_equal(json_read(&r), JSON_READ_KEY);
	assert_int_equal(json_read(&r), JSON_READ_OBJECT);
	for (int i = 0; i < 3; i++) {
		static const enum json_read want[] = {
			JSON_READ_BOOL, JSON_READ_BOOL, JSON_READ_NULL};

		assert_int_equal(json_read(&r), JSON_READ_KEY);
		assert_int_equal(json_read(&r), want[i]);
		if (i < 2)
			assert_int_equal(r.b, i == 0);
	}
	assert_int_equal(json_read(&r), JSON_READ_OBJECT_END);
	assert_int_equal(json_read(&r), JSON_READ_KEY);
	assert_int_equal(r.text.len, 0);
	assert_int_equal(json_read(&r), JSON_READ_STRING);
	assert_int_equal(json_read(&r), JSON_READ_OBJECT_END);
	assert_int_equal(json_read(&r), JSON_READ_END);
	assert_int_equal(json_read(&r), JSON_READ_END);
}

static void decodes_strings(void **state)
{
	_cleanup_(json_reader_done) struct json_reader r =
		reader("\"q\\\"\\\\\\/\\b\\f\\n\\r\\t \\u00b5 \\u20AC \\ud83d\\ude00 µ\\u0000z\"");

	assert_int_equal(json_read(&r), JSON_READ_STRING);
	assert_int_equal(r.text.len, strlen("q\"\\/\b\f\n\r\t µ € 😀 µ") + 2);
	assert_memory_equal(buf_str(&r.text), "q\"\\/\b\f\n\r\t µ € 😀 µ\0z", r.text.len);
}

/* All that is not JSON, among it what lenient readers take. */
static void refuses_what_is_no_json(void **state)
{
	static const char *const bad[] = {"", " ", "{", "[", "}", "]", "[1,]", "[,1]", "[1 2]",
		"{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{\"a\":1 \"b\":2}", "[1]]", "1 2",
		"[1", "{\"a\":1", "tru", "True", "nul", "NaN", "Infinity", "-", "+1", "01", "1.",
		".5", "1e", "1e+", "0x10", "--1", "\"", "\"a", "\"\\\"", "\"\\x41\"", "\"\\u12\"",
		"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\x01\"", "\"a\nb\"",
		"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "'a'", "[1}", "{\"a\":1]", "{1:2}",
		"/* */ 1", "[\"a\":1]",
		"\xef\xbb\xbf"
		"1"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(json_reader_done) struct json_reader r = reader(bad[i]);
		enum json_read t;

		while ((t = json_read(&r)) != JSON_READ_BAD && t != JSON_READ_END)
			;
		if (t != JSON_READ_BAD)
			fail_msg("taken for JSON: %s", bad[i]);
		assert_int_equal(r.err, -EBADMSG);
		assert_int_equal(json_read(&r), JSON_READ_BAD); /* and stays so */
	}
}

static void depth_has_a_ceiling(void **state)
{
	char text[4096];

	for (int depth = JSON_READ_DEPTH; depth <= JSON_READ_DEPTH + 1; depth++) {
		_cleanup_(json_reader_done) struct json_reader r;
		enum json_read t;

		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		json_reader_init(&r, text, (size_t)depth * 2, 16);
		while ((t = json_read(&r)) != JSON_READ_BAD && t != JSON_READ_END)
			;
		assert_int_equal(t, depth == JSON_READ_DEPTH ? JSON_READ_END : JSON_READ_BAD);
		assert_int_equal(r.err, depth == JSON_READ_DEPTH ? 0 : -E2BIG);
	}
}

static void strings_have_a_ceiling(void **state)
{
	_cleanup_(json_reader_done) struct json_reader r;
	static const char text[] = "[\"12345678\",\"123456789\"]";

	json_reader_init(&r, text, strlen(text), 8);
	assert_int_equal(json_read(&r), JSON_READ_ARRAY);
	assert_int_equal(json_read(&r), JSON_READ_STRING);
	assert_int_equal(json_read(&r), JSON_READ_BAD);
	assert_int_equal(r.err, -ENOBUFS);
}

static void skips_values(void **state)
{
	_cleanup_(json_reader_done) struct json_reader r =
		reader("[{\"a\":[1,{\"b\":[]}]},7,[[]],8]");

	json_read(&r);
	assert_true(json_skip(&r, json_read(&r)));
	assert_int_equal(json_read(&r), JSON_READ_INT);
	assert_int_equal(r.i, 7);
	assert_true(json_skip(&r, json_read(&r)));
	assert_int_equal(json_read(&r), JSON_READ_INT);
	assert_int_equal(r.i, 8);
}

/* Every cut of a text ends in an error and reads nothing beyond: sanitizers watch. */
static void cut_texts_fail(void **state)
{
	static const char text[] = "{\"k\\u00e9\":[1.5e-3,\"\\ud83d\\ude00µ\",true,null,{}]}";

	for (size_t len = 0; len < strlen(text); len++) {
		_cleanup_free_ char *copy = malloc(MAX(len, (size_t)1));
		_cleanup_(json_reader_done) struct json_reader r;
		enum json_read t;

		memcpy(copy, text, len);
		json_reader_init(&r, copy, len, 1024);
		while ((t = json_read(&r)) != JSON_READ_BAD && t != JSON_READ_END)
			;
		assert_int_equal(t, JSON_READ_BAD);
	}
}

static void copies_values(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);
	_cleanup_(json_reader_done) struct json_reader r = reader(
		" { \"a\" : [ 1 , 2.5, \"\\u001b[2J\" , null ] , \"b\" : { } , \"c\":true }");

	assert_true(json_copy_value(&r, json_read(&r), &w));
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(
		buf_str(&b), "{\"a\":[1,2.5,\"\\u001b[2J\",null],\"b\":{},\"c\":true}\n");
	assert_int_equal(json_read(&r), JSON_READ_END);
}

static void a_bad_copy_is_told(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);
	_cleanup_(json_reader_done) struct json_reader r = reader("{\"a\":[1,}");

	assert_false(json_copy_value(&r, json_read(&r), &w));
}

static void reads_a_place_again(void **state)
{
	_cleanup_(json_reader_done) struct json_reader r =
		reader("{\"a\":[{\"x\":1},2],\"b\":[[3]]}");
	struct json_place place, end;

	assert_int_equal(json_read(&r), JSON_READ_OBJECT);
	assert_int_equal(json_read(&r), JSON_READ_KEY);
	place = json_here(&r);
	assert_true(json_skip(&r, json_read(&r)));
	assert_int_equal(json_read(&r), JSON_READ_KEY);
	assert_true(json_skip(&r, json_read(&r)));
	assert_int_equal(json_read(&r), JSON_READ_OBJECT_END);
	end = json_here(&r);
	json_go_to(&r, place);
	assert_int_equal(json_read(&r), JSON_READ_ARRAY);
	assert_int_equal(json_read(&r), JSON_READ_OBJECT);
	assert_int_equal(json_read(&r), JSON_READ_KEY);
	assert_int_equal(json_read(&r), JSON_READ_INT);
	assert_int_equal(json_read(&r), JSON_READ_OBJECT_END);
	assert_int_equal(json_read(&r), JSON_READ_INT);
	assert_int_equal(r.i, 2);
	assert_int_equal(json_read(&r), JSON_READ_ARRAY_END);
	assert_int_equal(json_read(&r), JSON_READ_KEY);
	assert_true(json_read_is(&r, "b"));
	json_go_to(&r, end);
	assert_int_equal(json_read(&r), JSON_READ_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_kind),
		cmocka_unit_test(decodes_strings),
		cmocka_unit_test(refuses_what_is_no_json),
		cmocka_unit_test(depth_has_a_ceiling),
		cmocka_unit_test(strings_have_a_ceiling),
		cmocka_unit_test(skips_values),
		cmocka_unit_test(cut_texts_fail),
		cmocka_unit_test(copies_values),
		cmocka_unit_test(a_bad_copy_is_told),
		cmocka_unit_test(reads_a_place_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
