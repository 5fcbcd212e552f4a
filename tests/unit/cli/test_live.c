/* SPDX-License-Identifier: Apache-2.0 */
/* test_live.c - what the live table says, and that it always fits the terminal it is drawn on. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "answer/encode/event_json.h"
#include "cli/live.h"

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
}

static struct tracer_op op_of(uint8_t source, uint16_t op, bool nested, uint64_t count, uint64_t ns)
{
	struct tracer_op o = {.source = source, .op = op, .nested = nested, .count = count};

	sketch_add(&o.sketch, ns, count);
	return o;
}

static struct tracer_op ops[32];

/* Two minutes of a trace with runtime, nested driver and scheduler events. */
static struct tracer_view busy_view(void)
{
	struct tracer_view v = {.started.ns = 121000000000,
		.now.ns = 1000000000, /* the clock was set back */
		.ran_ns = 120000000000,
		.method = "session",
		.processes = 1,
		.first_pid = 77,
		.first_comm = "python3",
		.libraries = 2,
		.first_library = "/opt/libcudart.so.12",
		.runtime_probes = 23,
		.driver_probes = 24,
		.has_host = true,
		.host = {.cpu_pct = 97, .mem_pct = 25, .mem_avail_mb = 23757, .load1 = 1.5},
		.ops = ops,
		.op_count = 5,
		.db_bytes = 3 << 20,
		.overhead = 0.004,
		.overhead_low = 0.004,
		.overhead_high = 0.004,
		.overhead_budget = 0.01,
		.hit_ns = 1100,
		.books = {.launch_watched = 0.25, .launch_error = 0.025}};

	ops[0] = op_of(SOURCE_CUDA, CUDA_STREAM_SYNC, false, 1000, 12000000);
	ops[1] = op_of(SOURCE_CUDA, CUDA_LAUNCH, false, 1234567, 1800);
	ops[2] = op_of(SOURCE_HOST, HOST_SCHED_SWITCH, false, 50, 1000);
	ops[3] = (struct tracer_op){
		.source = SOURCE_HOST, .op = HOST_PROCESS_EXIT, .count = 2}; /* no duration */
	ops[4] = op_of(SOURCE_DRIVER, 1, true, 1234567, 700);
	sketch_add(&ops[2].sketch, 90000000, 5);
	ops[2].count += 5;
	v.books.source[SOURCE_CUDA] =
		(struct account){.hits = 1235567, .stored = 900, .aggregated = 1234667};
	v.books.source[SOURCE_DRIVER] = (struct account){.hits = 1234567, .aggregated = 1234560};
	v.books.source[SOURCE_DRIVER].lost[LOSS_RING_FULL] = 7;
	return v;
}

static void header_says_what_is_traced(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct tracer_view v = busy_view();

	live_header(&b, &v, "/tmp/x.db");
	assert_contains(buf_str(&b), "  Target: PID 77 (python3)\n");
	assert_contains(buf_str(&b), "  Library: /opt/libcudart.so.12 and 1 more\n");
	assert_contains(buf_str(&b), "  CUDA probes: 23 attached (session)\n");
	assert_contains(buf_str(&b), "  Recording to: /tmp/x.db\n");

	buf_clear(&b);
	v.processes = 3;
	v.libraries = 0;
	memcpy(v.first_comm, "a\x1b[2Jb", 7);
	live_header(&b, &v, NULL);
	assert_contains(buf_str(&b), "  Target: 3 processes, PID 77 (");
	assert_contains(buf_str(&b), "  Library: none found yet");
	assert_contains(buf_str(&b), "nothing (--record=false)");
	assert_null(strchr(buf_str(&b), '\x1b'));

	buf_clear(&b);
	v.processes = 0;
	live_header(&b, &v, NULL);
	assert_contains(buf_str(&b), "(none running yet)");
}

static void table_shows_every_op(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct tracer_view v = busy_view();

	live_table(&b, &v, (struct live_style){0});
	assert_int_equal(b.err, 0);
	assert_contains(buf_str(&b), "CPU [###################.] 97% ! | Mem [#####");
	assert_contains(buf_str(&b), "(23.2 GB free) | Load 1.5 | Swap 0 MB\n");
	assert_contains(buf_str(&b), "| cudaStreamSync               |       1,000 |    12ms |    "
				     "12ms |    12ms |        "
				     "|\n");
	assert_contains(buf_str(&b), "|   1,234,567 |   ");
	assert_contains(buf_str(&b), "| ! p99  |\n"); /* 9 % of the switches are slow */
	assert_contains(buf_str(&b), "| nested |\n");
	assert_contains(buf_str(&b), "Nested: 1,234,567\n");
	assert_contains(buf_str(&b), "Events: 1,235,567\n");
	assert_contains(buf_str(&b), "process_exit                 |           2 |         |");
	assert_contains(buf_str(&b), "nested: made inside a runtime call");
	assert_contains(buf_str(&b),
		"  Wall: 2m0s | Events: 2,470,134 | Lost: 7 (0.00%)\n"
		"  Sampled: launches were counted 25 % of the time and estimated between, ±2.5 %\n"
		"  Stored: 900 events, 2,469,227 more as counts | Database: 3.0 MiB\n"
		"  Overhead: about 0.4 % of the busiest process (calls x 1.1µs, not compared with "
		"steps without probes yet; budget 1.0 %)\n"
		"  lost: 7 of 1,234,567 driver events, ring_full (");
	assert_lacks(buf_str(&b), "Lost names");
	assert_lacks(buf_str(&b), "No CUDA calls yet");
	assert_lacks(buf_str(&b), "\u2502");

	buf_clear(&b);
	v.overhead = v.overhead_low = 0.001;
	v.overhead_high = 0.025;
	live_table(&b, &v, (struct live_style){0});
	assert_contains(buf_str(&b),
		"  Overhead: 0.1 % to 2.5 % of the busiest process (CPU time of calls x 1.1µs, "
		"which its waits for the GPU may hide; budget 1.0 %)\n");
	assert_lacks(buf_str(&b), "at least");

	buf_clear(&b);
	v.overhead_pairs = 16;
	v.overhead = 0.004;
	v.overhead_high = 0.012;
	live_table(&b, &v, (struct live_style){0});
	assert_contains(buf_str(&b),
		"  Overhead: 0.4 % (0.1 % to 1.2 %) of the busiest process (its steps with and "
		"without probes, compared 16 times; budget 1.0 %)\n");

	buf_clear(&b);
	v.names_lost = 1234;
	live_table(&b, &v, (struct live_style){.unicode = true});
	assert_contains(buf_str(&b), "\u2502 nested \u2502\n");
	assert_contains(buf_str(&b), "  Lost names: 1,234 of kernels or NVTX ranges");
}

static void counts_of_any_size_keep_the_columns(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct tracer_view v = busy_view();

	ops[1].count = 987654321;
	ops[0].count = 12345678901;
	live_table(&b, &v, (struct live_style){0});
	assert_contains(buf_str(&b), "| 987,654,321 |");
	assert_contains(buf_str(&b), "|    12,345 M |");
}

static void without_calls_it_says_so(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct tracer_view v = {.ran_ns = 5000000000};

	assert_false(live_has_calls(&v));
	live_table(&b, &v, (struct live_style){0});
	assert_contains(buf_str(&b), "No CUDA calls yet");
	assert_contains(buf_str(&b), "Wall: 5.0s | Events: 0 | Lost: 0 (0.00%)\n");
	assert_lacks(buf_str(&b), "Stored"); /* nothing is recorded */
	v.books.source[SOURCE_DRIVER].hits = 1;
	assert_true(live_has_calls(&v));
}

static void a_command_without_calls_is_told_why(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct tracer_view v = {0};

	live_command_end(&b, &v, NULL);
	assert_contains(buf_str(&b), "(no process loaded a CUDA library)");
	buf_clear(&b);
	v.libraries = 1;
	live_command_end(&b, &v, NULL);
	assert_contains(buf_str(&b), "no CUDA calls were recorded, so");
}

static void processes_that_outlive_a_command_are_named(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct tracer_view v = {.first_pid = 12, .first_comm = "python3"};

	live_command_left(&b, &v);
	assert_string_equal(buf_str(&b), "");
	v.processes = 1;
	live_command_left(&b, &v);
	assert_string_equal(buf_str(&b),
		"ingero: python3 (process 12) still runs, no longer traced: sudo ingero trace --pid 12\n");
	buf_clear(&b);
	v.processes = 3;
	live_command_left(&b, &v);
	assert_contains(buf_str(&b), "python3 (process 12) and 2 other processes still run, no");
}

static void troubles_are_told(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct tracer_view v = busy_view();

	memcpy(v.store_error, "disk \x1b[31mfull", 15);
	v.clock_steps = 2;
	live_table(&b, &v, (struct live_style){0});
	assert_contains(buf_str(&b), "cannot write to the database: disk ");
	assert_contains(buf_str(&b), "full\n");
	assert_contains(buf_str(&b), "stepped 2 times");
	assert_null(strchr(buf_str(&b), '\x1b'));
}

/* Every size from tiny to large: no line is longer than the screen, and there is room for all. */
static void screen_always_fits(void **state)
{
	struct tracer_view v = busy_view();

	for (int n = 5; n < (int)ARRAY_SIZE(ops); n++)
		ops[n] = op_of(SOURCE_CUDA, (uint16_t)n, false, 10, 5000);
	v.op_count = ARRAY_SIZE(ops);
	for (int columns = 20; columns <= 140; columns += 3)
		for (int rows = 2; rows <= 70; rows++) {
			_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
			int lines = 0;

			live_screen(&b, &v,
				(struct live_style){
					.unicode = true, .columns = columns, .rows = rows});
			for (const char *s = buf_str(&b); *s; lines++) {
				int width = 0;

				for (; *s != '\n'; s++)
					width += ((unsigned char)*s & 0xc0) != 0x80;
				assert_in_range(width, 0, columns);
				s++;
			}
			assert_in_range(lines, 1, rows - 1);
		}
}

static void screen_gives_up_rules_then_rows(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct tracer_view v = busy_view();
	struct live_style style = {.columns = 100, .rows = 60};

	live_screen(&b, &v, style);
	assert_contains(buf_str(&b), "+----"); /* all fits: as live_table() */
	buf_clear(&b);
	style.rows = 22;
	live_screen(&b, &v, style);
	assert_lacks(buf_str(&b), "+----");
	assert_lacks(buf_str(&b), "more operation");
	assert_contains(buf_str(&b), "process_exit");
	buf_clear(&b);
	style.rows = 17;
	live_screen(&b, &v, style);
	assert_contains(buf_str(&b), "and 2 more operations");
	assert_contains(buf_str(&b), "cudaStreamSync"); /* the one with the most time stays */
	assert_contains(buf_str(&b), "Wall: 2m0s");
	buf_clear(&b);
	live_screen(&b, &v, (struct live_style){0}); /* no terminal: everything */
	assert_contains(buf_str(&b), "+----");
}

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
		.gpu_text = "unknown since 12:01:33 (NVML does not respond)"};

	assert_shown(&v, "  GPU state: unknown since 12:01:33 (NVML does not respond)\n");
	v.gpu_state = GPU_ABSENT;
	snprintf(v.gpu_text, sizeof(v.gpu_text), "absent: libnvidia-ml.so.1 not found");
	assert_shown(&v, ""); /* a machine without a GPU */
	v.has_driver = true;
	assert_shown(&v, "  GPU state: absent: libnvidia-ml.so.1 not found\n");
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

static void an_incident_has_a_line(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct incident i = {.severity = SEVERITY_MEDIUM,
		.summary = "hog \033[31m had the CPU",
		.last.ns = 5 * (int64_t)NS_PER_S};

	live_incident(&b, &i);
	i.resolved.ns = 40 * (int64_t)NS_PER_S;
	live_incident(&b, &i);
	assert_non_null(strstr(buf_str(&b), "  [MEDIUM] hog "));
	assert_non_null(strstr(buf_str(&b), "\n  [RESOLVED, 35s ago] hog "));
	assert_null(strchr(buf_str(&b), '\033')); /* names are data */
	assert_null(strstr(buf_str(&b), "PID"));
	buf_clear(&b);
	i.pid = 4821;
	i.pid_total = 4;
	i.first.ns = (int64_t)NS_PER_S;
	live_incident(&b, &i);
	assert_non_null(strstr(buf_str(&b), "had the CPU (PID 4821 and 3 more, since "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_says_what_is_traced),
		cmocka_unit_test(table_shows_every_op),
		cmocka_unit_test(counts_of_any_size_keep_the_columns),
		cmocka_unit_test(without_calls_it_says_so),
		cmocka_unit_test(a_command_without_calls_is_told_why),
		cmocka_unit_test(processes_that_outlive_a_command_are_named),
		cmocka_unit_test(troubles_are_told),
		cmocka_unit_test(screen_always_fits),
		cmocka_unit_test(screen_gives_up_rules_then_rows),
		cmocka_unit_test(test_a_line_for_each_gpu),
		cmocka_unit_test(test_silence_has_a_line),
		cmocka_unit_test(test_a_sample_as_json),
		cmocka_unit_test(an_incident_has_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
