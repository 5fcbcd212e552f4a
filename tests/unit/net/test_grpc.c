/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/clock.h"
#include "net/grpc.h"

static void test_frame(void **state)
{
	unsigned char out[GRPC_FRAME];

	(void)state;
	grpc_frame(out, 0x01020304, true);
	assert_int_equal(out[0], 1);
	grpc_frame(out, 0x01020304, false);
	assert_memory_equal(out, "\0\1\2\3\4", 5);
}

static void unframe_fails(const char *data, size_t len, const char *says)
{
	const char *message = NULL, *fault = NULL;
	size_t n = 99;

	assert_int_equal(grpc_unframe(data, len, &message, &n, &fault), -EPROTO);
	assert_non_null(strstr(fault, says));
	assert_null(message);
	assert_int_equal(n, 99);
}

static void test_unframe(void **state)
{
	const char *message, *fault;
	size_t n;

	(void)state;
	assert_int_equal(grpc_unframe("\0\0\0\0\3abc", 8, &message, &n, &fault), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(message, "abc", 3);
	assert_int_equal(grpc_unframe("\0\0\0\0\0", 5, &message, &n, &fault), 0);
	assert_int_equal(n, 0);
	unframe_fails("", 0, "no message");
	unframe_fails("\0\0\0\0", 4, "truncated");
	unframe_fails("\0\0\0\0\4abc", 8, "truncated");
	unframe_fails("\0\xff\xff\xff\xff", 5, "truncated");
	unframe_fails("\1\0\0\0\3abc", 8, "compressed");
	unframe_fails("\0\0\0\0\1a\0\0\0\0\1b", 12, "more than one");
}

static void test_timeout(void **state)
{
	char out[GRPC_TIMEOUT_MAX];

	(void)state;
	assert_string_equal(grpc_timeout(out, 0), "1u");
	assert_string_equal(grpc_timeout(out, 5 * NS_PER_S), "5000000u");
	assert_string_equal(grpc_timeout(out, 99999999 * NS_PER_US), "99999999u");
	assert_string_equal(grpc_timeout(out, 100 * NS_PER_S), "100000m");
	assert_string_equal(grpc_timeout(out, 100000 * NS_PER_S), "100000S");
	assert_true(strlen(grpc_timeout(out, UINT64_MAX)) <= 9);
}

static void test_status(void **state)
{
	(void)state;
	assert_int_equal(grpc_status_parse("0", 1), 0);
	assert_int_equal(grpc_status_parse("16", 2), 16);
	assert_int_equal(grpc_status_parse("", 0), GRPC_UNKNOWN);
	assert_int_equal(grpc_status_parse("-1", 2), GRPC_UNKNOWN);
	assert_int_equal(grpc_status_parse("9999999999", 10), GRPC_UNKNOWN);
	assert_int_equal(grpc_status_parse("1x", 2), GRPC_UNKNOWN);
	assert_int_equal(grpc_status_of_http(503), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_status_of_http(401), GRPC_UNAUTHENTICATED);
	assert_int_equal(grpc_status_of_http(404), GRPC_UNIMPLEMENTED);
	assert_int_equal(grpc_status_of_http(418), GRPC_UNKNOWN);
}

static void decodes(const char *in, size_t len, const char *want)
{
	char out[16];

	memset(out, 'x', sizeof(out));
	grpc_message_decode(in, len, out, sizeof(out));
	assert_string_equal(out, want);
}

static void test_message(void **state)
{
	(void)state;
	decodes("plain", 5, "plain");
	decodes("a%20b%C3%a4", 11, "a b\xc3\xa4");
	decodes("100%", 4, "100%");
	decodes("%4", 2, "%4");
	decodes("%zz%", 4, "%zz%");
	decodes("a%00b", 5, "a?b");
	decodes("a\0b", 3, "a?b");
	decodes("", 0, "");
	decodes("0123456789abcdefghij", 20, "0123456789abcde");
}

static void test_content_types(void **state)
{
	static const struct {
		const char *type;
		bool is;
	} rows[] = {
		{"application/grpc", true},
		{"application/grpc+proto", true},
		{"Application/GRPC; a=b", true},
		{"application/grpc-web", false},
		{"application/grp", false},
		{"application/json", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(grpc_is_type(rows[i].type, strlen(rows[i].type)), rows[i].is);
}

/* What is encoded is what decoding gives back, and it is cut between characters. */
static void test_message_encode(void **state)
{
	static const char text[] = "100% of\n\"it\" \x7f\xc3\xa9";
	_cleanup_buf_ struct buf b = BUF_INIT(GRPC_MESSAGE_MAX), small = BUF_INIT(7);
	char back[64];

	(void)state;
	grpc_message_encode(&b, text);
	assert_string_equal(buf_str(&b), "100%25 of%0A\"it\" %7F%C3%A9");
	grpc_message_decode(b.data, b.len, back, sizeof(back));
	assert_string_equal(back, text);
	grpc_message_encode(&small, "abcde\n");
	assert_string_equal(buf_str(&small), "abcde");
	assert_int_equal(small.err, 0);
}

static void test_status_for_http(void **state)
{
	(void)state;
	assert_int_equal(grpc_status_for_http(200), GRPC_OK);
	assert_int_equal(grpc_status_for_http(401), GRPC_UNAUTHENTICATED);
	assert_int_equal(grpc_status_for_http(413), GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(grpc_status_for_http(404), GRPC_UNIMPLEMENTED);
	assert_int_equal(grpc_status_for_http(503), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_status_for_http(299), GRPC_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_unframe),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_content_types),
		cmocka_unit_test(test_message_encode),
		cmocka_unit_test(test_status_for_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
