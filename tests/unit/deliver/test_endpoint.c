/* SPDX-License-Identifier: Apache-2.0 */
/* test_endpoint.c - where OTLP goes: forms that are understood, and what is refused with a
 * sentence.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "deliver/endpoint.h"

static struct endpoint parse(const char *text, const char *protocol, bool insecure)
{
	struct endpoint_options o = {.text = text, .protocol = protocol, .insecure = insecure};
	struct errinfo e = {0};
	struct endpoint p;

	if (endpoint_parse(&o, &p, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return p;
}

static void test_forms(void **state)
{
	struct endpoint p = parse("gpu1:1234", NULL, false);

	assert_true(p.endpoint.tls && p.endpoint.port == 1234 && p.protocol == OTLP_HTTP_PROTOBUF);
	assert_string_equal(p.endpoint.host, "gpu1");
	assert_string_equal(p.path[OTLP_METRICS], "/v1/metrics");
	assert_string_equal(p.shown, "https://gpu1:1234");
	p = parse("gpu1", NULL, false);
	assert_int_equal(p.endpoint.port, 4318);
	p = parse("localhost", "grpc", true);
	assert_true(!p.endpoint.tls && p.endpoint.port == 4317 && p.protocol == OTLP_GRPC);
	assert_string_equal(p.path[OTLP_METRICS],
		"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export");
	p = parse("grpcs://gpu1", NULL, false);
	assert_true(p.endpoint.tls && p.protocol == OTLP_GRPC && p.endpoint.port == 4317);
	p = parse("grpc://127.0.0.1:9", NULL, false);
	assert_true(!p.endpoint.tls && p.protocol == OTLP_GRPC);
	p = parse("HTTPS://gpu1/otlp/", "http/json", true);
	assert_true(p.endpoint.tls && p.protocol == OTLP_HTTP_JSON);
	assert_string_equal(p.path[OTLP_METRICS], "/otlp/v1/metrics");
	assert_string_equal(p.path[OTLP_LOGS], "/otlp/v1/logs");
	p = parse("https://gpu1/otlp/v1/traces", NULL, true);
	assert_string_equal(p.path[OTLP_METRICS], "/otlp/v1/metrics");
	assert_string_equal(p.path[OTLP_TRACES], "/otlp/v1/traces");
	p = parse("grpcs://gpu1", NULL, false);
	assert_string_equal(
		p.path[OTLP_TRACES], "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
	p = parse("http://[::1]:4318/v1/metrics", NULL, false);
	assert_string_equal(p.path[OTLP_METRICS], "/v1/metrics");
	assert_string_equal(p.endpoint.host, "::1");
	assert_string_equal(p.shown, "http://[::1]:4318");
}

static void refuses(const struct endpoint_options *o, int err, const char *words)
{
	struct endpoint p = {.path = {"as before"}};
	struct errinfo e = {0};

	assert_int_equal(endpoint_parse(o, &p, &e), err);
	if (!strstr(e.text, words))
		fail_msg("'%s' lacks '%s'", e.text, words);
	assert_string_equal(p.path[OTLP_METRICS], "as before");
}

static void test_refusals(void **state)
{
	refuses(&(struct endpoint_options){.text = "http://gpu1:4318"}, -EPERM,
		"--otlp-insecure-allow-non-loopback");
	refuses(&(struct endpoint_options){.text = "gpu1:4318", .insecure = true}, -EPERM,
		"not be encrypted");
	refuses(&(struct endpoint_options){.text = "a:1", .protocol = "http"}, -EINVAL,
		"http/protobuf");
	refuses(&(struct endpoint_options){.text = "grpc://localhost", .protocol = "http/json"},
		-EINVAL, "cannot be combined");
	refuses(&(struct endpoint_options){.text = "grpcs://gpu1/path"}, -EINVAL,
		"cannot have a path");
	refuses(&(struct endpoint_options){.text = "https://gpu1/a b"}, -EINVAL, "escaped");
	refuses(&(struct endpoint_options){.text = "ftp://gpu1"}, -EINVAL, "grpcs://");
	refuses(&(struct endpoint_options){.text = ""}, -EINVAL, "");
	refuses(&(struct endpoint_options){.text = "https://:4318"}, -EINVAL, "");
	refuses(&(struct endpoint_options){.text = "https://gpu1:99999"}, -EINVAL, "");
}

static void test_in_the_clear_to_others_if_asked_for(void **state)
{
	struct endpoint_options o = {.text = "http://gpu1:4318", .insecure_far = true};
	struct endpoint p;

	assert_int_equal(endpoint_parse(&o, &p, NULL), 0);
	assert_false(p.endpoint.tls);
}

static void test_fields(void **state)
{
	struct endpoint_fields f = {0};

	assert_int_equal(endpoint_fields_parse(NULL, "", &f, NULL), 0);
	assert_int_equal(f.count, 0);
	assert_int_equal(endpoint_fields_parse("", "", &f, NULL), 0);
	assert_int_equal(f.count, 0);
	endpoint_fields_done(&f);
	assert_int_equal(endpoint_fields_parse(
				 " Authorization = Bearer%20a%2Cb ,x-scope=1=2,,", "", &f, NULL),
		0);
	assert_int_equal(f.count, 2);
	assert_string_equal(f.field[0].name, "authorization");
	assert_string_equal(f.field[0].value, "Bearer a,b");
	assert_string_equal(f.field[1].value, "1=2");
	endpoint_fields_done(&f);
}

static void test_bad_fields(void **state)
{
	static const char *const bad[] = {"novalue", "=x", "a b=c", "a:b=c", "a=%0d%0aevil",
		"a=%zz", "a=%2", "a=\x01", "a=%00",
		"a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=10,k=11,l=12,"
		"m=13,n=14,o=15,p=16,q=17"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct endpoint_fields f = {.count = 77};
		struct errinfo e = {0};

		assert_int_equal(
			endpoint_fields_parse(bad[i], "OTEL_EXPORTER_OTLP_HEADERS", &f, &e),
			-EINVAL);
		assert_int_equal(f.count, 77);
		assert_non_null(strstr(e.text, "OTEL_EXPORTER_OTLP_HEADERS"));
		assert_null(strstr(e.text, "evil")); /* values may be secret */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_in_the_clear_to_others_if_asked_for),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_bad_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
