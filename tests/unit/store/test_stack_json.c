/* SPDX-License-Identifier: Apache-2.0 */
/* test_stack_json.c - the published shape, there and back; and what is no such thing is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/nodedb.h"

static const struct stack_frame mixed[] = {
	{.ip = 0x10, .symbol = "cudaMalloc", .file = "libcudart.so.12"},
	{.ip = 0x7f5c19c1498c, .file = "libfoo.so"},
	{.ip = 0xfff},
	{.symbol = "inl\"ined<a>", .file = "a.cc", .line = 7},
	{.py_file = "/w/tr\xc3\xa4in.py", .py_func = "forward", .py_line = 142},
	{.py_file = "/w/x.py", .py_func = "<module>"},
};

static void write_both(const struct stack *s, struct buf *frames, struct buf *ips, struct buf *stop)
{
	stack_json_frames(s, frames, stop);
	stack_json_ips(s, ips);
	assert_int_equal(frames->err | ips->err | stop->err, 0);
}

static int read_texts(const char *frames, const char *ips, const char *stop, struct stack **ret)
{
	struct stack_row row = {9, ips, frames, stop, strlen(ips), strlen(frames), strlen(stop)};

	return stack_json_read(&row, ret);
}

static bool same(const char *a, const char *b)
{
	return (!a && !b) || (a && b && !strcmp(a, b));
}

static void assert_same_frames(const struct stack *a, const struct stack *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct stack_frame *x = &a->frames[i], *y = &b->frames[i];

		assert_true(same(x->symbol, y->symbol) && same(x->file, y->file));
		assert_true(same(x->py_file, y->py_file) && same(x->py_func, y->py_func));
		assert_int_equal(x->line, y->line);
		assert_int_equal(x->py_line, y->py_line);
		assert_true(x->symbol || x->ip == y->ip);
	}
}

static void the_published_shape(void **state)
{
	_cleanup_buf_ struct buf frames = BUF_INIT(1 << 16), ips = frames, stop = frames;
	struct stack s = {9, mixed, ARRAY_SIZE(mixed), "no table"};
	_cleanup_free_ struct stack *back = NULL;

	write_both(&s, &frames, &ips, &stop);
	assert_string_equal(buf_str(&frames),
		"[{\"s\":\"cudaMalloc\",\"f\":\"libcudart.so.12\"},"
		"{\"f\":\"libfoo.so\",\"i\":\"0x7f5c19c1498c\"},{\"i\":\"0xfff\"},"
		"{\"s\":\"inl\\\"ined<a>\",\"f\":\"a.cc\",\"l\":7},"
		"{\"pf\":\"/w/tr\xc3\xa4in.py\",\"pfn\":\"forward\",\"pl\":142},"
		"{\"pf\":\"/w/x.py\",\"pfn\":\"<module>\"}]");
	assert_string_equal(buf_str(&ips), "");
	assert_string_equal(buf_str(&stop), "no table");
	assert_int_equal(read_texts(buf_str(&frames), "", "no table", &back), 0);
	assert_int_equal(back->hash, 9);
	assert_string_equal(back->stop, "no table");
	assert_same_frames(&s, back);
}

static void addresses_only_without_names(void **state)
{
	static const struct stack_frame bare[] = {{.ip = 0x1}, {.ip = UINT64_MAX, .file = "l.so"}};
	_cleanup_buf_ struct buf frames = BUF_INIT(1 << 16), ips = frames, stop = frames;
	struct stack s = {9, bare, 2, ""};
	_cleanup_free_ struct stack *back = NULL, *none = NULL;

	write_both(&s, &frames, &ips, &stop);
	assert_string_equal(buf_str(&ips), "[\"0x1\",\"0xffffffffffffffff\"]");
	assert_string_equal(buf_str(&stop), "");
	assert_int_equal(read_texts("", buf_str(&ips), "", &back), 0); /* as published files may */
	assert_int_equal(back->count, 2);
	assert_true(back->frames[1].ip == UINT64_MAX);
	assert_int_equal(read_texts("", "", "", &none), 0);
	assert_int_equal(none->count, 0);
}

/* 512 frames with names of 5000 bytes do not fit: names are cut, then frames. */
static void a_row_has_a_ceiling(void **state)
{
	static const size_t lengths[] = {5000, 300, 60};
	static struct stack_frame frames[STACK_FRAMES_MAX];
	struct stack s = {9, frames, STACK_FRAMES_MAX, "cut"};
	static char name[5001];

	for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
		_cleanup_buf_ struct buf out = BUF_INIT(1 << 20), stop = BUF_INIT(1 << 16);
		_cleanup_free_ struct stack *back = NULL;

		memset(name, k == 2 ? '\x01' : 'n', sizeof(name)); /* \u0001 takes six */
		name[lengths[k]] = 0;
		for (size_t i = 0; i < STACK_FRAMES_MAX; i++)
			frames[i].symbol = frames[i].file = name;
		stack_json_frames(&s, &out, &stop);
		assert_int_equal(out.err, 0);
		assert_in_range(out.len, 10000, STACK_JSON_MAX);
		assert_int_equal(read_texts(buf_str(&out), "", buf_str(&stop), &back), 0);
		assert_in_range(back->count, 40, STACK_FRAMES_MAX);
		if (back->count < STACK_FRAMES_MAX) {
			assert_non_null(strstr(back->stop, "cut; "));
			assert_non_null(strstr(back->stop, "outer frames omitted"));
		}
		if (k == 0)
			assert_non_null(strstr(back->frames[0].symbol, "nnn\xe2\x80\xa6"));
	}
	s.count = 3; /* few: a long name stays whole */
	memset(name, 'n', sizeof(name));
	name[3000] = 0;
	_cleanup_buf_ struct buf out = BUF_INIT(1 << 20), stop = BUF_INIT(1 << 16);
	stack_json_frames(&s, &out, &stop);
	assert_non_null(strstr(buf_str(&out), name));
	assert_string_equal(buf_str(&stop), "cut");
}

static void a_cut_name_stays_text(void **state)
{
	static struct stack_frame frames[300];
	_cleanup_buf_ struct buf out = BUF_INIT(1 << 20), stop = BUF_INIT(1 << 16);
	_cleanup_free_ struct stack *back = NULL;
	struct stack s = {9, frames, ARRAY_SIZE(frames), ""};
	char name[1000];

	for (size_t i = 0; i < 999; i++)
		name[i] = "\xe2\x82\xac"[i % 3]; /* euro signs: 256 falls into one */
	name[999] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i].symbol = name;
	stack_json_frames(&s, &out, &stop);
	assert_null(strstr(buf_str(&out), "\xef\xbf\xbd")); /* no character was broken */
	assert_int_equal(read_texts(buf_str(&out), "", "", &back), 0);
}

static void bad_input_is_refused(void **state)
{
	static const char *const bad[] = {"nonsense", "{}", "null", "[1]", "[null]", "[[]]",
		"[{\"s\":5}]", "[{\"s\":null}]", "[{\"l\":-1}]", "[{\"l\":4294967296}]",
		"[{\"l\":\"7\"}]", "[{\"l\":1.5}]", "[{\"i\":5}]", "[{\"i\":\"7f\"}]",
		"[{\"i\":\"0x\"}]", "[{\"i\":\"0x11111111111111111\"}]", "[{\"i\":\"0x-1\"}]",
		"[{\"s\":\"a\"}", "[{\"s\":\"a\\u0000b\"}]", "[{\"s\":\"\xff\"}]",
		"[{\"s\":\"a\",\"s\":\"b\"}]", "[{\"pf\":[]}]", "[{\"pl\":{}}]", "[\"main\"]",
		"[] trailing"};
	_cleanup_free_ char *deep = malloc(STACK_JSON_MAX + 2);
	struct stack *s = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (read_texts(bad[i], "", "", &s) != -EBADMSG)
			fail_msg("%s was taken", bad[i]);
	assert_int_equal(read_texts("", "[5]", "", &s), -EBADMSG);
	assert_non_null(deep);
	memset(deep, '[', STACK_JSON_MAX);
	deep[STACK_JSON_MAX] = 0;
	assert_int_equal(read_texts(deep, "", "", &s), -EBADMSG);
	deep[STACK_JSON_MAX] = ' ';
	deep[STACK_JSON_MAX + 1] = 0;
	assert_int_equal(read_texts(deep, "", "", &s), -EFBIG);
	assert_int_equal(read_texts("[]", "", deep, &s), -EFBIG);
	for (size_t i = 0; i < STACK_FRAMES_MAX + 1; i++)
		memcpy(deep + 3 * i, i ? ",{}" : "[{}", 3);
	memcpy(deep + 3 * (STACK_FRAMES_MAX + 1), "]", 2);
	assert_int_equal(read_texts(deep, "", "", &s), -EFBIG);
	assert_null(s); /* untouched */
}

static void odd_input_is_taken(void **state)
{
	_cleanup_free_ struct stack *s = NULL;

	assert_int_equal(read_texts("[{}, {\"pfn\":\"f\",\"new\":[1]}, {\"pf\":\"x.py\"},"
				    " {\"s\":\"\\u003cm\\u003e\",\"i\":\"0xAB\"}]",
				 "junk", "", &s),
		0);
	assert_int_equal(s->count, 4);
	assert_true(stack_frame_is_python(&s->frames[1]) && stack_frame_is_python(&s->frames[2]));
	assert_string_equal(s->frames[1].py_file, "");
	assert_string_equal(s->frames[2].py_func, "");
	assert_string_equal(s->frames[3].symbol, "<m>");
	assert_int_equal(s->frames[3].ip, 0xab);
}

/* The published agent stores functions as the linker has them. */
static void names_are_demangled(void **state)
{
	_cleanup_free_ struct stack *s = NULL;

	assert_int_equal(read_texts("[{\"s\":\"_ZN2at6native5emptyEl+0x6a\",\"f\":\"libtorch.so\"},"
				    "{\"s\":\"_RNvCs1234_7mycrate3foo\"},{\"s\":\"_Z?bad\"},"
				    "{\"s\":\"cudaMalloc\"},{\"pf\":\"a.py\",\"pfn\":\"_ZN1aE\"}]",
				 "", "", &s),
		0);
	assert_string_equal(s->frames[0].symbol, "at::native::empty(long)+0x6a");
	assert_string_equal(s->frames[0].file, "libtorch.so");
	assert_string_equal(s->frames[1].symbol, "mycrate::foo");
	assert_string_equal(s->frames[2].symbol, "_Z?bad");
	assert_string_equal(s->frames[3].symbol, "cudaMalloc");
	assert_string_equal(s->frames[4].py_func, "_ZN1aE"); /* Python names are as written */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_shape),
		cmocka_unit_test(addresses_only_without_names),
		cmocka_unit_test(a_row_has_a_ceiling),
		cmocka_unit_test(a_cut_name_stays_text),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(odd_input_is_taken),
		cmocka_unit_test(names_are_demangled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
