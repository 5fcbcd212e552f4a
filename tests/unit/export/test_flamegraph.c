/* SPDX-License-Identifier: Apache-2.0 */
/* test_flamegraph.c - the picture: what is where, within its bytes, and XML whatever names hold.
 * tests/integration/42-export has it read by an XML parser. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "stack_fixture.h"
#include "wire/ids.h"

static void assert_has(const struct buf *b, const char *part)
{
	if (!strstr(buf_str(b), part))
		fail_msg("\"%s\" is not there", part);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (const char *s = text; (s = strstr(s, part)); s += strlen(part))
		n++;
	return n;
}

static void draw(struct flame *f, const struct flamegraph *g, struct buf *b)
{
	assert_int_equal(flame_finish(f), 0);
	assert_int_equal(flamegraph_svg(b, f, g), 0);
}

static void the_picture(void **state)
{
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20), again = b;
	struct flamegraph g = {.title = "a <b> & \"c\"", .subtitle = "sub"};

	f.function_first = true;
	assert_int_equal(flame_add(&f, &stack_a, SOURCE_CUDA, CUDA_STREAM_SYNC, 7500000), 0);
	assert_int_equal(flame_add(&f, &stack_b, SOURCE_CUDA, CUDA_LAUNCH, 2499000), 0);
	assert_int_equal(flame_add(&f, &stack_c, SOURCE_CUDA, CUDA_MALLOC, 1000), 0);
	draw(&f, &g, &b);
	assert_memory_equal(b.data, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ", 44);
	assert_has(&b, "aria-label=\"a &lt;b&gt; &amp; &quot;c&quot;\"");
	assert_has(&b, ">sub</text>");
	assert_has(&b,
		"<g class=\"f a\"><title>all\n10ms, 100 %</title><rect x=\"10.00\" y=\"78\" "
		"width=\"1180.00\" height=\"16\"/><text x=\"13.00\" y=\"90\">all</text></g>");
	assert_has(&b, "<title>forward (train.py:142)\n10ms, 100 %</title><rect x=\"10.00\" "
		       "y=\"112\"");
	assert_has(&b, "<title>cudaStreamSynchronize\n7.5ms, 75 %</title><rect x=\"10.00\" "
		       "y=\"163\" width=\"885.00\"");
	/* the smaller branch begins where the larger one ends */
	assert_has(&b, "<title>at::native::sum\n2.5ms, 25 %</title><rect x=\"895.00\" y=\"129\"");
	assert_has(&b, "3 frames narrower than 0.3 pixels are not drawn");
	assert_null(strstr(b.data, "load,"));
	assert_has(&b, "prefers-color-scheme: dark");
	assert_has(&b, "<script><![CDATA[");
	assert_int_equal(count(b.data, "]]>"), 1);
	assert_null(strstr(b.data, "href")); /* nothing is fetched */
	assert_int_equal(count(b.data, "http"), count(b.data, "http://www.w3.org/"));
	assert_int_equal(flamegraph_svg(&again, &f, &g), 0);
	assert_string_equal(buf_str(&again), buf_str(&b));
}

static void names_are_text(void **state)
{
	static const struct stack_frame evil[] = {
		{.symbol = "</title><script>alert(1)</script>]]>&#0;\x01\xff\xef\xbf\xbf\"'"}};
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	struct flamegraph g = {.title = "t", .subtitle = "s", .is_count = true};
	struct stack s = {1, evil, 1, ""};

	assert_int_equal(flame_add(&f, &s, SOURCE_CUDA, CUDA_MALLOC, 1), 0);
	draw(&f, &g, &b);
	assert_int_equal(count(b.data, "<script>"), 1);
	assert_int_equal(count(b.data, "]]>"), 1);
	assert_has(&b, "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;]]&gt;&amp;#0,");
	assert_has(&b, "\n1 call, 100 %</title>");
	for (size_t i = 0; i < b.len; i++)
		assert_true(
			(unsigned char)b.data[i] >= 0x20 || b.data[i] == '\n' || b.data[i] == '\t');
	assert_null(strstr(b.data, "\xef\xbf\xbf"));
}

/* Text is clipped to its frame: letters of 7.25 pixels. */
static void text_fits_its_frame(void **state)
{
	static const struct stack_frame wide[] = {{.symbol = "abcdefghijklmnopqrstuvwxyz"}};
	static const struct stack_frame other[] = {{.symbol = "other"}};
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	struct flamegraph g = {.title = "t", .subtitle = "s"};
	struct stack s = {1, wide, 1, ""}, o = {2, other, 1, ""};

	assert_int_equal(flame_add(&f, &s, SOURCE_CUDA, CUDA_MALLOC, 1), 0);
	assert_int_equal(flame_add(&f, &o, SOURCE_CUDA, CUDA_MALLOC, 11), 0);
	draw(&f, &g, &b);
	assert_has(&b, ">abcdefghijk\xe2\x80\xa6</text>"); /* 98.3 pixels: 12 letters */
	assert_has(&b, "<title>abcdefghijklmnopqrstuvwxyz\n");
}

/* 10,000 stacks of 3,000 branches: within the bytes, and a frame never without its
 * parent.
 */
static void many_stacks_fit(void **state)
{
	enum { STACKS = 10000, FRAMES = 12 };
	static struct stack_frame frames[FRAMES];
	static char names[FRAMES][400];
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
	struct flamegraph g = {.title = "t", .subtitle = "s"};
	struct stack s = {1, frames, FRAMES, ""};

	for (int i = 0; i < STACKS; i++) {
		for (int k = 0; k < FRAMES; k++) {
			/* each of 12 rows, all wider than 0.3 pixels */
			snprintf(names[k], sizeof(names[k]), "f%d_%d<%0300d>", k, i % 3000, 0);
			frames[k].symbol = names[k];
		}
		assert_int_equal(
			flame_add(&f, &s, SOURCE_CUDA, CUDA_LAUNCH, 1000 + (uint64_t)i), 0);
	}
	draw(&f, &g, &b);
	assert_in_range(b.len, 1 << 20, FLAMEGRAPH_BYTES_MAX);
	assert_null(strstr(b.data, "narrower than 0.3 of")); /* more than that */
	assert_has(&b, " pixels are not drawn");
	assert_true(count(b.data, "<g class=\"f ") > 1000);
}

static void an_empty_tree_is_no_picture(void **state)
{
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct flamegraph g = {.title = "t", .subtitle = "s"};

	assert_int_equal(flame_finish(&f), 0);
	assert_int_equal(flamegraph_svg(&b, &f, &g), -ENODATA);
	assert_int_equal(b.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_picture),
		cmocka_unit_test(names_are_text),
		cmocka_unit_test(text_fits_its_frame),
		cmocka_unit_test(many_stacks_fit),
		cmocka_unit_test(an_empty_tree_is_no_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
