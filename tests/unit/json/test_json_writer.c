/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/tree.h"
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

static void members_come_in_one_call(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	json_begin_array(&w);
	JSON_PUT_OBJECT(&w, JSON_S("s", "x"), JSON_S("none", NULL), JSON_I("i", -1),
		JSON_U("u", UINT64_MAX));
	json_begin_object(&w);
	JSON_PUT(&w, JSON_R("r", 0.5), JSON_R("nan", NAN), JSON_B("b", 2));
	JSON_PUT_INTO(&w, "in", JSON_KNOWN("k", true, 3), JSON_KNOWN("l", false, 3));
	json_end_object(&w);
	json_end_array(&w);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b),
		"[{\"s\":\"x\",\"none\":null,\"i\":-1,\"u\":\"18446744073709551615\"},"
		"{\"r\":0.5,\"nan\":null,\"b\":true,\"in\":{\"k\":3,\"l\":null}}]\n");
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
	buf_clear(&b);
	w = json_writer_to_buf(&b);
	/* What a terminal acts on, or a reader does not see: C1, bidirectional, a tag; é is plain. */
	json_put_string_len(&w, "\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\xc3\xa9", 11);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b), "\"\\u009b\\u202e\\udb40\\udc41\xc3\xa9\"\n");
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

static void write_document(struct json_writer *w)
{
	json_begin_object(w);
	json_string_member(w, "text", "a\"\xff\n");
	json_string_member(w, "none", NULL);
	json_int_member(w, "int", INT64_MIN);
	json_uint_member(w, "large", UINT64_MAX);
	json_double_member(w, "real", 0.1);
	json_double_member(w, "no_number", NAN);
	json_thousandths_member(w, "thousandths", -1500);
	json_bool_member(w, "yes", true);
	json_begin_array_member(w, "list");
	json_put_int(w, 1);
	json_begin_object(w);
	json_begin_array_member(w, "empty");
	json_end_array(w);
	json_end_object(w);
	json_put_string(w, "last");
	json_end_array(w);
	json_end_object(w);
}

/* What a tree holds is what the text says. */
static void a_tree_is_the_same(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_builder t = {0};
	struct json_writer text = json_writer_to_buf(&b), tree = json_writer_to_tree(&t);
	json_t *read;

	write_document(&text);
	write_document(&tree);
	assert_int_equal(json_finish(&text), 0);
	assert_int_equal(json_finish(&tree), 0);
	read = json_loadb(buf_str(&b), b.len, 0, NULL);
	assert_non_null(read);
	assert_true(json_equal(read, t.root));
	assert_int_equal(json_object_size(t.root), 9);
	json_decref(read);
	json_builder_done(&t);
	/* control: order counts as ever */
	tree = json_writer_to_tree(&t);
	json_begin_object(&tree);
	json_put_int(&tree, 1);
	assert_int_equal(json_finish(&tree), -EINVAL);
	json_builder_done(&t);
}

/* What is in the file ends with a line whenever one is finished, and does not wait for the end. */
static void lines_come_out_whole(void **state)
{
	char room[4096];
	FILE *f = tmpfile();
	struct json_writer w = json_writer_to_file(f);
	off_t before = 0;
	int written = 0;

	setvbuf(f, room, _IOFBF, sizeof(room));
	for (int i = 0; i < 500; i++) {
		struct stat st;
		char last;

		json_begin_object(&w);
		for (int k = 0; k < i % 53; k++)
			json_int_member(&w, "a key of some length", k);
		json_end_object(&w);
		assert_int_equal(json_finish(&w), 0);
		assert_int_equal(fstat(fileno(f), &st), 0);
		if (st.st_size == before)
			continue;
		assert_int_equal(pread(fileno(f), &last, 1, st.st_size - 1), 1);
		assert_int_equal(last, '\n');
		before = st.st_size;
		written++;
	}
	assert_true(written > 10);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_all_kinds),
		cmocka_unit_test(members_come_in_one_call),
		cmocka_unit_test(thousandths_are_exact),
		cmocka_unit_test(bad_bytes_become_replacement),
		cmocka_unit_test(indents),
		cmocka_unit_test(lines_come_out_whole),
		cmocka_unit_test(documents_follow_each_other),
		cmocka_unit_test(wrong_order_sticks),
		cmocka_unit_test(depth_has_a_ceiling),
		cmocka_unit_test(output_errors_stick),
		cmocka_unit_test(a_tree_is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
