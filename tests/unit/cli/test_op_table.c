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
			struct tracer_op ops[ARRAY_SIZE(names)] = {0};
			struct tracer_view v = {.ops = ops, .op_count = ARRAY_SIZE(ops)};
			_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
			int lines = 0, width;

			for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
				ops[i] = (struct tracer_op){.source = SOURCE_CUDA, .op = names[i]};
				ops[i].count = UINT64_MAX >> (i * 24);
				ops[i].nested = i == 1;
				sketch_add(&ops[i].sketch, 3599 * NS_PER_S, 1);
			}
			op_table_put(&b, &v, style);
			width = columns_of(strchr(buf_str(&b), '\n') + 1); /* below the title */
			for (const char *s = strchr(buf_str(&b), '\n') + 1; *s != '\n';
				s = strchr(s, '\n') + 1, lines++)
				assert_int_equal(columns_of(s), width);
			assert_int_equal(lines, 7);
			if (columns >= 80)
				assert_true(width < columns);
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
