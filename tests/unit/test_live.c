/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cli/event_json.h"
#include "cli/live.h"

static struct gpu_row h200(void)
{
	struct gpu_row row = {.error = ""};

	gpu_sample_init(&row.sample);
	row.sample.index = 0;
	snprintf(row.sample.name, sizeof(row.sample.name), "NVIDIA H200");
	row.sample.util_gpu_pct = 97;
	row.sample.sm_clock_mhz = 1980;
	row.sample.power_mw = 611600;
	row.sample.power_limit_mw = 700000;
	row.sample.temperature_c = 71;
	row.sample.mem_used_bytes = 40LL << 30;
	row.sample.mem_total_bytes = 139LL << 30;
	row.sample.throttle_reasons = 0;
	return row;
}

static void assert_shown(const struct tracer_view *v, const char *expected)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	live_gpus(&b, v);
	assert_string_equal(buf_str(&b), expected);
}

static void test_a_line_for_each_gpu(void **state)
{
	struct gpu_row rows[2] = {h200(), h200()};
	struct tracer_view v = {.gpu_state = GPU_KNOWN, .gpus = rows, .gpu_count = 1};

	assert_shown(&v, "  GPU 0 H200: 97 % | 1980 MHz | 612/700 W | 71 °C | 40/139 GiB |"
			 " throttle: none\n");
	gpu_sample_init(&rows[1].sample);
	rows[1].sample.index = 1;
	rows[1].sample.throttle_reasons = 4 | 64;
	rows[1].sample.ecc_uncorrected = 2;
	snprintf(rows[1].error, sizeof(rows[1].error), "GPU is lost\x1b[31m");
	v.gpus = &rows[1];
	assert_shown(&v,
		"  GPU 1: ? % | ? MHz | ?/? W | ? °C | ?/? GiB | throttle: sw_power_cap,"
		" hw_thermal_slowdown | ECC: 2 uncorrected | NVML: GPU is lost\\x1b[31m\n");
}

static void test_silence_has_a_line(void **state)
{
	struct tracer_view v = {.gpu_state = GPU_NO_ANSWER,
		.gpu_text = "unknown since 12:01:33 (NVML does not answer)"};

	assert_shown(&v, "  gpu state unknown since 12:01:33 (NVML does not answer)\n");
	v.gpu_state = GPU_ABSENT;
	snprintf(v.gpu_text, sizeof(v.gpu_text), "absent: there is no libnvidia-ml.so.1");
	assert_shown(&v, ""); /* a machine without a GPU */
	v.has_driver = true;
	assert_shown(&v, "  gpu state absent: there is no libnvidia-ml.so.1\n");
	v.gpu_state = GPU_STARTING;
	assert_shown(&v, "");
}

static void test_a_sample_as_json(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);
	struct gpu_row row = h200();

	row.sample.throttle_reasons = 1 | 8;
	event_json_gpu(&w, &row.sample, "n1");
	assert_non_null(strstr(buf_str(&b), "\"node\":\"n1\",\"source\":\"gpu\",\"op\":\"sample\""
					    ",\"gpu_id\":0,"));
	assert_non_null(strstr(buf_str(&b), "\"power_mw\":611600,"));
	assert_non_null(strstr(buf_str(&b), "\"pcie_gen\":null,"));
	assert_non_null(strstr(buf_str(&b), "\"throttle\":[\"gpu_idle\",\"hw_slowdown\"]}\n"));
	buf_clear(&b);
	event_json_gpu_state(&w, "unknown", "why", (wall_time){1000000000}, "n1");
	assert_string_equal(buf_str(&b),
		"{\"timestamp\":\"1970-01-01T00:00:01.000000000Z\",\"node\":\"n1\",\"source\":"
		"\"gpu\",\"op\":\"state\",\"state\":\"unknown\",\"text\":\"why\"}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_for_each_gpu),
		cmocka_unit_test(test_silence_has_a_line),
		cmocka_unit_test(test_a_sample_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
