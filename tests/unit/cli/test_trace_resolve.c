/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace_resolve.c - options of `trace` that give metrics away, and the sentences for those
 * that do not go together. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/trace_settings.h"

static void test_metrics_are_kept_only_if_wanted(void **state)
{
	struct trace_settings s = trace_defaults;
	struct trace_plan p = {0};

	s.record = false;
	s.node = "gpu1";
	assert_int_equal(trace_resolve(&s, &p, NULL), 0);
	assert_false(p.has_telemetry);
	assert_false(p.tracer.metrics);
	assert_null(p.db_path);
	trace_plan_done(&p);
}

static void test_where_they_go(void **state)
{
	struct trace_settings s = trace_defaults;
	struct trace_plan p = {0};

	setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1", 1);
	s.record = false;
	s.node = "gpu1";
	s.cluster = "c1";
	s.prometheus = "9464";
	s.otlp = "grpcs://gpu9";
	s.otlp_interval_ns = 3 * NS_PER_S;
	assert_int_equal(trace_resolve(&s, &p, NULL), 0);
	assert_true(p.has_telemetry && p.tracer.metrics);
	assert_string_equal(p.telemetry.scrape.address, "9464");
	assert_ptr_equal(p.telemetry.push.endpoint, &p.endpoint);
	assert_int_equal(p.endpoint.protocol, OTLP_GRPC);
	assert_string_equal(p.telemetry.push.resource.node, "gpu1");
	assert_string_equal(p.telemetry.push.resource.cluster, "c1");
	assert_true(p.telemetry.interval_ns == 3 * NS_PER_S);
	assert_int_equal(p.fields.count, 1);
	trace_plan_done(&p);
	setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "b=2,c=3", 1); /* the closer word counts */
	p = (struct trace_plan){0};
	assert_int_equal(trace_resolve(&s, &p, NULL), 0);
	assert_int_equal(p.fields.count, 2);
	trace_plan_done(&p);
	unsetenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS");
	unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
}

static void refuses_exactly(struct trace_settings s, int err, const char *words)
{
	struct trace_plan p = {0};
	struct errinfo e = {0};

	s.record = false;
	s.node = "gpu1";
	assert_int_equal(trace_resolve(&s, &p, &e), err);
	if (!strstr(e.text, words))
		fail_msg("'%s' lacks '%s'", e.text, words);
	trace_plan_done(&p);
}

static void refuses(struct trace_settings s, int err, const char *words)
{
	s.nccl = trace_defaults.nccl;
	refuses_exactly(s, err, words);
}

static void test_what_does_not_go_together(void **state)
{
	refuses_exactly((struct trace_settings){.nccl = false}, -EINVAL, "--nccl=false");
	refuses((struct trace_settings){.otlp_insecure = true}, -EINVAL, "--otlp-");
	refuses((struct trace_settings){.otlp_interval_ns = NS_PER_S}, -EINVAL, "--otlp-");
	refuses((struct trace_settings){.prometheus_allow_remote = true}, -EINVAL, "--prometheus-");
	refuses((struct trace_settings){.otlp = "gpu1", .otlp_interval_ns = 1}, -EINVAL, "1s");
	refuses((struct trace_settings){.otlp = "gpu1", .otlp_client_key = "k"}, -EINVAL,
		"together");
	refuses((struct trace_settings){.otlp = "http://gpu1"}, -EPERM, "not be encrypted");
	refuses((struct trace_settings){.cluster = ""}, -EINVAL, "--cluster");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metrics_are_kept_only_if_wanted),
		cmocka_unit_test(test_where_they_go),
		cmocka_unit_test(test_what_does_not_go_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
