/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "otlp/otlp_metric.h"
#include "otlp/otlp_response.h"

static void test_paths(void **state)
{
	static const struct {
		const char *path;
		int signal; /* -1: none */
	} rows[] = {
		{"/v1/metrics", OTLP_METRICS},
		{"/v1/logs", OTLP_LOGS},
		{"/v1/traces", OTLP_TRACES},
		{"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", OTLP_METRICS},
		{"/opentelemetry.proto.collector.logs.v1.LogsService/Export", OTLP_LOGS},
		{"/opentelemetry.proto.collector.trace.v1.TraceService/Export", OTLP_TRACES},
		{"/v1/profiles", -1},
		{"/v1/metrics/", -1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum otlp_signal s;
		bool found = otlp_signal_of_path(rows[i].path, &s);

		assert_int_equal(found ? (int)s : -1, rows[i].signal);
	}
	assert_string_equal(otlp_signal_id(OTLP_TRACES), "traces");
}

/* What our own client understands of it. */
static void test_what_was_left_out(void **state)
{
	for (int json = 0; json < 2; json++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);
		struct otlp_answer a = {0};

		otlp_response_put(&b, OTLP_METRICS, json, 300, "node \"n\": not_finite");
		if (json)
			assert_int_equal(otlp_answer_json(b.data, b.len, &a), 0);
		else
			assert_int_equal(otlp_answer_protobuf(b.data, b.len, &a), 0);
		assert_int_equal(a.rejected, 300);
		assert_string_equal(a.message, "node \"n\": not_finite");
	}
}

static void test_all_was_taken(void **state)
{
	_cleanup_buf_ struct buf json = BUF_INIT(64), pb = BUF_INIT(64);

	otlp_response_put(&json, OTLP_LOGS, true, 0, "");
	assert_string_equal(buf_str(&json), "{}\n");
	otlp_response_put(&pb, OTLP_LOGS, false, 0, "");
	assert_int_equal(pb.len, 0);
}

static void test_keys_of_json(void **state)
{
	static const char *const keys[] = {"\"rejectedDataPoints\":\"1\"",
		"\"rejectedLogRecords\":\"1\"", "\"rejectedSpans\":\"1\""};

	for (int s = 0; s < OTLP_SIGNAL_COUNT; s++) {
		_cleanup_buf_ struct buf b = BUF_INIT(256);

		otlp_response_put(&b, (enum otlp_signal)s, true, 1, "");
		assert_non_null(strstr(buf_str(&b), keys[s]));
	}
}

static void test_status(void **state)
{
	_cleanup_buf_ struct buf json = BUF_INIT(64), pb = BUF_INIT(64);

	otlp_status_put(&json, true, 8, "a \"reason\"");
	assert_string_equal(buf_str(&json), "{\"code\":8,\"message\":\"a \\\"reason\\\"\"}\n");
	otlp_status_put(&pb, false, 8, "why");
	assert_int_equal(pb.len, 7);
	assert_memory_equal(pb.data, "\x08\x08\x12\x03why", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_what_was_left_out),
		cmocka_unit_test(test_all_was_taken),
		cmocka_unit_test(test_keys_of_json),
		cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
