/* SPDX-License-Identifier: Apache-2.0 */
/* test_incident_text.c - the sentences, word for word, from figures set by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/sentences/incident_text.h"
#include "scene.h"

static struct incident example(void)
{
	return (struct incident){.pid = VICTIM,
		.comm = "python3",
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.calls = 9829,
		.slow_calls = 23,
		.baseline_ns = 16700000,
		.slow_p50_ns = 142000000,
		.tail_ratio = 8.5,
		.excess_ns = 2900000000,
		.explained = 0.8,
		.confidence = 0.7,
		.completeness = 1,
		.cause_count = 2,
		.causes = {{.cause = CAUSE_PREEMPTED,
				   .culprit_pid = HOG,
				   .culprit = "sim-cpu-hog",
				   .culprit_share = 1,
				   .ns = 2059000000},
			{.cause = CAUSE_RUN_QUEUE, .ns = 261000000}}};
}

static void tell(struct incident *inc, struct verdict *v)
{
	struct slow_call calls[2] = {{.end_ns = 100}, {.start_ns = 200, .end_ns = 300}};
	struct detection d = {.slow = calls, .slow_count = 2};
	struct slow_episode s = {.count = 2};
	struct part_list l = {.asleep_ns = 150, .has_switches = true};

	v->span_ns = 60000000000;
	assert_int_equal(incident_text_put(&d, &s, &l, v, inc), 0);
}

static void test_named(void **state)
{
	struct incident inc = example();
	struct verdict v = {.lead = &inc.causes[0],
		.lead_share = 0.71,
		.layer_share = 0.8,
		.from_aggregates = true,
		.has_books = true,
		.hits = 10000,
		.lost = 1};

	tell(&inc, &v);
	assert_string_equal(inc.summary,
		"cudaStreamSync 8.5x slower (p50 17ms -> 142ms): "
		"sim-cpu-hog (pid 8821) used the CPU for 71 % of the extra time");
	assert_string_equal(inc.root_cause, "CPU contention: sim-cpu-hog (pid 8821) ran while the "
					    "calling thread of python3 (pid "
					    "4821) was ready to run");
	assert_string_equal(inc.explanation,
		"23 of 9,829 calls of cudaStreamSync by python3 (pid "
		"4821) took 142ms (median) instead "
		"of 17ms: 2.9s of extra time, 4.8 % of the 1m0s "
		"observed. 80 % of the extra time overlaps "
		"recorded delays of the calling threads "
		"(off the CPU 2.1s by sim-cpu-hog (pid 8821), "
		"kept waiting for a CPU 261ms); the rest overlaps nothing "
		"recorded. Confidence is fair (0.70). "
		"1 of 10,000 events lost.");
	assert_int_equal(inc.fix_count, 3);
}

static void test_tracer(void **state)
{
	struct incident inc = example();
	struct verdict v = {.lead = &inc.causes[0], .lead_share = 0.71, .layer_share = 0.8};

	tell(&inc, &v);
	assert_null(strstr(inc.root_cause, "tracer")); /* control: another culprit */
	assert_non_null(strstr(inc.fixes[1], "renice"));
	snprintf(inc.causes[0].culprit, COMM_LEN, "ingero");
	inc.causes[0].culprit_share = 0.5;
	tell(&inc, &v);
	assert_non_null(
		strstr(inc.summary, "ingero, the tracer itself (pid 8821 and others) used"));
	assert_non_null(strstr(inc.root_cause, "ingero, the tracer itself (pid 8821 and others)"));
	assert_int_equal(inc.fix_count, 2);
	assert_non_null(strstr(inc.fixes[0], "different CPUs"));
	assert_non_null(strstr(inc.fixes[1], "--stack=false"));
	assert_non_null(strstr(inc.fixes[1], "--overhead-budget"));
}

static void test_unexplained(void **state)
{
	struct incident inc = example();
	struct verdict v = {.lead = &inc.causes[0], .lead_share = 1, .layer_share = 1};

	inc.cause_count = 1;
	inc.explained = 0;
	inc.causes[0] = (struct incident_cause){.cause = CAUSE_UNEXPLAINED, .ns = inc.excess_ns};
	tell(&inc, &v);
	assert_string_equal(inc.root_cause,
		"unexplained: no recorded delay covers most of the extra time "
		"of python3 (pid 4821)");
	assert_non_null(
		strstr(inc.explanation, "No recorded delay overlaps the extra time. The threads "
					"slept for 75 % of the slow calls"));
	assert_non_null(strstr(inc.fixes[1], "--record-all"));
}

static void test_longest_names_fit(void **state)
{
	struct incident inc = example();
	struct verdict v = {.lead = &inc.causes[0], .lead_share = 0.71, .layer_share = 0.8};

	inc.pid = UINT32_MAX;
	memset(inc.comm, 'v', COMM_LEN - 1);
	for (int c = CAUSE_PREEMPTED; c < CAUSE_UNEXPLAINED; c++) {
		inc.causes[0].cause = (enum cause)c;
		inc.causes[0].culprit_pid = UINT32_MAX - 1;
		inc.causes[0].culprit_share = 0.5;
		memset(inc.causes[0].culprit, 'c', COMM_LEN - 1);
		tell(&inc, &v);
		assert_true(strlen(inc.summary) < sizeof(inc.summary) - 1);
		assert_true(strlen(inc.root_cause) < sizeof(inc.root_cause) - 1);
		assert_true(strlen(inc.explanation) < sizeof(inc.explanation) - 1);
		for (int i = 0; i < inc.fix_count; i++)
			assert_true(strlen(inc.fixes[i]) < sizeof(inc.fixes[i]) - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_tracer),
		cmocka_unit_test(test_unexplained),
		cmocka_unit_test(test_longest_names_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
