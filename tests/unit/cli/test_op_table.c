/* SPDX-License-Identifier: Apache-2.0 */
/* test_op_table.c - all lines of a table are equally wide, at every width of a terminal. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/text.h"
#include "cli/live.h"

static int columns_of(const char *line)
{
	int n = 0;

	for (; *line && *line != '\n'; line++)
		n += ((unsigned char)*line & 0xc0) != 0x80;
	return n;
}

static void lines_are_equally_wide(void **state)
{
	static const uint16_t names[] = {CUDA_MALLOC, CUDA_LAUNCH_COOP, 999};

	for (int columns = 0; columns <= 200; columns++)
		for (int unicode = 0; unicode < 2; unicode++) {
			struct live_style style = {.unicode = unicode, .columns = columns};
			_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
			int lines = 0;

			op_table_rule(&b, style, OP_TABLE_TOP);
			op_table_head(&b, style, true);
			op_table_rule(&b, style, OP_TABLE_MIDDLE);
			for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
				struct tracer_op o = {.source = SOURCE_CUDA, .op = names[i]};

				o.count = UINT64_MAX >> (i * 24);
				o.nested = i == 1;
				sketch_add(&o.sketch, 3599 * NS_PER_S, 1);
				op_table_row(&b, &o, style, true);
			}
			op_table_rule(&b, style, OP_TABLE_BOTTOM);
			for (const char *s = buf_str(&b); *s; s = strchr(s, '\n') + 1, lines++)
				assert_int_equal(columns_of(s), op_table_width(style));
			assert_int_equal(lines, 7);
			if (columns >= 80)
				assert_true(op_table_width(style) < columns);
		}
}

static void clip_counts_columns_and_not_bytes(void **state)
{
	assert_int_equal(text_clip("abc", 2), 2);
	assert_int_equal(text_clip("abc", 3), 3);
	assert_int_equal(text_clip("abc", 9), 3);
	assert_int_equal(text_clip("", 9), 0);
	assert_int_equal(text_clip("abc", 0), 0);
	assert_int_equal(text_clip("1\u00b5s", 2), 3); /* never within a character */
	assert_int_equal(text_clip("\u2502\u2502", 1), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_equally_wide),
		cmocka_unit_test(clip_counts_columns_and_not_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
