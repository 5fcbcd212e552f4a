/* SPDX-License-Identifier: Apache-2.0 */
/* test_otlp_metric.c - a request as protobuf, read by protoc with the published field numbers, and
 * as JSON, read by jansson. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/file.h"
#include "otlp/otlp_metric.h"

static const struct metric_desc used = {.otlp = "gpu.memory.used",
	.prometheus = "gpu_memory_used_bytes",
	.unit = "By",
	.help = "Device memory in use",
	.keys = {{"gpu.uuid", "gpu_uuid"}, {"pid", "pid"}, {"peer", "peer"}}};
static const struct metric_desc load = {
	.otlp = "system.load", .unit = "1", .is_double = true, .help = "Load"};
static const struct metric_desc hits = {.otlp = "ingero.hits",
	.prometheus = "hits_total",
	.unit = "{event}",
	.kind = METRIC_COUNTER,
	.help = "Hits"};
static const struct metric_desc only_text = {
	.prometheus = "alias_total", .unit = "1", .kind = METRIC_COUNTER, .help = "not here"};
static const struct metric_desc took = {.otlp = "ingero.took",
	.unit = "s",
	.kind = METRIC_HISTOGRAM,
	.is_double = true,
	.unit_ns = 1e9,
	.help = "Time",
	.keys = {{"op", "op"}}};

static const struct otlp_resource resource = {
	.version = "1.2", .node = "gpu1", .cluster = "c\xc3\xa9"};

static struct metric_set *made(void)
{
	struct metric_set *s = metric_set_new((wall_time){1700000000123456789});
	const wall_time start = {1700000000000000001};
	struct sketch k = {0}, none = {0};

	metric_put_int(s, &used, start, INT64_C(9007199254740993),
		METRIC_OF(METRIC_TEXT("GPU-1\n\xff"), METRIC_NUMBER(-3), METRIC_NONE));
	metric_put_double(s, &load, start, 0.1, NULL);
	metric_put_int(s, &hits, start, INT64_MAX, NULL);
	metric_put_int(s, &only_text, start, 1, NULL);
	metric_put_int(s, &hits, start, 0, NULL);
	sketch_add(&k, 1023, 2);
	sketch_add(&k, 2048, 1);
	metric_put_sketch(s, &took, start, &k, METRIC_OF(METRIC_TEXT("a")));
	metric_put_sketch(s, &took, start, &none, METRIC_OF(METRIC_TEXT("b")));
	return s;
}

/* What protoc makes of @b; NULL if it refused it. The caller frees it. */
static char *decode(const struct buf *b)
{
	char folder[] = "/tmp/ingero-otlp-XXXXXX", command[1024], path[64];
	_cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
	char piece[4096];
	FILE *f;
	size_t n;
	int status;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/request", folder);
	f = fopen(path, "w");
	assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
	fclose(f);
	snprintf(command, sizeof(command),
		"protoc --decode=ingero.test.Request --proto_path=%s metrics.proto <%s 2>&1",
		OTLP_PROTO, path);
	f = popen(command, "r");
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		buf_append(&out, piece, n);
	status = pclose(f);
	unlink(path);
	rmdir(folder);
	if (status)
		print_message("%s\n", buf_str(&out));
	return status ? NULL : strdup(buf_str(&out));
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void test_protobuf_as_protoc_reads_it(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	_cleanup_free_ char *text = NULL;

	if (system("protoc --version >/dev/null 2>&1") != 0) {
		print_message("# skip: protoc is not here (package protobuf-compiler)\n");
		skip();
	}
	s = made();
	assert_int_equal(otlp_metric_write(&b, false, s, &resource), 6);
	assert_int_equal(b.err, 0);
	text = decode(&b);
	assert_non_null(text);
	assert_int_equal(count(text, "key: \"service.name\""), 1);
	assert_has(text, "string_value: \"ingero\"");
	assert_has(text, "key: \"ingero.node.id\"\n      value {\n        string_value: \"gpu1\"");
	assert_has(text, "string_value: \"c\\303\\251\"");
	assert_has(text, "scope {\n      name: \"ingero\"\n      version: \"1.2\"");
	assert_has(text, "name: \"gpu.memory.used\"\n      description: \"Device memory in use\"\n"
			 "      unit: \"By\"\n      gauge {\n        data_points {\n"
			 "          time_unix_nano: 1700000000123456789\n"
			 "          as_int: 9007199254740993\n");
	assert_has(text, "string_value: \"GPU-1\\n\\357\\277\\275\"");
	assert_has(text, "int_value: -3");
	assert_has(text, "as_double: 0.1\n");
	assert_has(text, "name: \"ingero.hits\"");
	assert_has(text, "sum {\n        data_points {\n"
			 "          start_time_unix_nano: 1700000000000000001\n"
			 "          time_unix_nano: 1700000000123456789\n"
			 "          as_int: 9223372036854775807\n");
	assert_has(text, "aggregation_temporality: CUMULATIVE\n        is_monotonic: true\n");
	assert_has(text, "          count: 3\n          sum: 4.094e-06\n"
			 "          bucket_counts: 2\n          bucket_counts: 0\n"
			 "          bucket_counts: 1\n");
	assert_has(text, "explicit_bounds: 1.023e-06\n          explicit_bounds: 2.047e-06\n");
	assert_has(text, "min: 1.023e-06\n          max: 2.048e-06\n");
	assert_int_equal(count(text, "min: "), 1); /* an empty one has no extremes */
	assert_int_equal(count(text, "bucket_counts:"), 2 * (METRIC_BOUNDS + 1));
	assert_int_equal(count(text, "explicit_bounds:"), 2 * METRIC_BOUNDS);
	assert_null(strstr(text, "alias"));
	assert_int_equal(count(text, "\n          1"), 0); /* no field that protoc did not know */
}

/* The control: protoc does refuse what is not such a message. */
static void test_protoc_refuses_damage(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	_cleanup_free_ char *text = NULL;

	if (system("protoc --version >/dev/null 2>&1") != 0) {
		print_message("# skip: protoc is not here (package protobuf-compiler)\n");
		skip();
	}
	s = made();
	otlp_metric_write(&b, false, s, &resource);
	b.len -= 3;
	text = decode(&b);
	assert_null(text);
}

static json_t *at(json_t *v, const char *key, size_t i)
{
	v = json_object_get(v, key);
	return json_is_array(v) ? json_array_get(v, i) : v;
}

static void test_json_by_the_mapping(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = made();
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	json_t *root, *rows, *scope, *point, *metric;

	assert_int_equal(otlp_metric_write(&b, true, s, &resource), 6);
	root = json_loads(buf_str(&b), 0, NULL);
	assert_non_null(root);
	rows = at(root, "resourceMetrics", 0);
	assert_string_equal(
		json_string_value(at(at(at(at(rows, "resource", 0), "attributes", 2), "value", 0),
			"stringValue", 0)),
		"gpu1");
	scope = at(rows, "scopeMetrics", 0);
	assert_string_equal(json_string_value(at(at(scope, "scope", 0), "name", 0)), "ingero");
	assert_int_equal(json_array_size(json_object_get(scope, "metrics")), 4);
	metric = at(scope, "metrics", 0);
	assert_string_equal(json_string_value(at(metric, "unit", 0)), "By");
	point = at(at(metric, "gauge", 0), "dataPoints", 0);
	assert_string_equal(json_string_value(at(point, "asInt", 0)), "9007199254740993");
	assert_string_equal(json_string_value(at(point, "timeUnixNano", 0)), "1700000000123456789");
	assert_null(at(point, "startTimeUnixNano", 0));
	assert_int_equal(json_array_size(json_object_get(point, "attributes")), 2);
	assert_string_equal(
		json_string_value(at(at(at(point, "attributes", 1), "value", 0), "intValue", 0)),
		"-3");
	point = at(at(at(scope, "metrics", 1), "gauge", 0), "dataPoints", 0);
	assert_true(json_real_value(at(point, "asDouble", 0)) == 0.1);
	metric = at(at(scope, "metrics", 2), "sum", 0);
	assert_int_equal(json_integer_value(at(metric, "aggregationTemporality", 0)), 2);
	assert_true(json_is_true(at(metric, "isMonotonic", 0)));
	point = at(metric, "dataPoints", 0);
	assert_string_equal(json_string_value(at(point, "asInt", 0)), "9223372036854775807");
	assert_string_equal(
		json_string_value(at(point, "startTimeUnixNano", 0)), "1700000000000000001");
	point = at(at(at(scope, "metrics", 3), "histogram", 0), "dataPoints", 0);
	assert_string_equal(json_string_value(at(point, "count", 0)), "3");
	assert_string_equal(json_string_value(at(point, "bucketCounts", 2)), "1");
	assert_true(json_real_value(at(point, "explicitBounds", 1)) == 2.047e-06);
	assert_true(json_real_value(at(point, "sum", 0)) == 4.094e-06);
	assert_true(json_real_value(at(point, "max", 0)) == 2.048e-06);
	json_decref(root);
}

static void test_what_is_not_known_is_left_out(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){5});
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20), small = BUF_INIT(20);

	metric_put_int(s, &hits, (wall_time){0}, 1, NULL); /* since when is not known */
	otlp_metric_write(&b, true, s, &(struct otlp_resource){.node = ""});
	assert_null(strstr(buf_str(&b), "startTimeUnixNano"));
	assert_null(strstr(buf_str(&b), "ingero.node.id"));
	assert_null(strstr(buf_str(&b), "version"));
	otlp_metric_write(&small, false, s, &resource);
	assert_int_equal(small.err, -ENOBUFS); /* a failure sticks, and nothing is overrun */
}

/* What the user's environment says comes besides, and forges nothing. */
static void test_resource(void **state)
{
	const struct otlp_resource r = {.node = "gpu1",
		.host = "h",
		.more = {{"k8s.pod.name", "p"}, {"host.name", "forged"}, {"empty", ""},
			{"k8s.pod.name", "q"}},
		.more_count = 4};
	struct otlp_resource_row rows[OTLP_RESOURCE_ROWS];

	assert_int_equal(otlp_resource_rows(&r, rows), 5);
	assert_string_equal(rows[0].value, "ingero");
	assert_string_equal(rows[2].key, "host.name");
	assert_string_equal(rows[2].value, "h");
	assert_string_equal(rows[4].key, "k8s.pod.name");
	assert_string_equal(rows[4].value, "p");
	assert_int_equal(otlp_resource_rows(&(struct otlp_resource){.service = "mine"}, rows), 1);
	assert_string_equal(rows[0].value, "mine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resource),
		cmocka_unit_test(test_protobuf_as_protoc_reads_it),
		cmocka_unit_test(test_protoc_refuses_damage),
		cmocka_unit_test(test_json_by_the_mapping),
		cmocka_unit_test(test_what_is_not_known_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
