/* SPDX-License-Identifier: Apache-2.0 */
/* test_annotate_line.c - good lines, bad lines, and bytes that are no lines at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/annotate/annotate.h"

#define NOW ((wall_time){1234})

static struct annotation a; /* large */

static int parse(const char *line, struct errinfo *err)
{
	return annotate_line_parse(line, strlen(line), NOW, &a, err);
}

static void test_all_keys(void **state)
{
	assert_int_equal(parse("{\"labels\":{\"phase\":\"train\",\"step\":1200,\"ok\":true},"
			       "\"ts\":99,\"pid\":7,\"start_time\":5,\"span_start\":10,"
			       "\"span_end\":20,\"v\":1}",
				 NULL),
		0);
	assert_int_equal(a.time.ns, 99);
	assert_int_equal(a.pid, 7);
	assert_int_equal(a.start_time, 5);
	assert_int_equal(a.span_start_ns, 10);
	assert_int_equal(a.span_end_ns, 20);
	assert_string_equal(a.labels, "{\"phase\":\"train\",\"step\":\"1200\",\"ok\":\"true\"}");
	assert_int_equal(parse("{\"labels\":{\"a\":\"\\u00e9\\\"\\\\\"}}", NULL), 0);
	assert_string_equal(a.labels, "{\"a\":\"é\\\"\\\\\"}");
	assert_int_equal(a.time.ns, 1234);
	assert_int_equal(a.pid, 0);
	assert_int_equal(a.span_end_ns, 0);
}

static void test_bad_lines_are_refused_with_a_sentence(void **state)
{
	static const char *const bad[] = {"", " ", "{", "[]", "null", "1", "{}", "{\"labels\":1}",
		"{\"labels\":{}}", "{\"labels\":[\"a\"]}", "{\"labels\":{\"\":\"x\"}}",
		"{\"labels\":{\"a b\":\"x\"}}", "{\"labels\":{\"\\u00e9\":\"x\"}}",
		"{\"labels\":{\"a\":null}}", "{\"labels\":{\"a\":1.5}}", "{\"labels\":{\"a\":{}}}",
		"{\"labels\":{\"a\":\"\\n\"}}", "{\"labels\":{\"a\":\"\\u007f\"}}",
		"{\"labels\":{\"a\":\"\\u009b31m\"}}", "{\"labels\":{\"a\":\"\\u0000\"}}",
		"{\"labels\":{\"a\":\"x\",\"a\":\"y\"}}", "{\"labels\":{\"a\":\"b\"}} {}",
		"{\"labels\":{\"a\":\"b\"},\"ts\":0}", "{\"labels\":{\"a\":\"b\"},\"ts\":-5}",
		"{\"labels\":{\"a\":\"b\"},\"ts\":1.5}", "{\"labels\":{\"a\":\"b\"},\"ts\":\"1\"}",
		"{\"labels\":{\"a\":\"b\"},\"ts\":9223372036854775808}",
		"{\"labels\":{\"a\":\"b\"},\"pid\":-1}",
		"{\"labels\":{\"a\":\"b\"},\"pid\":5000000}", "{\"labels\":{\"a\":\"b\"},\"v\":2}",
		"{\"labels\":{\"a\":\"b\"},\"unknown\":2}",
		"{\"labels\":{\"a\":\"b\"},\"start_time\":2}",
		"{\"labels\":{\"a\":\"b\"},\"span_start\":2}",
		"{\"labels\":{\"a\":\"b\"},\"span_end\":2}",
		"{\"labels\":{\"a\":\"b\"},\"span_start\":3,\"span_end\":2}",
		"{\"labels\":{\"a\":\"\xff\"}}"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct errinfo err = {0};

		if (parse(bad[i], &err) != -EINVAL || !err.text[0])
			fail_msg("taken: %s", bad[i]);
		for (const char *p = err.text; *p; p++)
			assert_true((unsigned char)*p >= 0x20);
	}
	/* control: the same without the fault */
	assert_int_equal(parse("{\"labels\":{\"a\":\"b\"},\"ts\":1,\"pid\":1,\"v\":1}", NULL), 0);
}

static void test_limits(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	char long_text[400];

	for (int labels = 32; labels <= 33; labels++) {
		buf_clear(&b);
		buf_puts(&b, "{\"labels\":{");
		for (int i = 0; i < labels; i++)
			buf_printf(&b, "%s\"k%d\":\"v\"", i ? "," : "", i);
		buf_puts(&b, "}}");
		assert_int_equal(parse(buf_str(&b), NULL), labels == 32 ? 0 : -EINVAL);
	}
	memset(long_text, 'x', sizeof(long_text));
	for (int len = 256; len <= 257; len++) {
		buf_clear(&b);
		buf_printf(&b, "{\"labels\":{\"a\":\"%.*s\"}}", len, long_text);
		assert_int_equal(parse(buf_str(&b), NULL), len == 256 ? 0 : -EINVAL);
	}
	for (int len = 64; len <= 65; len++) {
		buf_clear(&b);
		buf_printf(&b, "{\"labels\":{\"%.*s\":\"v\"}}", len, long_text);
		assert_int_equal(parse(buf_str(&b), NULL), len == 64 ? 0 : -EINVAL);
	}
	buf_clear(&b);
	for (int i = 0; i < ANNOTATION_LINE_MAX - 1; i++)
		buf_putc(&b, '[');
	assert_int_equal(parse(buf_str(&b), NULL), -EINVAL);
	buf_putc(&b, '[');
	assert_int_equal(parse(buf_str(&b), NULL), -EINVAL);
}

/* Every cut and every changed byte of a good line: refused or taken, never more than its room, and
 * what is taken is an object of clean strings. */
static void test_mutations(void **state)
{
	static const char good[] = "{\"labels\":{\"phase\":\"tr\\u00e4in\",\"step\":12},\"ts\":99,"
				   "\"pid\":7,\"span_start\":1,\"span_end\":2,\"v\":1}";
	char line[sizeof(good)];
	int taken = 0;

	assert_int_equal(parse(good, NULL), 0);
	for (size_t at = 0; at < sizeof(good) - 1; at++) {
		assert_int_equal(annotate_line_parse(good, at, NOW, &a, NULL), -EINVAL);
		for (int byte = 0; byte < 256; byte++) {
			memcpy(line, good, sizeof(good));
			line[at] = (char)byte;
			if (annotate_line_parse(line, sizeof(good) - 1, NOW, &a, NULL) < 0)
				continue;
			taken++;
			assert_true(strlen(a.labels) < sizeof(a.labels));
			assert_true(a.labels[0] == '{' && a.labels[strlen(a.labels) - 1] == '}');
			for (const char *p = a.labels; *p; p++)
				assert_true((unsigned char)*p >= 0x20);
		}
	}
	assert_true(taken > 1000); /* control */
}

static void test_compose(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct errinfo err = {0};

	assert_int_equal(
		annotate_line_compose((const char *[]){"phase=a=b", "x="}, 2, 7, NOW, &b, &err), 0);
	assert_string_equal(
		buf_str(&b), "{\"ts\":1234,\"pid\":7,\"labels\":{\"phase\":\"a=b\",\"x\":\"\"}}\n");
	assert_int_equal(annotate_line_parse(b.data, b.len - 1, NOW, &a, &err), 0);
	for (const char *const *bad =
			(const char *const[]){"phase", "=x", "a b=c", "a=\x1b[2J", "a=\xff", NULL};
		*bad; bad++) {
		buf_clear(&b);
		assert_int_equal(annotate_line_compose(bad, 1, 0, NOW, &b, &err), -EINVAL);
	}
}

static void test_answers(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct errinfo err = {0};
	int64_t id = 0;

	annotate_line_answer(&b, 17, NULL);
	assert_string_equal(buf_str(&b), "{\"ok\":true,\"id\":17}\n");
	assert_int_equal(annotate_line_parse_answer(b.data, b.len, &id, &err), 0);
	assert_int_equal(id, 17);
	buf_clear(&b);
	annotate_line_answer(&b, 0, "no \"room\"");
	assert_string_equal(buf_str(&b), "{\"ok\":false,\"error\":\"no \\\"room\\\"\"}\n");
	assert_int_equal(annotate_line_parse_answer(b.data, b.len, &id, &err), -EREMOTEIO);
	assert_string_equal(err.text, "no \"room\"");
	for (const char *const *bad = (const char *const[]){"", "{}", "{\"ok\":true}",
		     "{\"ok\":1,\"id\":1}", "{\"ok\":false}", "x", NULL};
		*bad; bad++)
		assert_int_equal(
			annotate_line_parse_answer(*bad, strlen(*bad), &id, &err), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_bad_lines_are_refused_with_a_sentence),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_compose),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
