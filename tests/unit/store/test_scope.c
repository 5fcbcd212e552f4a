/* SPDX-License-Identifier: Apache-2.0 */
/* test_scope.c - which rows and buckets belong to a part of a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "store/nodedb.h"
#include "base/clock.h"

static const char *where(struct buf *b, const struct scope *s, struct scope_columns c)
{
	buf_clear(b);
	scope_where(s, &c, b);
	return buf_str(b);
}

static void test_rows_and_buckets(void **state)
{
	static const uint32_t pids[] = {7, 8};
	struct scope s = {.from_ns = 100,
		.to_ns = 200,
		.pids = pids,
		.pid_count = 2,
		.source = 1,
		.op = 3,
		.node = "it's"};
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	assert_string_equal(where(&b, &s, (struct scope_columns){0}), " WHERE 1");
	assert_string_equal(where(&b, &s, (struct scope_columns){.time = "timestamp"}),
		" WHERE 1 AND timestamp > 99 AND timestamp <= 200");
	/* [60, 110) has moments of it, [50, 100) has none */
	assert_string_equal(where(&b, &s, (struct scope_columns){.time = "bucket", .width_ns = 50}),
		" WHERE 1 AND bucket > 50 AND bucket <= 200");
	assert_string_equal(
		where(&b, &s, (struct scope_columns){.pid = "pid", .op = true, .node = true}),
		" WHERE 1 AND source = 1 AND op = 3 AND node = 'it''s' AND pid IN (7,8)");
	assert_string_equal(where(&b, &(struct scope){0},
				    (struct scope_columns){"timestamp", "pid", 5, true, true}),
		" WHERE 1");
}

static void test_accepts(void **state)
{
	static const uint32_t pids[] = {7, 8};
	struct scope s = {.from_ns = 100, .to_ns = 200};

	assert_true(scope_accepts(&(struct scope){0}, INT64_MIN, -1));
	assert_true(scope_accepts(&s, 100, -1));
	assert_true(scope_accepts(&s, 200, 9));
	assert_false(scope_accepts(&s, 99, 7));
	assert_false(scope_accepts(&s, 201, 7));
	s.pids = pids;
	s.pid_count = 2;
	assert_true(scope_accepts(&s, 150, 8));
	assert_false(scope_accepts(&s, 150, 9));
	assert_false(scope_accepts(&s, 150, (INT64_C(1) << 32) + 8));
	assert_false(scope_accepts(&s, 99, 8));
}

static void test_widths(void **state)
{
	struct scope s = {.from_ns = 1, .to_ns = 1 + 1800 * (int64_t)NS_PER_S};

	assert_string_equal(scope_bucket_table(scope_bucket_ns(&s)), "event_aggregates_5s");
	s.to_ns++;
	assert_string_equal(scope_bucket_table(scope_bucket_ns(&s)), "event_aggregates");
	assert_string_equal(
		scope_bucket_table(scope_bucket_ns(&(struct scope){0})), "event_aggregates");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_and_buckets),
		cmocka_unit_test(test_accepts),
		cmocka_unit_test(test_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
