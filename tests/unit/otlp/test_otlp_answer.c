/* SPDX-License-Identifier: Apache-2.0 */
/* test_otlp_answer.c - what receivers say, and what only looks like it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "otlp/otlp_metric.h"
#include "protobuf/pb.h"

static void test_protobuf(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct otlp_answer a = {.rejected = 99};
	size_t partial;

	assert_int_equal(otlp_answer_protobuf("", 0, &a), 0);
	assert_int_equal(a.rejected, 0);
	partial = pb_put_begin(&b, 1);
	pb_put_varint(&b, 1, 12);
	pb_put_string(&b, 2, "too old");
	pb_put_varint(&b, 77, 1); /* of a later version */
	pb_put_end(&b, partial);
	assert_int_equal(otlp_answer_protobuf(b.data, b.len, &a), 0);
	assert_int_equal(a.rejected, 12);
	assert_string_equal(a.message, "too old");
	a.rejected = 5;
	assert_int_equal(otlp_answer_protobuf(b.data, b.len - 1, &a), -EBADMSG);
	assert_int_equal(a.rejected, 5);
	assert_int_equal(otlp_answer_protobuf("<html>", 6, &a), -EBADMSG);
}

static void test_long_words_are_cut_between_characters(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct otlp_answer a;
	char words[1001];
	size_t partial;

	for (int i = 0; i < 500; i++)
		memcpy(words + 2 * i, "\xc3\xa9", 3);
	partial = pb_put_begin(&b, 1);
	pb_put_string(&b, 2, words);
	pb_put_end(&b, partial);
	assert_int_equal(otlp_answer_protobuf(b.data, b.len, &a), 0);
	assert_int_equal(strlen(a.message), (OTLP_MESSAGE_MAX - 1) / 2 * 2);
}

static int json(const char *text, struct otlp_answer *a)
{
	return otlp_answer_json(text, strlen(text), a);
}

static void test_json(void **state)
{
	struct otlp_answer a = {.rejected = 99};

	assert_int_equal(json("", &a), 0);
	assert_int_equal(a.rejected, 0);
	assert_int_equal(json("{}", &a), 0);
	assert_int_equal(json("{\"partialSuccess\":{\"rejectedDataPoints\":\"7\","
			      "\"errorMessage\":\"why\"}}",
				 &a),
		0);
	assert_int_equal(a.rejected, 7);
	assert_string_equal(a.message, "why");
	assert_int_equal(json("{\"partialSuccess\":{\"rejectedDataPoints\":8}}", &a), 0);
	assert_int_equal(a.rejected, 8);
	assert_int_equal(json("{\"partialSuccess\":{}}", &a), 0);
	assert_int_equal(a.rejected, 0);
	assert_int_equal(json("{\"partialSuccess\":{\"rejectedDataPoints\":\"x\"}}", &a), -EBADMSG);
	assert_int_equal(json("[]", &a), -EBADMSG);
	assert_int_equal(json("<html>", &a), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protobuf),
		cmocka_unit_test(test_long_words_are_cut_between_characters),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
