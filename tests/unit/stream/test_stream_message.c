/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_message.c - every type has its published keys: those that must be there and, where
 * they are known, the others. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stream/stream_message.h"

static void expect(const struct stream_message *m, const char *line)
{
	_cleanup_buf_ struct buf b = BUF_INIT(STREAM_LINE_MAX);

	assert_int_equal(stream_message_line(&b, m), 0);
	assert_string_equal(buf_str(&b), line);
}

static const struct stream_node bare = {.node_id = "n1", .cluster_id = "c", .rank = -1};
static const struct stream_node full = {.node_id = "n1",
	.cluster_id = "c",
	.time = {1500000000},
	.event_id = "e",
	.rank = 0,
	.world_size = 8};
#define HEAD_BARE                                                                                  \
	"\"node_id\":\"n1\",\"cluster_id\":\"c\",\"timestamp\":\"1970-01-01T00:00:00.000000000Z\""
#define HEAD_FULL                                                                                  \
	"\"node_id\":\"n1\",\"cluster_id\":\"c\",\"timestamp\":\"1970-01-01T00:00:01.500000000Z\""
#define MORE_FULL "\"event_id\":\"e\",\"rank\":0,\"world_size\":8"
#define END       ",\"contract_version\":1}\n"

static void test_states(void **state)
{
	struct stream_message m = {.type = STREAM_STRAGGLER_STATE,
		.state = {.node = bare,
			.score = 0.5,
			.threshold = 0.88,
			.detection_mode = "fleet",
			.dominant_signal = "memory"}};

	expect(&m, "{\"type\":\"straggler_state\"," HEAD_BARE ",\"score\":0.5,\"threshold\":0.88,"
		   "\"detection_mode\":\"fleet\",\"dominant_signal\":\"memory\"" END);
	m.state.node = full; /* rank 0 is a rank */
	expect(&m, "{\"type\":\"straggler_state\"," HEAD_FULL ",\"score\":0.5,\"threshold\":0.88,"
		   "\"detection_mode\":\"fleet\",\"dominant_signal\":\"memory\"," MORE_FULL END);
	m = (struct stream_message){.type = STREAM_STRAGGLER_RESOLVED, .resolved = {bare}};
	expect(&m, "{\"type\":\"straggler_resolved\"," HEAD_BARE END);
	m.resolved.node = full;
	expect(&m, "{\"type\":\"straggler_resolved\"," HEAD_FULL "," MORE_FULL END);
}

static void test_memory(void **state)
{
	struct stream_message m = {.type = STREAM_MEMORY,
		.memory = {.pid = 7,
			.allocated_bytes = 90,
			.total_vram = 100,
			.utilization_pct = 90,
			.last_alloc_size = 5,
			.timestamp_ns = 11}};
#define MEMORY                                                                                     \
	"{\"type\":\"memory\",\"pid\":7,\"gpu_id\":0,\"allocated_bytes\":90,\"total_vram\":100,"   \
	"\"utilization_pct\":90,\"last_alloc_size\":5,\"timestamp_ns\":11"

	expect(&m, MEMORY END);
	m.memory.comm = "a\"b";
	expect(&m, MEMORY ",\"comm\":\"a\\\"b\"" END);
}

static void test_straggle(void **state)
{
	struct stream_message m = {.type = STREAM_STRAGGLE,
		.straggle = {.pid = 7,
			.throughput_drop_pct = 33.5,
			.sched_switch_count = 9,
			.timestamp_ns = 11,
			.rank = STREAM_NOT_A_RANK}};

	expect(&m, "{\"type\":\"straggle\",\"pid\":7,\"throughput_drop_pct\":33.5,"
		   "\"sched_switch_count\":9,\"preempting_pids\":[],\"timestamp_ns\":11,"
		   "\"sustained\":false" END);
	m.straggle.preempting_pids[0] = 3;
	m.straggle.preempting_pids[1] = 4;
	m.straggle.preempting_count = 2;
	m.straggle.sustained = true;
	m.straggle.comm = "python";
	m.straggle.event_id = "e";
	m.straggle.rank = 0;
	m.straggle.world_size = 8;
	expect(&m, "{\"type\":\"straggle\",\"pid\":7,\"throughput_drop_pct\":33.5,"
		   "\"sched_switch_count\":9,\"preempting_pids\":[3,4],\"timestamp_ns\":11,"
		   "\"sustained\":true,\"comm\":\"python\"," MORE_FULL END);
}

static void test_inference(void **state)
{
	struct stream_message m = {.type = STREAM_INFERENCE_OUTLIER,
		.outlier = {.node = bare,
			.of = {.pid = 7, .bucket = "b"},
			.step_duration_ns = 20,
			.baseline_p95_ns = 10}};
#define OUTLIER ",\"pid\":7,\"step_duration_ns\":20,\"baseline_p95_ns\":10,\"bucket\":\"b\""

	expect(&m, "{\"type\":\"inference_outlier\"," HEAD_BARE OUTLIER END);
	m.outlier.node = full;
	m.outlier.of.cgroup_path_hash = "cafe";
	m.outlier.of.stream_handle = 5;
	m.outlier.of.phase = "decode";
	m.outlier.baseline_mean_ns = 8;
	m.outlier.memfrag_events_in_step = 2;
	m.outlier.min_sm_clock_mhz = 900;
	m.outlier.throttle_reasons[0] = "power";
	m.outlier.throttle_count = 1;
	m.outlier.kv_cache_top_alloc_ages_ms[0] = 77;
	m.outlier.alloc_count = 1;
	expect(&m, "{\"type\":\"inference_outlier\"," HEAD_FULL OUTLIER "," MORE_FULL
		   ",\"cgroup_path_hash\":\"cafe\",\"stream_handle\":5,\"phase\":\"decode\","
		   "\"baseline_mean_ns\":8,\"memfrag_events_in_step\":2,"
		   "\"min_sm_clock_mhz\":900,\"throttle_reasons\":[\"power\"],"
		   "\"kv_cache_top_alloc_ages_ms\":[77]" END);
	m = (struct stream_message){.type = STREAM_INFERENCE_SAMPLER_DEGRADED,
		.degraded = {.node = bare,
			.of = {.pid = 7, .bucket = "b"},
			.cause = "cost",
			.cooldown_end = {2000000000}}};
	expect(&m, "{\"type\":\"inference_sampler_degraded\"," HEAD_BARE
		   ",\"pid\":7,\"bucket\":\"b\",\"cause\":\"cost\","
		   "\"cooldown_end\":\"1970-01-01T00:00:02.000000000Z\"" END);
}

static void test_what_cannot_be_written(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(STREAM_LINE_MAX);
	struct stream_message m = {.type = STREAM_STRAGGLER_STATE,
		.state = {
			.node = bare, .score = NAN, .detection_mode = "m", .dominant_signal = "s"}};

	assert_int_equal(stream_message_line(&b, &m), -EINVAL);
	m.state.score = 0;
	m.state.detection_mode = NULL;
	assert_int_equal(stream_message_line(&b, &m), -EINVAL);
	assert_int_equal(b.len, 0);
	m.state.detection_mode = "m";
	assert_int_equal(stream_message_line(&b, &m), 0); /* control */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_straggle),
		cmocka_unit_test(test_inference),
		cmocka_unit_test(test_what_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
