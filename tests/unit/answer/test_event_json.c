/* SPDX-License-Identifier: Apache-2.0 */
/* test_event_json.c - one event, one line: every published key, and ours where they mean something.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/encode/event_json.h"
#include "stack_fixture.h"

static void event_to(struct buf *b, const struct event *e)
{
	struct json_writer w = json_writer_to_buf(b);

	buf_clear(b);
	event_json(&w, e, NULL, "gpu-1", "", NULL);
	assert_int_equal(w.err, 0);
	assert_int_equal(b->err, 0);
}

static void a_call(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct event e = {.start.ns = 1774099485000000123,
		.dur_ns = 2300000,
		.pid = 12,
		.tid = 13,
		.source = SOURCE_DRIVER,
		.op = 1,
		.flags = WIRE_NESTED | WIRE_SLOW,
		.cpu = 3,
		.ret = -2,
		.device = 1,
		.arg0 = 4096,
		.arg1 = UINT64_MAX,
		.stream = 7,
		.cgroup_id = 99,
		.comm = "a\"b"};

	event_to(&b, &e);
	assert_string_equal(buf_str(&b),
		"{\"timestamp\":\"2026-03-21T13:24:45.000000123Z\",\"pid\":12,\"tid\":13,"
		"\"source\":\"driver\",\"op\":\"cuLaunchKernel\",\"duration_ns\":2300000,"
		"\"duration\":\"2.3ms\",\"args\":[4096,\"18446744073709551615\"],"
		"\"cgroup_id\":99,\"node\":\"gpu-1\",\"process_name\":\"a\\\"b\",\"gpu_id\":1,"
		"\"return_code\":-2,\"cpu\":3,\"anomaly\":true,\"sample\":false,\"stream\":7,"
		"\"nested\":true}\n");
	e.flags = 0;
	e.cgroup_id = 1; /* the root cgroup says nothing */
	event_to(&b, &e);
	assert_non_null(strstr(buf_str(&b), "\"anomaly\":false"));
	assert_non_null(strstr(buf_str(&b), "\"nested\":false"));
	assert_null(strstr(buf_str(&b), "cgroup_id"));
}

static void a_stay_off_the_cpu(void **state)
{
	static const struct {
		uint16_t flags;
		const char *state;
	} rows[] = {{WIRE_PREEMPTED, "\"state\":\"preempted\""},
		{WIRE_UNINTERRUPTIBLE, "\"state\":\"blocked\""}, {0, "\"state\":\"sleeping\""}};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct event e = {.source = SOURCE_HOST,
			.op = HOST_SCHED_SWITCH,
			.flags = rows[i].flags,
			.wait_ns = 5,
			.peer_pid = 44,
			.peer_comm = "\xff\x01"}; /* any bytes */

		event_to(&b, &e);
		assert_non_null(strstr(buf_str(&b), rows[i].state));
		assert_non_null(strstr(buf_str(&b), "\"wait_ns\":5,\"peer_pid\":44,"));
		assert_non_null(strstr(buf_str(&b), "\"peer_comm\":\"\uFFFD\\u0001\""));
		assert_null(strstr(buf_str(&b), "nested"));
	}
}

static void a_block_request(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct event e = {.source = SOURCE_IO, .op = 1, .dev = 254 << 20 | 3};

	event_to(&b, &e);
	assert_non_null(strstr(buf_str(&b), "\"device\":\"254:3\""));
}

static void the_books(void **state)
{
	static const struct cpu_losses by_cpu = {
		.count = 1, .rows = {{SOURCE_CUDA, LOSS_RING_FULL, 3, 7}}};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);
	struct accounting books = {0};

	books.source[SOURCE_CUDA] = (struct account){.hits = 10, .stored = 3, .aggregated = 5};
	books.source[SOURCE_CUDA].lost[LOSS_RING_FULL] = 2;
	event_json_books(&w, &books, &by_cpu, (wall_time){1774099485000000000}, "n", true);
	assert_string_equal(buf_str(&b),
		"{\"timestamp\":\"2026-03-21T13:24:45.000000000Z\",\"node\":\"n\",\"source\":"
		"\"ingero\",\"op\":\"accounting\",\"final\":true,\"sources\":{\"cuda\":{\"hits\":"
		"10,"
		"\"stored\":3,\"aggregated\":5,\"lost\":{\"ring_full\":2}}},\"lost_by_cpu\":[{"
		"\"source\":\"cuda\",\"reason\":\"ring_full\",\"cpu\":3,\"count\":7}],"
		"\"unseen_processes\":0}\n");
	books.unseen = (struct call_gap_sum){
		.processes = 1, .longest = {.pid = 12, .to = {5000000}, .file = "/x/libcuda.so.1"}};
	event_json_books(&w, &books, &by_cpu, (wall_time){1774099485000000000}, "n", true);
	assert_non_null(
		strstr(buf_str(&b), "\"unseen_processes\":1,\"unseen\":\"calls of PID 12 "));
}

static char *text;
static size_t len;

static struct json_writer begin(FILE **ret)
{
	free(text);
	*ret = open_memstream(&text, &len);
	assert_non_null(*ret);
	return json_writer_to_file(*ret);
}

static void print(const struct event *e, const char *container)
{
	FILE *f;
	struct json_writer w = begin(&f);

	event_json(&w, e, NULL, "n1", container, NULL);
	fclose(f);
}

#define HAS(s)   assert_non_null(strstr(text, s))
#define LACKS(s) assert_null(strstr(text, s))

static void rank_0_is_printed_and_none_is_not(void **state)
{
	struct event e = {.start.ns = 1, .pid = 7, .source = SOURCE_CUDA, .op = 3, .comm = "py\"3"};

	print(&e, "");
	HAS("\"node\":\"n1\"");
	HAS("\"process_name\":\"py\\\"3\"");
	LACKS("rank");
	LACKS("world_size");
	LACKS("container_id");
	e.place.known = PLACEMENT_RANK;
	print(&e, "abc");
	HAS("\"rank\":0,");
	LACKS("local_rank");
	HAS("\"container_id\":\"abc\"");
	e.place = (struct placement){.rank = 3, .local_rank = 1, .world_size = 8, .known = 7};
	print(&e, "");
	HAS("\"rank\":3,\"local_rank\":1,\"world_size\":8,");
	assert_int_equal(text[len - 1], '\n');
}

static void coverage_names_every_layer(void **state)
{
	struct process_layers l = {.rows[LAYER_DRIVER] = {.state = LAYER_COVERED, .detail = "x"}};
	FILE *f;
	struct json_writer w = begin(&f);

	event_json_coverage(&w, (wall_time){1}, "n1", 7, "py", &l);
	l.rows[LAYER_RUNTIME].state = LAYER_UNCOVERED;
	event_json_coverage(&w, (wall_time){1}, "n1", 7, "py", &l);
	fclose(f);
	HAS("\"source\":\"ingero\",\"op\":\"coverage\",");
	HAS("\"complete\":true,");
	HAS("\"complete\":false");
	HAS("\"driver\":{\"state\":\"covered\",\"detail\":\"x\"}");
	HAS("\"runtime\":{\"state\":\"not_covered\"");
	HAS("\"nccl\":{\"state\":\"absent\"");
	free(text);
	text = NULL;
}

static void an_incident(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);
	struct incident i = {.id = "slow-x-7-1",
		.severity = SEVERITY_HIGH,
		.pid = 7,
		.comm = "py",
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.first.ns = 100,
		.last.ns = 200,
		.slow_calls = 5,
		.summary = "a \"b\"",
		.fixes = {"do it"},
		.fix_count = 1};
	static const char *const members[] = {
		"\"source\":\"ingero\",\"op\":\"incident\",\"state\":\"new\",",
		"\"id\":\"slow-x-7-1\",\"severity\":\"HIGH\",\"problem\":\"slow-call\",",
		"\"process_name\":\"py\"", "\"call\":\"cudaStreamSync\",", "\"pid\":7,",
		"\"first_seen_ns\":100,\"last_seen_ns\":200,", "\"resolved_at_ns\":null",
		"\"count\":5,", "\"summary\":\"a \\\"b\\\"\"", "\"fixes\":[\"do it\"]",
		"\"resolved_at_ns\":300", "\"count\":2,"};

	event_json_incident(&w, &i, "new", (wall_time){1}, "n1");
	i.resolved.ns = 300;
	i.unit = "gaps";
	i.count = 2;
	i.source = 0;
	event_json_incident(&w, &i, "resolved", (wall_time){1}, "n1");
	assert_int_equal(w.err, 0);
	for (size_t k = 0; k < ARRAY_SIZE(members); k++)
		if (!strstr(buf_str(&b), members[k]))
			fail_msg("%s is not in %s", members[k], buf_str(&b));
	assert_null(strstr(buf_str(&b), "\"baseline_ns\"")); /* a line does without details */
	assert_int_equal(buf_str(&b)[b.len - 1], '\n');
}

static void a_stack_has_the_published_keys(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);
	struct event e = {.source = SOURCE_CUDA, .op = CUDA_STREAM_SYNC};

	event_json(&w, &e, NULL, "n", "", &stack_a);
	assert_int_equal(w.err, 0);
	assert_non_null(strstr(buf_str(&b),
		",\"stack\":[{\"symbol\":\"cudaStreamSynchronize\",\"file\":\"libcudart.so.12\"},"
		"{\"symbol\":\"at::native::copy_(at::Tensor&)\",\"file\":\"/src/Copy.cpp\","
		"\"line\":31},{\"ip\":\"0x3\",\"file\":\"libfoo.so\"},{\"ip\":\"0x4\","
		"\"file\":\"libfoo.so\"},{\"py_file\":\"/w/train.py\",\"py_func\":\"forward\","
		"\"py_line\":142},{\"py_file\":\"/w/train.py\",\"py_func\":\"<module>\","
		"\"py_line\":9}],"));
	buf_clear(&b);
	event_json(&w, &e, NULL, "n", "", NULL);
	assert_null(strstr(buf_str(&b), "stack"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call),
		cmocka_unit_test(a_stay_off_the_cpu),
		cmocka_unit_test(a_block_request),
		cmocka_unit_test(the_books),
		cmocka_unit_test(rank_0_is_printed_and_none_is_not),
		cmocka_unit_test(coverage_names_every_layer),
		cmocka_unit_test(an_incident),
		cmocka_unit_test(a_stack_has_the_published_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
