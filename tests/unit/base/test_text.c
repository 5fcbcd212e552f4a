/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *escape(const char *s, size_t len)
{
	static char out[512];
	_cleanup_buf_ struct buf b = BUF_INIT(500);

	text_escape_terminal_len(&b, s, len);
	assert_int_equal(b.err, 0);
	snprintf(out, sizeof(out), "%s", buf_str(&b));
	return out;
}
#define ESCAPE(s) escape(s, sizeof(s) - 1)

static void escape_makes_controls_visible(void **state)
{
	assert_string_equal(ESCAPE("\x1b[31mred"), "\\x1b[31mred");
	assert_string_equal(ESCAPE("a\nb\tc\rd\x7f"), "a\\nb\\tc\\rd\\x7f");
	assert_string_equal(ESCAPE("a\0b"), "a\\x00b");
	assert_string_equal(ESCAPE("\xc2\x9b"), "\\u{009b}"); /* C1: CSI */
	assert_string_equal(ESCAPE("\xe2\x80\xae"
				   "evil"),
		"\\u{202e}evil"); /* right-to-left */
	assert_string_equal(ESCAPE("\xe2\x80\x8b"), "\\u{200b}");
	assert_string_equal(ESCAPE("\xef\xbb\xbf"), "\\u{feff}");
	assert_string_equal(ESCAPE("\xf3\xa0\x81\x81"), "\\u{e0041}");
}

static void escape_shows_bad_utf8(void **state)
{
	assert_string_equal(ESCAPE("\x80"
				   "a"),
		"\\x80a");
	assert_string_equal(ESCAPE("\xc0\xaf"), "\\xc0\\xaf");          /* overlong */
	assert_string_equal(ESCAPE("\xed\xa0\x80"), "\\xed\\xa0\\x80"); /* surrogate */
	assert_string_equal(ESCAPE("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
	assert_string_equal(ESCAPE("\xe2\x82"), "\\xe2\\x82"); /* truncated */
}

static void escape_keeps_printable(void **state)
{
	assert_string_equal(ESCAPE("python3 train.py \\ µ 日本語 é 🙂"),
		"python3 train.py \\ µ 日本語 é 🙂");
}

static void duration_reads_as_published(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = {
		{0, "0"},
		{1, "1ns"},
		{999, "999ns"},
		{1000, "1.0µs"},
		{5340, "5.3µs"},
		{9949, "9.9µs"},
		{9960, "10µs"},
		{53400, "53µs"},
		{999499, "999µs"},
		{999500, "1.0ms"},
		{12345678, "12ms"},
		{999999999, "1.0s"},
		{9940000000, "9.9s"},
		{59400000000, "59s"},
		{59999999999, "1m0s"},
		{60000000000, "1m0s"},
		{90400000000, "1m30s"},
		{7205000000000, "2h0m5s"},
		{UINT64_MAX, "5124095h34m34s"},
	};
	char out[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(text_format_duration(out, rows[i].ns), rows[i].text);
}

static void spans_have_a_space_before_their_unit(void **state)
{
	assert_string_equal(TEXT_SPAN(53400000), "53 ms");
	assert_string_equal(TEXT_SPAN(UINT64_C(9800000000)), "9.8 s");
	assert_string_equal(TEXT_SPAN(5340), "5.3 µs");
	assert_string_equal(TEXT_SPAN(UINT64_C(90000000000)), "1m30s");
	assert_string_equal(TEXT_SPAN(0), "0");
}

static void counts_and_bytes(void **state)
{
	char out[TEXT_MAX];

	assert_string_equal(text_format_count(out, 0), "0");
	assert_string_equal(text_format_count(out, 999), "999");
	assert_string_equal(text_format_count(out, 12345), "12,345");
	assert_string_equal(text_format_count(out, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(text_format_bytes(out, 0), "0 B");
	assert_string_equal(text_format_bytes(out, 1023), "1023 B");
	assert_string_equal(text_format_bytes(out, 1536), "1.5 KiB");
	assert_string_equal(text_format_bytes(out, 1048575), "1.0 MiB");
	assert_string_equal(text_format_bytes(out, 10ULL << 30), "10 GiB");
	assert_string_equal(text_format_bytes(out, UINT64_MAX), "16 EiB");
}

static void duration_parses(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"0", 0},
		{"0s", 0},
		{"30s", 30000000000},
		{"500ms", 500000000},
		{"7us", 7000},
		{"7µs", 7000},
		{"9ns", 9},
		{"1h30m", 5400000000000},
		{"1w2d", 777600000000000},
		{"1.5h", 5400000000000},
		{"0.25s", 250000000},
		{"2m", 120000000000},
	};
	static const struct {
		const char *text;
		int err;
	} bad[] = {
		{"", -EINVAL},
		{"30", -EINVAL},
		{"-5s", -EINVAL},
		{"+5s", -EINVAL},
		{"5 s", -EINVAL},
		{"s", -EINVAL},
		{"5x", -EINVAL},
		{"5sfoo", -EINVAL},
		{"1.s", -EINVAL},
		{".5s", -EINVAL},
		{"1e3s", -EINVAL},
		{"0x5s", -EINVAL},
		{"nan", -EINVAL},
		{"99999999999999999999s", -ERANGE},
		{"300000w", -ERANGE},
		{"15000w15000w", -ERANGE},
	};
	uint64_t v = 42;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(text_parse_duration(good[i].text, &v), 0);
		assert_int_equal(v, good[i].ns);
	}
	v = 42;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(text_parse_duration(bad[i].text, &v), bad[i].err);
		assert_int_equal(v, 42);
	}
}

static void size_parses(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"4096", 4096},
		{"512b", 512},
		{"64k", 65536},
		{"500m", 500ULL << 20},
		{"10g", 10ULL << 30},
		{"10GB", 10ULL << 30},
		{"10GiB", 10ULL << 30},
		{"1t", 1ULL << 40},
		{"1.5g", 3ULL << 29},
	};
	static const char *const bad[] = {
		"", "g", "-1g", "10x", "10gg", "10 g", "1.5", "10gi", "0x10", "9999999999t"};
	uint64_t v = 42;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(text_parse_size(good[i].text, &v), 0);
		assert_int_equal(v, good[i].bytes);
	}
	v = 42;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(text_parse_size(bad[i], &v) < 0);
		assert_int_equal(v, 42);
	}
}

static void doubles_read_back(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {{0, "0"}, {0.1, "0.1"}, {1e300, "1e+300"}, {1.023e-6, "1.023e-06"},
		{1.0 / 3, "0.3333333333333333"}, {NAN, "NaN"}, {INFINITY, "+Inf"},
		{-INFINITY, "-Inf"}, {-2.5, "-2.5"}, {9007199254740993.0, "9007199254740992"}};
	char text[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		text_format_double(text, cases[i].v);
		if (!isnan(cases[i].v))
			assert_true(strtod(text, NULL) == cases[i].v);
		assert_string_equal(text, cases[i].text);
	}
}

static void plurals(void **state)
{
	static const char *const rows[][2] = {
		{"calls", "1 call"},
		{"failed calls", "1 failed call"},
		{"first calls", "1 first call"},
		{"processes on the GPU", "1 process on the GPU"},
		{"allocations never freed", "1 allocation never freed"},
		{"calls beside others", "1 call beside others"},
		{"copies", "1 copy"},
		{"entries", "1 entry"},
		{"pauses", "1 pause"},
		{"losses", "1 loss"},
		{"switches", "1 switch"},
		{"boxes", "1 box"},
		{"nodes", "1 node"},
		{"more", "1 more"},
		{"", "1 "},
	};
	char out[TEXT_PLURAL_MAX], longest[300];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(text_format_plural(out, 1, rows[i][0]), rows[i][1]);
	assert_string_equal(text_format_plural(out, 0, "rows"), "0 rows");
	assert_string_equal(text_format_plural(out, 2, "copies"), "2 copies");
	assert_string_equal(text_format_plural(out, 12345, "failed calls"), "12,345 failed calls");
	memset(longest, 's', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(strlen(text_format_plural(out, 1, longest)), sizeof(out) - 1);
	assert_int_equal(strlen(text_format_plural(out, 2, longest)), sizeof(out) - 1);
}

static void lines_are_broken_between_words(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	text_wrap(&b, 2, 20, "waiting for the GPU 96.5 %, then 9.5 ms of µs");
	assert_string_equal(buf_str(&b), "waiting for the\n  GPU 96.5 %, then\n  9.5 ms of µs\n");
	buf_clear(&b);
	text_wrap(&b, 0, 4, "5 of 8 steps");
	assert_string_equal(buf_str(&b), "5 of\n8\nsteps\n");
	buf_clear(&b);
	text_wrap(&b, 0, SIZE_MAX, "a  long\nline");
	assert_string_equal(buf_str(&b), "a long\\nline\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escape_makes_controls_visible),
		cmocka_unit_test(escape_shows_bad_utf8),
		cmocka_unit_test(escape_keeps_printable),
		cmocka_unit_test(duration_reads_as_published),
		cmocka_unit_test(spans_have_a_space_before_their_unit),
		cmocka_unit_test(counts_and_bytes),
		cmocka_unit_test(plurals),
		cmocka_unit_test(duration_parses),
		cmocka_unit_test(size_parses),
		cmocka_unit_test(doubles_read_back),
		cmocka_unit_test(lines_are_broken_between_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
