/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c - the layout, and that nothing a traced process chose reaches a terminal raw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "answer/encode/report.h"
#include "answer/encode/report_json.h"
#include "scene.h"
#include "stack_fixture.h"

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static int use_utc(void **state)
{
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

static void test_layout(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct accounting books = {
		.source[SOURCE_CUDA] = {.hits = 10000, .lost[LOSS_RING_FULL] = 1}};
	struct report_scope scope = {.node = "gpu-1",
		.first_ns = SCENE_T0_NS,
		.last_ns = SCENE_T0_NS + 40000000000,
		.events = 1200,
		.calls = 64410,
		.completeness = completeness_of(&books),
		.skipped_rows = 2};
	struct incident inc = {.severity = SEVERITY_HIGH,
		.pid = 4821,
		.comm = "python3",
		.first.ns = SCENE_T0_NS + 20000000000,
		.last.ns = SCENE_T0_NS + 39000000000,
		.slow_calls = 400,
		.calls = 800,
		.excess_ns = 7600000000,
		.explained = 1,
		.confidence = 0.92,
		.summary =
			"CPU contention from sim-cpu-hog (pid 8821): steps take 40 ms instead of 20",
		.root_cause = "Threads of the job are ready to run",
		.fixes = {"Stop sim-cpu-hog"},
		.fix_count = 1,
		.step_count = 1,
		.evidence = {401},
		.evidence_count = 1};

	report_text(&b, &inc, 1, &scope, false);
	assert_int_equal(b.err, 0);
	assert_contains(b.data, "INCIDENTS - 1 incident (1 HIGH)\n");
	assert_contains(b.data, "  Node gpu-1: 1,200 events analysed, 64,410 calls; 1 of 10,000 "
				"events lost; 2 damaged rows omitted\n");
	assert_contains(b.data, "  From 2026-03-21 13:24:50 to 13:25:30 UTC\n");
	assert_contains(
		b.data, "\n[HIGH] CPU contention from sim-cpu-hog (pid 8821): steps take 40 ms");
	assert_contains(b.data,
		"\n  Root cause: Threads of the job are ready to run\n  Fix: Stop sim-cpu-hog\n");
	assert_contains(b.data, "\n  Process: python3 (PID 4821), from 2026-03-21 13:25:10 to "
				"13:25:29 UTC\n  Confidence: ");
	assert_contains(b.data, "\n  Cost: 7.6 s lost in 400 slow calls\n");
	assert_null(strstr(b.data, "Timeline"));
	assert_null(strstr(b.data, "Evidence"));
	assert_null(strstr(b.data, "  Why: "));
	assert_contains(b.data, "\n-v adds ");
	assert_null(strchr(b.data, '\033'));

	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, true);
	assert_contains(b.data, "\033[1;31m[HIGH]\033[0m");
}

static int lines_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* The answer first, then cause, fix, where, who, how sure and what it is worth: a dozen lines at most. The rest is there
 * for who asks. */
static void test_short_and_verbose(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct report_scope scope = {0};
	struct incident inc = {.severity = SEVERITY_HIGH,
		.pid = 7,
		.comm = "python3",
		.first.ns = SCENE_T0_NS,
		.last.ns = SCENE_T0_NS,
		.unit = "steps",
		.count = 31,
		.excess_ns = 4000000000,
		.explained = 1,
		.confidence = 0.83,
		.unit_ns = 174000000,
		.fixed_ns = 46000000,
		.fixed_least_ns = 44000000,
		.fixed_most_ns = 52000000,
		.place = "train.py:71 (step)",
		.fix_count = 3,
		.step_count = 6,
		.evidence = {11, 12},
		.evidence_count = 2};
	const char *title, *rest;

	memset(inc.summary, 'x', 150);
	memset(inc.root_cause, 'x', 150);
	memset(inc.explanation, 'x', 400);
	for (int i = 0; i < 3; i++)
		snprintf(inc.fixes[i], sizeof(inc.fixes[i]), "fix %d%*s%s", i, 60, "",
			" and so on and on until the line is full and has to go on on the next one");
	report_text(&b, &inc, 1, &scope, false);
	title = strstr(b.data, "\n[HIGH] ");
	rest = strstr(b.data, "\n-v adds");
	assert_non_null(title);
	assert_non_null(rest);
	assert_in_range(lines_of(title + 1) - lines_of(rest), 8, 12);
	assert_contains(b.data, "\n  Where: train.py:71 (step)\n  Process: python3 (PID 7), at ");
	assert_contains(b.data, "\n  Confidence: likely, 83 %\n"
				"  Without it: steps 174 → about 46 ms (44–52)\n");
	assert_null(strstr(b.data, "fix 2"));
	inc.source = SOURCE_HOST;
	inc.op = HOST_LEDGER;
	inc.excess_ns = 31 * UINT64_C(114000000); /* of the 128 ms that are promised */
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data,
		"\n  Without it: steps 174 → about 46 ms (44–52); 60 ms if only this part goes\n");
	inc.excess_ns = 4000000000;
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_null(strstr(b.data, "only this part"));
	scope.verbose = true;
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data, "fix 2");
	assert_contains(b.data, "\n  Why: xxx");
	assert_contains(b.data, "\n  Measured: 31 steps, 4.0s lost, 100 % of it explained\n");
	assert_contains(b.data, "\n  Timeline:\n");
	assert_contains(b.data, "\n  Evidence: rows 11, 12");
	assert_null(strstr(b.data, "-v adds"));
	scope.verbose = false;
	inc.explained = 0;
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(
		b.data, "Confidence: likely, 83 % that this time was lost; cause unknown\n");
}

/* One thing is one thing, and of several processes the first are named. */
static void test_one_and_several(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct accounting books = {.source[SOURCE_CUDA].hits = 1};
	struct report_scope scope = {.events = 1,
		.calls = 1,
		.host_events = 1,
		.thinned_rows = 1,
		.skipped_rows = 1,
		.older_events = 1,
		.older_ledger = 1,
		.overlapping = 1,
		.reused = 1,
		.nameless = 1,
		.older_labels = 1,
		.skipped_stacks = 1,
		.other_stacks = 1,
		.pruned_rows = 1,
		.pruned_before = SCENE_T0_NS,
		.completeness = completeness_of(&books)};
	struct incident inc = {.pid = 7,
		.comm = "worker",
		.first.ns = SCENE_T0_NS,
		.last.ns = SCENE_T0_NS + 1000,
		.count = 1,
		.unit = "failed calls"};

	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data,
		"\n  1 event analysed, 1 call and 1 host event; 1 row of ordinary calls aggregated; "
		"none of 1 event lost; 1 damaged row omitted; 1 older event omitted; 1 older "
		"ledger row omitted; 1 ledger row omitted, overlapping others of the same thread (was the clock set back?); "
		"1 process not examined separately: a later one had the PID; "
		"1 collective without communicator id, not matched between ranks; "
		"the oldest 1 label omitted; 1 call stack omitted: damaged or over 64 KiB; 1 call stack with "
		"little time omitted\n");
	assert_contains(b.data, " were pruned (1 row)\n");
	assert_contains(b.data, "\n  Process: worker (PID 7), at 2026-03-21 13:24:50 UTC\n");
	assert_contains(b.data, "\n  Confidence: uncertain, 0 %\n");
	inc.pids[0] = 7;
	inc.pids[1] = 8;
	inc.pids[2] = 9;
	inc.pid_count = 3;
	inc.pid_total = 40;
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data, "\n  Process: worker (PID 7, 8, 9 and 37 more), at 2026-");
	buf_clear(&b);
	report_json(&b, &inc, 1, &scope);
	assert_contains(b.data, "\"processes\": 40");
	inc.pid = 0; /* of no process: of a GPU, say */
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data, "\n  Time: at 2026-03-21 13:24:50 UTC\n");
}

static void test_no_incidents(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct report_scope scope = {.events = 3284};

	report_text(&b, NULL, 0, &scope, false);
	assert_string_equal(buf_str(&b),
		"Cannot tell whether time was lost\n"
		"  No process used a GPU for long enough.\n"
		"  Not judged: delays by CPUs and disks (no off-CPU intervals recorded); clocks, memory and errors of\n"
		"              the GPU (no readings); limits of containers (no control group could be read); ranks\n"
		"              (no collectives recorded)\n"
		"  3,284 events analysed; losses unknown\n");
	buf_clear(&b);
	scope.events = 0;
	report_text(&b, NULL, 0, &scope, false);
	assert_memory_equal(buf_str(&b), "No events to explain\n", 21);
	buf_clear(&b);
	scope.events = 200;
	scope.no_gpu_calls = true;
	report_text(&b, NULL, 0, &scope, false);
	assert_memory_equal(buf_str(&b), "No CUDA calls to explain\n", 25);
}

static void test_labels_and_pruned_rows(void **state)
{
	static const struct annotation_label labels[] = {
		{.time_ns = 1, .key = "phase", .value = "train\033[2J"},
		{.time_ns = 2, .key = "step", .value = "7"},
		{.time_ns = 60, .key = "step", .value = "8"},
		{.time_ns = 70, .key = "step", .value = "9"},
	};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct report_scope scope = {.pruned_rows = 12345,
		.pruned_before = SCENE_T0_NS,
		.labels = labels,
		.label_count = ARRAY_SIZE(labels)};
	struct incident inc = {.first.ns = 50, .last.ns = 100};

	report_text(&b, &inc, 1, &scope, false);
	assert_contains(
		b.data, "\n  Events before 2026-03-21 13:24:50 UTC were pruned (12,345 rows)\n");
	assert_null(strstr(b.data, "Annotations"));
	buf_clear(&b);
	scope.with_labels = true;
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data, "  Annotations: phase=train\\x1b[2J, step=7 … 9 (3 values)\n");
	buf_clear(&b);
	report_json(&b, &inc, 1, &scope);
	assert_contains(b.data, "\"key\": \"step\"");
	assert_contains(b.data, "\"total\": 3");
	buf_clear(&b);
	scope.label_count = 0;
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data, "  Annotations: none\n");
}

static void test_names_are_escaped(void **state)
{
	/* what is escaped how is the matter of test_text.c; here: every field goes through it */
	static const struct {
		const char *name, *shown;
	} rows[] = {
		{"\033[2Jhog", "\\x1b[2Jhog"},
		{"caf\xc3\xa9", "caf\xc3\xa9"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
		struct report_scope scope = {.verbose = true};
		struct incident inc = {.severity = SEVERITY_LOW, .step_count = 1, .fix_count = 1};

		snprintf(inc.summary, sizeof(inc.summary), "s%s.", rows[i].name);
		snprintf(inc.root_cause, sizeof(inc.root_cause), "r%s.", rows[i].name);
		snprintf(inc.explanation, sizeof(inc.explanation), "e%s.", rows[i].name);
		snprintf(inc.place, sizeof(inc.place), "p%s.", rows[i].name);
		snprintf(inc.fixes[0], sizeof(inc.fixes[0]), "f%s.", rows[i].name);
		snprintf(inc.timeline[0].detail, sizeof(inc.timeline[0].detail), "t%s.",
			rows[i].name);
		report_text(&b, &inc, 1, &scope, false);
		for (const char *c = "sreftp"; *c; c++) {
			char want[64];

			snprintf(want, sizeof(want), "%c%s.", *c, rows[i].shown);
			assert_contains(b.data, want);
		}
	}
}

static void test_where_and_stacks(void **state)
{
	static const struct stack_total total = {10, SOURCE_CUDA, CUDA_STREAM_SYNC, 900, 3};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct report_scope scope = {
		.stacks = three_stacks, .totals = &total, .total_count = 1, .skipped_stacks = 2};
	struct incident inc = {.excess_ns = 1000,
		.stacks = {{10, 870, 5}, {UINT64_MAX - 4, 100, 1}},
		.stack_count = 2,
		.stack_total = 2,
		.stack_ns = 970};

	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data,
		"\n  Where: called from forward() at train.py:142, 87 % of the extra time\n");
	assert_contains(b.data, "; 2 call stacks omitted: damaged or over 64 KiB");
	assert_null(strstr(b.data, "STACKS"));
	buf_clear(&b);
	report_json(&b, &inc, 1, &scope);
	assert_int_equal(b.data[0], '[');
	assert_contains(b.data, "\"py_line\": 142,");
	assert_contains(b.data, "\"share\": 0.87");
	scope.with_stacks = true;
	scope.other_stacks = 5;
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data, "; 5 call stacks with little time omitted");
	assert_contains(b.data, "\nSTACKS of the incidents");
	buf_clear(&b);
	report_json(&b, &inc, 1, &scope);
	assert_int_equal(b.data[0], '{');
	assert_contains(b.data, "\"incidents\": [");
	assert_contains(b.data, "\"py_file\": \"/w/train.py\"");
	assert_contains(b.data, "\"hash\": 10");
	inc.stacks[0].hash = 77; /* a native place */
	buf_clear(&b);
	report_json(&b, &inc, 1, &scope);
	assert_contains(b.data, "\"symbol\": \"load;\\u001b[2J<b>&\\u000a\"");
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_contains(b.data, "called from load;\\x1b[2J<b>&\\n [lib\\x07x.so], 10 % of the");
	inc.stack_count = 0;
	buf_clear(&b);
	report_text(&b, &inc, 1, &scope, false);
	assert_null(strstr(b.data, "Where:"));
	buf_clear(&b);
	report_json(&b, &inc, 1, &scope);
	assert_contains(b.data, "\"where\": null");
}

/* A LOW one beside a louder is its title, and the place that the title leaves out. */
static void test_low_says_where(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct report_scope scope = {.stacks = three_stacks};
	struct incident list[] = {
		{.severity = SEVERITY_HIGH, .summary = "loud", .root_cause = "told"},
		{.severity = SEVERITY_LOW,
			.summary = "quiet",
			.root_cause = "aside",
			.excess_ns = 1000,
			.stacks = {{10, 870, 5}},
			.stack_count = 1,
			.stack_total = 1,
			.stack_ns = 870},
	};

	report_text(&b, list, ARRAY_SIZE(list), &scope, false);
	assert_contains(b.data,
		"\n[LOW] quiet\n  Where: called from forward() at train.py:142, 87 % of the extra time\n\n");
	assert_contains(b.data, "Root cause: told");
	assert_null(strstr(b.data, "aside"));
	snprintf(list[1].place, sizeof(list[1].place), "train.py:142 (forward)");
	snprintf(list[1].summary, sizeof(list[1].summary), "quiet in forward (train.py:142)");
	buf_clear(&b);
	report_text(&b, list, ARRAY_SIZE(list), &scope, false);
	assert_null(strstr(b.data, "Where:"));
}

static void test_ceiling_is_reported(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(10);
	struct report_scope scope = {0};

	report_text(&b, NULL, 0, &scope, false);
	assert_true(b.err < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_short_and_verbose),
		cmocka_unit_test(test_one_and_several),
		cmocka_unit_test(test_no_incidents),
		cmocka_unit_test(test_labels_and_pruned_rows),
		cmocka_unit_test(test_names_are_escaped),
		cmocka_unit_test(test_where_and_stacks),
		cmocka_unit_test(test_low_says_where),
		cmocka_unit_test(test_ceiling_is_reported),
	};

	return cmocka_run_group_tests(tests, use_utc, NULL);
}
