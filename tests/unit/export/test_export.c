/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "export/export.h"
#include "stack_fixture.h"

static struct event events[] = {
	{.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.dur_ns = 20000,
		.weight = 10,
		.stack_hash = 10},
	{.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .dur_ns = 4000, .weight = 1, .stack_hash = 20},
	{.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .dur_ns = 400, .weight = 1},
	{.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .dur_ns = 0, .weight = 1, .stack_hash = 555},
	{.source = SOURCE_HOST, .op = HOST_SCHED_SWITCH, .dur_ns = 90000000, .weight = 1},
};

static struct nodedb_content content(void)
{
	return (struct nodedb_content){
		.events = events, .event_count = ARRAY_SIZE(events), .stacks = three_stacks};
}

static void time_or_calls(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct export_options options = {.format = EXPORT_FOLDED};
	struct nodedb_content c = content();
	struct export_stats stats;
	struct errinfo e = {0};

	assert_int_equal(export_stacks(&c, &options, &b, &stats, &e), 0);
	assert_string_equal(buf_str(&b),
		"train.py:9 <module>;train.py:142 forward;[libfoo.so];"
		"at::native::copy_(at::Tensor&);cudaStreamSynchronize 200\n"
		"train.py:9 <module>;train.py:142 forward;at::native::sum;cudaLaunchKernel 4\n"
		"[no stack];cudaLaunchKernel 1\n");
	assert_int_equal(stats.calls, 13);
	assert_int_equal(stats.ns, 204400);
	assert_int_equal(stats.without_stack, 2);
	assert_int_equal(stats.stacks, 2);
	buf_clear(&b);
	options.count = true;
	options.op = wire_op_by_name("cudaStreamSync");
	assert_int_equal(export_stacks(&c, &options, &b, &stats, &e), 0);
	assert_non_null(strstr(buf_str(&b), ";cudaStreamSynchronize 10\n"));
	assert_null(strstr(buf_str(&b), "cudaLaunchKernel"));
}

static void a_picture(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct export_options options = {.format = EXPORT_FLAMEGRAPH, .name = "x\x1b.db"};
	struct nodedb_content c = content();
	struct export_stats stats;
	struct errinfo e = {0};

	assert_int_equal(export_stacks(&c, &options, &b, &stats, &e), 0);
	assert_non_null(strstr(buf_str(&b), ">GPU calls by call stack: x\\x1b.db</text>"));
	assert_non_null(strstr(buf_str(&b), "13 recorded calls, 204µs on the host. Width is their "
					    "time; callers are above. 2 calls have no stack."));
	assert_non_null(strstr(buf_str(&b), "<title>forward (train.py:142)\n"));
}

static void nothing_to_export_is_told(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20), small = BUF_INIT(10);
	struct export_options options = {.format = EXPORT_FOLDED};
	struct nodedb_content c = content();
	struct export_stats stats = {.calls = 77};
	struct errinfo e = {0};

	assert_int_equal(export_stacks(&c, &options, &small, &stats, &e), -E2BIG);
	c.stacks.count = 0;
	assert_int_equal(export_stacks(&c, &options, &b, &stats, &e), -ENODATA);
	assert_non_null(strstr(e.text, "no call stacks in 13 calls"));
	c.event_count = 0;
	assert_int_equal(export_stacks(&c, &options, &b, &stats, &e), -ENODATA);
	assert_int_equal(stats.calls, 77);
	assert_int_equal(b.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_or_calls),
		cmocka_unit_test(a_picture),
		cmocka_unit_test(nothing_to_export_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
