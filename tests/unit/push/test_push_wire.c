/* SPDX-License-Identifier: Apache-2.0 */
/* test_push_wire.c - what agents push, as requests in both encodings and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "push/push_wire.h"
#include "push_fixture.h"

static const struct push_health ordinary = {
	.who = {.cluster = "prod",
		.node = "gpu-1",
		.provider = "lambda",
		.rank = 0,
		.world_size = 64,
		.boot = 0xfedcba9876543210},
	.sent_ns = 1700000000123456789,
	.state = PUSH_ACTIVE,
	.score = 0.9375,
	.throughput = 1,
	.compute = 0.5,
	.memory = 0.25,
	.cpu = 0.75,
	.degraded = true,
	.cohort = "0123456789abcdef",
	.workload = "training",
	.gpu_model = "NVIDIA H100 80GB HBM3",
	.gpu_count = 8,
	.signals = {1234.5, 0.125, -1, 1980000000, -1},
};

static void assert_health_equal(const struct push_health *a, const struct push_health *b)
{
	assert_string_equal(a->who.cluster, b->who.cluster);
	assert_string_equal(a->who.node, b->who.node);
	assert_string_equal(a->who.provider, b->who.provider);
	assert_int_equal(a->who.rank, b->who.rank);
	assert_int_equal(a->who.world_size, b->who.world_size);
	assert_true(a->who.boot == b->who.boot);
	assert_int_equal(a->sent_ns, b->sent_ns);
	assert_int_equal(a->state, b->state);
	assert_true(a->score == b->score && a->throughput == b->throughput);
	assert_true(a->compute == b->compute && a->memory == b->memory && a->cpu == b->cpu);
	assert_int_equal(a->degraded, b->degraded);
	assert_string_equal(a->cohort, b->cohort);
	assert_string_equal(a->workload, b->workload);
	assert_string_equal(a->gpu_model, b->gpu_model);
	assert_int_equal(a->gpu_count, b->gpu_count);
	for (size_t i = 0; i < PUSH_SIGNAL_COUNT; i++)
		assert_true(a->signals[i] == b->signals[i]);
}

static void test_health_round_trip(void **state)
{
	const struct push_counters counters[] = {
		{.cohort = "aaaa", .launches = 7, .stall_ns = 9, .copied_bytes = {0, 1, 2, 3, 4}},
		{.cohort = "bbbb", .launches = UINT64_MAX}};
	const struct push_metrics m = {.health = &ordinary,
		.detection_mode = "fleet",
		.fleet_reachable = true,
		.counters = counters,
		.counter_count = 2,
		.start_ns = 1600000000000000000};

	for (int json = 0; json < 2; json++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
		struct push_taken t;
		struct seen s = {0};
		struct push_handler h = handler(&s);

		push_metrics_write(&b, &m, json);
		assert_int_equal(b.err, 0);
		assert_int_equal(push_receive_metrics(b.data, b.len, json, &h, &t, NULL), 0);
		assert_int_equal(s.healths, 1);
		assert_int_equal(s.stragglers, 0);
		assert_health_equal(&s.health[0], &ordinary);
		assert_int_equal(t.taken, 21);
		assert_int_equal(t.rejected, 0);
		assert_int_equal(t.foreign, 0);
	}
}

/* Rank 0 is a rank, and no rank is none. */
static void test_rank_zero(void **state)
{
	for (int rank = -1; rank < 2; rank++)
		for (int json = 0; json < 2; json++) {
			_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
			struct push_health health = ordinary;
			const struct push_metrics m = {.health = &health};
			struct push_taken t;
			struct seen s = {0};
			struct push_handler h = handler(&s);

			health.who.rank = rank;
			health.who.world_size = 0;
			push_metrics_write(&b, &m, json);
			assert_int_equal(
				push_receive_metrics(b.data, b.len, json, &h, &t, NULL), 0);
			assert_int_equal(s.health[0].who.rank, rank);
			assert_int_equal(s.health[0].who.world_size, 0);
		}
}

static void test_published_shape(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_health health = {.who = {.cluster = "c", .node = "n", .rank = -1},
		.sent_ns = 1700000000123456789,
		.score = 0.5,
		.workload = "training",
		.cohort = "0123456789abcdef",
		.signals = {-1, -1, -1, -1, -1}};
	const struct push_metrics m = {.health = &health, .detection_mode = "none"};
#define STATE                                                                                      \
	"{\"key\":\"ingero.node.state\",\"value\":{\"stringValue\":\"calibrating\"}},"             \
	"{\"key\":\"ingero.workload_type\",\"value\":{\"stringValue\":\"training\"}}"
#define GAUGE(name, attributes, value)                                                             \
	"{\"name\":\"ingero." name "\",\"unit\":\"1\",\"gauge\":{\"dataPoints\":[{" attributes     \
	"\"timeUnixNano\":\"1700000000123456789\"," value "}]}}"

	push_metrics_write(&b, &m, true);
	assert_string_equal(buf_str(&b),
		"{\"resourceMetrics\":[{\"resource\":{\"attributes\":["
		"{\"key\":\"ingero.node.id\",\"value\":{\"stringValue\":\"n\"}},"
		"{\"key\":\"ingero.cluster.id\",\"value\":{\"stringValue\":\"c\"}}]},"
		"\"scopeMetrics\":[{\"scope\":{\"name\":\"ingero.health\",\"version\":\"0.10.0\"},"
		"\"metrics\":[" GAUGE("node.health_score",
			"\"attributes\":[" STATE ",{\"key\":\"ingero.cgroup_path_hash\",\"value\":{"
			"\"stringValue\":\"0123456789abcdef\"}}],",
			"\"asDouble\":0.5") "," GAUGE("node.throughput_ratio",
			"\"attributes\":[" STATE "],",
			"\"asDouble\":0") "," GAUGE("node.compute_efficiency",
			"\"attributes\":[" STATE "],",
			"\"asDouble\":0") "," GAUGE("node.memory_headroom",
			"\"attributes\":[" STATE "],",
			"\"asDouble\":0") "," GAUGE("node.cpu_availability",
			"\"attributes\":[" STATE "],",
			"\"asDouble\":0") "," GAUGE("node.degradation_warning",
			"\"attributes\":[" STATE "],",
			"\"asInt\":0") "," GAUGE("agent.detection_mode",
			"\"attributes\":[{\"key\":\"ingero.detection_mode\",\"value\":{"
			"\"stringValue\":\"none\"}}],",
			"\"asInt\":1") "," GAUGE("agent.fleet_reachable", "",
			"\"asInt\":0") "," GAUGE("node.world_size", "", "\"asInt\":0") "]}]}]}\n");
}

static void test_straggler_round_trip(void **state)
{
	const struct push_straggler straggler = {.event = "6f1c9d0e-8a51-4a43-9b58-0d7a3f7f3f11",
		.mode = "fleet",
		.dominant = "memory",
		.threshold = 0.875,
		.score = 0.5};

	for (int i = 0; i < 4; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
		struct push_straggler given = straggler;
		const struct push_metrics m = {.health = &ordinary, .straggler = &given};
		bool json = i & 1;
		struct push_taken t;
		struct seen s = {0};
		struct push_handler h = handler(&s);

		given.resolved = i & 2;
		push_metrics_write(&b, &m, json);
		assert_int_equal(push_receive_metrics(b.data, b.len, json, &h, &t, NULL), 0);
		assert_int_equal(s.healths, 0);
		assert_int_equal(s.stragglers, 1);
		assert_int_equal(t.taken, 1);
		assert_string_equal(s.who.node, "gpu-1");
		assert_string_equal(s.straggler.event, straggler.event);
		assert_string_equal(s.straggler.mode, "fleet");
		assert_string_equal(s.straggler.dominant, "memory");
		assert_true(s.straggler.threshold == 0.875 && s.straggler.score == 0.5);
		assert_int_equal(s.straggler.resolved, given.resolved);
	}
}

static void test_calls_round_trip(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_call call = {
		.comm = 5, .seq = 6, .peer = 0, .nranks = 2, .wait_ns = UINT64_MAX, .op = 9};
	const struct push_calls c = {.who = ordinary.who,
		.batch = 77,
		.sent_ns = 1700000000123456789,
		.lost = 3,
		.items = &call,
		.count = 1};
	struct push_taken t;
	struct seen s = {0};
	struct push_handler h = handler(&s);

	push_calls_protobuf(&b, &c);
	assert_int_equal(b.err, 0);
	assert_int_equal(push_receive_logs(b.data, b.len, false, &h, &t, NULL), 0);
	assert_int_equal(t.taken, 1);
	assert_int_equal(s.batches, 1);
	assert_string_equal(s.calls.who.node, "gpu-1");
	assert_int_equal(s.calls.batch, 77);
	assert_int_equal(s.calls.lost, 3);
	assert_int_equal(s.calls.sent_ns, c.sent_ns);
	assert_int_equal(s.first.peer, 0);
	assert_true(s.first.wait_ns == UINT64_MAX);
	s.answer = -EAGAIN;
	assert_int_equal(push_receive_logs(b.data, b.len, false, &h, &t, NULL), 0);
	assert_int_equal(t.taken, 0);
	assert_int_equal(t.rejected, 1);
	assert_string_not_equal(t.why, "");
}

static void test_report_round_trip(void **state)
{
	struct push_report r = {.sent_ns = 5,
		.pid = 4242,
		.world_rank = 0,
		.doing = PUSH_DOING_BLOCKED,
		.doing_where = "train.py:41 in load",
		.step_ns = 140000000,
		.ordinary_ns = 16000000,
		.line = "disk",
		.line_ns = 120000000,
		.cause = "its loader reads from a disk that rsync keeps busy (\"train.py\":41)\n",
		.fix = "stop r\xc3\xa9sync",
		.incident = "disk-1",
		.confidence = 0.875};

	r.who = ordinary.who;
	for (int json = 0; json < 2; json++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
		struct push_taken t;
		struct seen s = {0};
		struct push_handler h = handler(&s);

		push_report_write(&b, &r, json);
		assert_int_equal(b.err, 0);
		assert_int_equal(push_receive_logs(b.data, b.len, json, &h, &t, NULL), 0);
		assert_int_equal(t.taken, 1);
		assert_string_equal(s.report.who.node, "gpu-1");
		assert_int_equal(s.report.sent_ns, 5);
		assert_int_equal(s.report.pid, 4242);
		assert_int_equal(s.report.world_rank, 0);
		assert_int_equal(s.report.doing, PUSH_DOING_BLOCKED);
		assert_string_equal(s.report.doing_where, r.doing_where);
		assert_int_equal(s.report.step_ns, r.step_ns);
		assert_int_equal(s.report.ordinary_ns, r.ordinary_ns);
		assert_string_equal(s.report.line, "disk");
		assert_int_equal(s.report.line_ns, r.line_ns);
		assert_string_equal(s.report.cause, r.cause);
		assert_string_equal(s.report.fix, r.fix);
		assert_string_equal(s.report.incident, "disk-1");
		assert_true(s.report.confidence == 0.875);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_health_round_trip),
		cmocka_unit_test(test_rank_zero),
		cmocka_unit_test(test_published_shape),
		cmocka_unit_test(test_straggler_round_trip),
		cmocka_unit_test(test_calls_round_trip),
		cmocka_unit_test(test_report_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
