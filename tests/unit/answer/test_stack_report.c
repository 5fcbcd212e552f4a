/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "answer/encode/report_json.h"
#include "stack_fixture.h"

static void assert_has(const struct buf *b, const char *part)
{
	if (!strstr(buf_str(b), part))
		fail_msg("\"%s\" is not in:\n%s", part, buf_str(b));
}

static const struct incident slow = {.severity = SEVERITY_HIGH,
	.pid = 4821,
	.comm = "py\x1bthon3",
	.source = SOURCE_CUDA,
	.op = CUDA_STREAM_SYNC,
	.excess_ns = 1000000000,
	.slow_calls = 400,
	.stacks = {{10, 500000000, 300}, {20, 200000000, 50}, {99, 100000000, 20},
		{UINT64_MAX - 4, 50000000, 10}},
	.stack_count = 4,
	.stack_total = 6,
	.stack_ns = 900000000};

static void stacks_of_an_incident(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct stack_report r = {.stacks = &three_stacks, .width = SIZE_MAX};

	stack_report_text(&b, &slow, 1, &r);
	assert_has(&b, "\nSTACKS of the incidents, innermost frame first\n"
		       "\n[HIGH] cudaStreamSync by py\\x1bthon3 (pid 4821)\n"
		       "  50 % of 1.0s extra time, 300 of 400 slow calls, stack 10\n"
		       "    cudaStreamSynchronize [libcudart.so.12]\n");
	assert_has(&b, "    forward() at train.py:142\n");
	assert_has(&b, "stack 99\n    (frames not in the recording)\n");
	assert_has(&b, "  10 %: 3 more stacks; --json has the 16 heaviest\n"
		       "  10 %: of the time without a stack\n");
	assert_null(strchr(buf_str(&b), '\033'));
}

/* Slow steps have no slow calls, and a leak no lost time. */
static void stacks_of_what_is_counted(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct stack_report r = {.stacks = &three_stacks, .width = SIZE_MAX};
	struct incident i = {.unit = "allocations never freed",
		.stacks = {{10, 0, 229}},
		.stack_count = 1,
		.stack_total = 1};

	stack_report_text(&b, &i, 1, &r);
	assert_has(&b, "  229 allocations never freed, stack 10\n");
	i.excess_ns = 4000000000;
	i.stacks[0].ns = 1000000000;
	buf_clear(&b);
	stack_report_text(&b, &i, 1, &r);
	assert_has(&b, "  25 % of 4.0s lost, stack 10\n");
	assert_null(strstr(buf_str(&b), "of 0 slow"));
}

static void stacks_with_most_time(void **state)
{
	static const struct stack_total totals[] = {
		{UINT64_MAX - 4, SOURCE_CUDA, CUDA_MALLOC, 600000, 3},
		{0, SOURCE_CUDA, CUDA_MALLOC, 300000, 2}, {20, SOURCE_CUDA, CUDA_FREE, 100000, 1}};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct stack_report r = {
		.stacks = &three_stacks, .totals = totals, .total_count = 3, .width = SIZE_MAX};

	stack_report_text(&b, NULL, 0, &r);
	assert_has(&b, "\nSTACKS with most time, innermost frame first\n"
		       "\n1. 600µs, 60 % of the time of recorded calls: 3 cudaMalloc, stack -5\n"
		       "    load;");
	assert_has(&b, "\n2. 100µs, 10 % of the time of recorded calls: 1 cudaFree, stack 20\n");
	assert_null(strstr(buf_str(&b), "more are not shown"));
}

static void no_stacks_are_told(void **state)
{
	static const struct stack_total none = {0, SOURCE_CUDA, CUDA_MALLOC, 5, 1};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct stack_report r = {.stacks = &three_stacks, .totals = &none, .total_count = 1};
	struct incident bare = {.excess_ns = 1};

	stack_report_text(&b, NULL, 0, &r);
	assert_has(&b, "\nNo call stacks\n  No call stacks were recorded;");
	buf_clear(&b);
	stack_report_text(&b, &bare, 1, &r);
	assert_has(&b, "\nNo call stacks\n  The slow calls were recorded without call stacks.\n");
}

static void as_json(void **state)
{
	static const struct stack_total totals[] = {
		{UINT64_MAX - 4, SOURCE_CUDA, CUDA_MALLOC, 75, 3}, {0, SOURCE_CUDA, 2, 25, 2}};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);
	struct stack_report r = {.stacks = &three_stacks, .totals = totals, .total_count = 2};

	stack_report_totals(&w, &r);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b),
		"[{\"hash\":-5,\"source\":\"cuda\",\"op\":\"cudaMalloc\",\"ns\":75,\"share\":0.75,"
		"\"calls\":3,\"frames\":[{\"symbol\":\"load;\\u001b[2J<b>&\\u000a\",\"file\":"
		"\"lib\\u0007x.so\"},{\"ip\":\"0xabc\"}],\"stop\":\"no unwind table\"}]\n");
	buf_clear(&b);
	stack_report_incident(&w, &slow, &three_stacks);
	assert_int_equal(json_finish(&w), 0);
	assert_has(&b, "[{\"hash\":10,\"ns\":500000000,\"share\":0.5,\"calls\":300,\"frames\":"
		       "[{\"symbol\":\"cudaStreamSynchronize\"");
	assert_has(&b, "{\"py_file\":\"/w/train.py\",\"py_func\":\"forward\",\"py_line\":142}");
	assert_has(&b, "{\"hash\":99,\"ns\":100000000,\"share\":0.1,\"calls\":20,\"frames\":null}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_of_an_incident),
		cmocka_unit_test(stacks_with_most_time),
		cmocka_unit_test(stacks_of_what_is_counted),
		cmocka_unit_test(no_stacks_are_told),
		cmocka_unit_test(as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
