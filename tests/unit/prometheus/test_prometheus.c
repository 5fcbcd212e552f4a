/* SPDX-License-Identifier: Apache-2.0 */
/* test_prometheus.c - the text format, byte by byte, with names nobody would choose. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "prometheus/prometheus.h"

static const struct metric_desc loaded = {.otlp = "gpu.nccl.process_loaded",
	.prometheus = "gpu_nccl_process_loaded",
	.unit = "1",
	.help = "A \\ and a\nnewline; \"quotes\" stay",
	.keys = {{"pid", "pid"}, {"comm", "comm"}, {"peer", "peer"}}};
static const struct metric_desc ratio = {
	.otlp = "r", .prometheus = "a_ratio", .unit = "1", .is_double = true, .help = "a share"};
static const struct metric_desc only_otlp = {.otlp = "x", .unit = "1", .help = "not here"};
static const struct metric_desc hits = {.otlp = "hits",
	.prometheus = "hits_total",
	.unit = "1",
	.kind = METRIC_COUNTER,
	.help = "hits"};
static const struct metric_desc took = {.otlp = "took",
	.prometheus = "took_seconds",
	.unit = "s",
	.kind = METRIC_HISTOGRAM,
	.unit_ns = 1e9,
	.help = "time",
	.keys = {{"op", "op"}}};

static void test_numbers_and_labels(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){1});
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	metric_put_int(s, &loaded, (wall_time){0}, 1,
		METRIC_OF(METRIC_NUMBER(7), METRIC_TEXT("a\\b\"c\nd{e=\"f\"},g\t\xc3\xa9\xff"),
			METRIC_NONE));
	metric_put_int(s, &only_otlp, (wall_time){0}, 1, NULL);
	metric_put_int(s, &loaded, (wall_time){0}, -5,
		METRIC_OF(METRIC_NUMBER(-1), METRIC_TEXT(""), METRIC_NUMBER(0)));
	metric_put_double(s, &ratio, (wall_time){0}, 0.1, NULL);
	metric_put_double(s, &ratio, (wall_time){0}, NAN, NULL);
	metric_put_double(s, &ratio, (wall_time){0}, -INFINITY, NULL);
	metric_put_int(s, &hits, (wall_time){5}, INT64_MAX, NULL);
	metric_put_int(
		s, &loaded, (wall_time){0}, 2, METRIC_OF(METRIC_NONE, METRIC_NONE, METRIC_NONE));
	prometheus_text(&b, s);
	assert_int_equal(b.err, 0);
	assert_string_equal(buf_str(&b),
		"# HELP gpu_nccl_process_loaded A \\\\ and a\\nnewline; \"quotes\" stay\n"
		"# TYPE gpu_nccl_process_loaded gauge\n"
		"gpu_nccl_process_loaded{pid=\"7\",comm=\"a\\\\b\\\"c\\nd{e=\\\"f\\\"},g\t\xc3\xa9"
		"\xef\xbf\xbd\"} 1\n"
		"gpu_nccl_process_loaded{pid=\"-1\",comm=\"\",peer=\"0\"} -5\n"
		"gpu_nccl_process_loaded 2\n"
		"# HELP a_ratio a share\n"
		"# TYPE a_ratio gauge\n"
		"a_ratio 0.1\n"
		"a_ratio NaN\n"
		"a_ratio -Inf\n"
		"# HELP hits_total hits\n"
		"# TYPE hits_total counter\n"
		"hits_total 9223372036854775807\n");
}

static void test_a_histogram_adds_up(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){1});
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct sketch k = {0};
	const char *at;
	unsigned lines = 0;

	sketch_add(&k, 1023, 2);
	sketch_add(&k, 1024, 3);
	sketch_add(&k, 20 * NS_PER_S, 1);
	metric_put_sketch(s, &took, (wall_time){1}, &k, METRIC_OF(METRIC_TEXT("x\"y")));
	prometheus_text(&b, s);
	at = buf_str(&b);
	assert_non_null(strstr(at, "# TYPE took_seconds histogram\n"
				   "took_seconds_bucket{op=\"x\\\"y\",le=\"1.023e-06\"} 2\n"
				   "took_seconds_bucket{op=\"x\\\"y\",le=\"2.047e-06\"} 5\n"
				   "took_seconds_bucket{op=\"x\\\"y\",le=\"4.095e-06\"} 5\n"));
	assert_non_null(strstr(at, "took_seconds_bucket{op=\"x\\\"y\",le=\"17.179869183\"} 5\n"
				   "took_seconds_bucket{op=\"x\\\"y\",le=\"+Inf\"} 6\n"
				   "took_seconds_sum{op=\"x\\\"y\"} 20.000005118\n"
				   "took_seconds_count{op=\"x\\\"y\"} 6\n"));
	while ((at = strstr(at, "took_seconds_bucket{"))) {
		lines++;
		at++;
	}
	assert_int_equal(lines, METRIC_BOUNDS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_and_labels),
		cmocka_unit_test(test_a_histogram_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
