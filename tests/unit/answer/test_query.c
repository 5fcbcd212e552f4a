/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/recording_option.h"
#include "answer/encode/report.h"
#include "answer/explain.h"

#define T0 1774360124000000000

static struct event events[] = {
	{.start.ns = T0,
		.dur_ns = 1000,
		.pid = 7,
		.tid = 8,
		.seq = 1,
		.source = SOURCE_CUDA,
		.op = CUDA_MALLOC,
		.weight = 1,
		.arg0 = 4096,
		.comm = "py\x1b[2J"},
	{.start.ns = T0 + 500000000,
		.dur_ns = 500000000,
		.pid = 7,
		.seq = 2,
		.source = SOURCE_HOST,
		.op = HOST_SCHED_SWITCH,
		.weight = 1,
		.wait_ns = 9},
	{.start.ns = T0 + 600000000,
		.pid = 9,
		.seq = 3,
		.source = SOURCE_DRIVER,
		.op = 1,
		.weight = 256,
		.ret = 2,
		.dur_ns = 10},
};
static struct annotation_label labels[] = {
	{.time_ns = T0 - 5, .key = "phase", .value = "load"},
	{.time_ns = T0 + 400000000, .key = "phase", .value = "\x1b[5m", .pid = 7},
};
static const struct nodedb_content content = {.events = events,
	.event_count = ARRAY_SIZE(events),
	.labels = labels,
	.label_count = ARRAY_SIZE(labels),
	.total_calls = 1000,
	.skipped_rows = 2,
	.first_ns = T0,
	.last_ns = T0 + 1000000000};
static const uint32_t pids[] = {7, 9};

static void contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void test_table(void **state)
{
	struct query_head head = {.pids = pids,
		.pid_count = 2,
		.events = 3,
		.calls = 1000,
		.skipped_rows = 2,
		.first_ns = T0,
		.last_ns = T0 + 1000000000};
	struct ops_answer a = {.origin = OPS_ROWS, .wall_ns = 1000000000};
	struct host_answer host = {true, 12, 34, 1.5, 7};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(op_stat_run(events, ARRAY_SIZE(events), &a.rows, &a.count), 0);
	ops_sum_up(&a);
	query_table(&b, &head, &a, &host);
	contains(buf_str(&b), "  1.0s | PID 7, 9 | 3 events (1,000 total, selective storage); 2 "
			      "damaged rows omitted\n"
			      "  From 2026-03-24 13:48:44 to 13:48:45 UTC\n");
	contains(buf_str(&b), "\n  CUDA Runtime\n");
	contains(buf_str(&b), "\n  CUDA Driver\n");
	contains(buf_str(&b), "    sched_switch                          1     500ms     500ms     "
			      "500ms     500ms   50.0%       0\n"); /* of the recording's second */
	contains(buf_str(&b), "Host at the end: CPU 12 %, memory 34 %, load 1.5, swap 7 MB\n");
	assert_null(strchr(buf_str(&b), '\x1b'));
	buf_clear(&b);
	head.since_ns = 5000000000;
	head.calls = 3;
	a.rows[0].nested = true;
	query_table(&b, &head, &a, &host);
	contains(buf_str(&b), "  last 5.0s | PID 7, 9 | 3 events; 2");
	contains(buf_str(&b), "       0   inside runtime calls\n");
	ops_answer_done(&a);
}

static void test_nothing(void **state)
{
	static const struct nodedb_content none;
	struct query_view v = {.content = &none};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	query_table(&b, &(struct query_head){0}, &(struct ops_answer){0}, &(struct host_answer){0});
	assert_string_equal(
		buf_str(&b), "  0 | 0 events\n  No matching events in the recording.\n");
	buf_clear(&b);
	query_json(&b, &v);
	assert_string_equal(buf_str(&b), "");
}

static void test_list(void **state)
{
	struct query_view v = {.content = &content, .labels = true};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	query_list(&b, &v);
	contains(buf_str(&b),
		"  2026-03-24 13:48:44.000000        7  cudaMalloc                      "
		"1.0µs  phase=load\n");
	contains(buf_str(&b), "phase=\\x1b[5m\n"); /* about pid 7 only */
	contains(buf_str(&b), "cuLaunchKernel                   10ns  phase=load\n");
}

static void test_json(void **state)
{
	struct query_view v = {.content = &content, .labels = true};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16), tiny = BUF_INIT(100);

	query_json(&b, &v);
	contains(buf_str(&b), "{\"timestamp\":\"2026-03-24T13:48:44.000000000Z\",\"pid\":7,"
			      "\"tid\":8,\"source\":\"cuda\",\"op\":\"cudaMalloc\","
			      "\"duration_ns\":1000,\"duration\":\"1.0µs\",\"args\":[4096,0],"
			      "\"timestamp_ns\":1774360124000000000,\"comm\":\"py\\u001b[2J\","
			      "\"seq\":1,\"labels\":{\"phase\":\"load\"}}\n");
	contains(buf_str(&b), "\"return_code\":2,\"seq\":3,\"weight\":256,");
	contains(buf_str(&b), "\"wait_ns\":9,");
	query_json(&tiny, &v);
	assert_true(tiny.err < 0);
}

/* A machine has hundreds of processes that allocate pages: those that use CUDA come first, and are not drowned. */
static void test_usage_others(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct nodedb_usage rows[40];
	const char *gpu, *other;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct nodedb_usage){.pid = 100 + (uint32_t)i,
			.source = SOURCE_HOST,
			.op = HOST_SCHED_SWITCH,
			.count = 100 - i};
	rows[39].source = SOURCE_CUDA;
	rows[39].op = CUDA_MALLOC;
	usage_text(&b, rows, ARRAY_SIZE(rows));
	contains(buf_str(&b), "PER PROCESS - 40 processes, 1 with CUDA calls\n");
	contains(buf_str(&b), "\n  34 more processes without CUDA calls: --json lists them\n");
	gpu = strstr(buf_str(&b), "PID 139");
	other = strstr(buf_str(&b), "PID 100");
	assert_true(gpu && other && gpu < other);
	assert_null(strstr(buf_str(&b), "PID 105"));
}

static void test_usage(void **state)
{
	static const struct nodedb_usage rows[] = {
		{.pid = 7,
			.source = SOURCE_CUDA,
			.op = CUDA_MALLOC,
			.count = 10,
			.sum_ns = 15000,
			.max_ns = 9000,
			.comm = "a\nb"},
		{.pid = 7, .source = SOURCE_DRIVER, .op = 1, .count = 4, .nested = true},
		{.pid = 9, .source = SOURCE_DRIVER, .op = 1, .count = 3},
		{.pid = 10, .source = SOURCE_HOST, .op = HOST_SCHED_SWITCH, .count = 2},
	};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	usage_text(&b, rows, ARRAY_SIZE(rows));
	contains(buf_str(&b), "PER PROCESS - 3 processes, 2 with CUDA calls\n");
	contains(buf_str(&b), "  PID 7 (a\\nb): 10 calls\n"); /* calls inside calls not twice */
	contains(buf_str(&b), "10 calls   avg 1.5µs   max 9.0µs\n");
	contains(buf_str(&b), "2 processes made CUDA calls");
	contains(buf_str(&b), "pids 7, 9\n");
	buf_clear(&b);
	usage_text(&b, rows, 2);
	assert_null(strstr(buf_str(&b), "share a GPU"));
	buf_clear(&b);
	usage_text(&b, NULL, 0);
	contains(buf_str(&b), "No per-process data");
	buf_clear(&b);
	usage_json(&b, rows, 1);
	contains(buf_str(&b),
		"\"pid\": 7,\n    \"comm\": \"a\\u000ab\",\n    \"source\": \"cuda\",\n"
		"    \"op\": \"cudaMalloc\",\n    \"count\": 10,\n    \"avg_ns\": 1500,\n"
		"    \"max_ns\": 9000,\n    \"nested\": false");
}

static void test_op_option(void **state)
{
	static const char *const bad[] = {"", "nonsense", "driver:cudaMalloc",
		"cuda:", ":cudaMalloc", "cuda:cuda:cudaMalloc", "\x1b[2J"};
	const struct wire_op_row *op = NULL;
	struct errinfo err;

	assert_int_equal(op_option_find("CUDAMALLOC", &op, &err), 0);
	assert_true(op->source == SOURCE_CUDA && op->op == CUDA_MALLOC);
	assert_int_equal(op_option_find("Driver:cuMemAllocV2", &op, &err), 0);
	assert_string_equal(op->name, "cuMemAlloc");
	assert_int_equal(op_option_find(NULL, &op, &err), 0);
	assert_null(op);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(op_option_find(bad[i], &op, &err), -EINVAL);
		contains(err.text, "for example cudaLaunchKernel");
		assert_null(strchr(err.text, '\x1b'));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_usage_others),
		cmocka_unit_test(test_op_option),
	};

	setenv("TZ", "UTC0", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
