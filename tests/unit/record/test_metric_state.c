/* SPDX-License-Identifier: Apache-2.0 */
/* test_metric_state.c - what is kept for metrics: waits, last collectives, edges, open incidents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "record/trace/metric_state.h"

static void put_collective(struct metric_state *f, uint32_t pid, uint64_t hash, int64_t wait_ns)
{
	struct event e = {.pid = pid, .source = SOURCE_NCCL, .op = NCCL_ALL_REDUCE, .dur_ns = 5};
	struct collective c = {.comm_hash = hash, .rank = 0, .bytes = 64, .wait_ns = wait_ns};

	metric_state_collective(f, &e, &c);
}

static void test_collectives(void **state)
{
	_cleanup_(metric_state_freep) struct metric_state *f = metric_state_new();

	put_collective(f, 1, 7, 1000);
	put_collective(f, 1, 7, 3000);
	put_collective(f, 1, 7, -1); /* nobody waited */
	put_collective(f, 2, 8, 50);
	assert_int_equal(f->collective_count, 2);
	assert_int_equal(f->collectives[0].c.wait_ns, -1); /* the last one */
	assert_int_equal(f->waits[NCCL_ALL_REDUCE]->count, 3);
	assert_int_equal(f->waits[NCCL_ALL_REDUCE]->sum, 4050);
	metric_state_process_gone(f, 1);
	assert_int_equal(f->collective_count, 1);
	assert_int_equal(f->collectives[0].pid, 2);
	assert_int_equal(f->waits[NCCL_ALL_REDUCE]->count, 3); /* totals stay */
	for (uint64_t i = 0; i < METRIC_STATE_COLLECTIVES + 5; i++)
		put_collective(f, 3, 100 + i, 1);
	assert_int_equal(f->collective_count, METRIC_STATE_COLLECTIVES);
	assert_int_equal(f->cut, 6);
	metric_state_process_gone(f, 3);
	assert_int_equal(f->collective_count, 1);
}

static void throttle(struct metric_state *f, const char *uuid, int64_t reasons)
{
	struct gpu_sample s;

	gpu_sample_init(&s);
	snprintf(s.uuid, sizeof(s.uuid), "%s", uuid);
	s.throttle_reasons = reasons;
	metric_state_gpu(f, &s);
}

static void test_edges(void **state)
{
	_cleanup_(metric_state_freep) struct metric_state *f = metric_state_new();
	char name[16];

	throttle(f, "a", 4); /* there at the first look: when it began is not known */
	assert_int_equal(f->gpus[0].edges[THROTTLE_POWER], 0);
	throttle(f, "a", 4);
	throttle(f, "a", 1);
	throttle(f, "a", 4 | 64);
	assert_int_equal(f->gpus[0].edges[THROTTLE_POWER], 1);
	assert_int_equal(f->gpus[0].edges[THROTTLE_SW], 1);
	assert_int_equal(f->gpus[0].edges[THROTTLE_THERMAL], 1);
	assert_int_equal(f->gpus[0].edges[THROTTLE_HW], 1);
	throttle(f, "a", 32 | 64); /* heat goes on, by another bit too */
	assert_int_equal(f->gpus[0].edges[THROTTLE_THERMAL], 1);
	throttle(f, "a", GPU_UNKNOWN);
	throttle(f, "a", 32);
	assert_int_equal(f->gpus[0].edges[THROTTLE_THERMAL], 1); /* not known is no end */
	for (int i = 0; i < METRIC_STATE_GPUS; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		throttle(f, name, 0);
	}
	assert_int_equal(f->gpu_count, METRIC_STATE_GPUS);
	assert_int_equal(f->cut, 1);
}

static void incident(struct metric_state *f, const char *id, enum problem p, enum severity s,
	enum incident_change change)
{
	struct incident i = {.problem = (uint8_t)p, .severity = s};

	snprintf(i.id, sizeof(i.id), "%s", id);
	metric_state_incident(f, &i, change);
}

static void test_incidents(void **state)
{
	_cleanup_(metric_state_freep) struct metric_state *f = metric_state_new();
	char id[16];

	incident(f, "a", PROBLEM_STRAGGLER, SEVERITY_MEDIUM, INCIDENT_NEW);
	incident(f, "b", PROBLEM_STRAGGLER, SEVERITY_MEDIUM, INCIDENT_NEW);
	assert_int_equal(f->open[PROBLEM_STRAGGLER][SEVERITY_MEDIUM], 2);
	incident(f, "a", PROBLEM_STRAGGLER, SEVERITY_HIGH, INCIDENT_GROWN);
	assert_int_equal(f->open[PROBLEM_STRAGGLER][SEVERITY_MEDIUM], 1);
	assert_int_equal(f->open[PROBLEM_STRAGGLER][SEVERITY_HIGH], 1);
	incident(f, "b", PROBLEM_STRAGGLER, SEVERITY_MEDIUM, INCIDENT_RESOLVED);
	incident(f, "a", PROBLEM_STRAGGLER, SEVERITY_HIGH, INCIDENT_RESOLVED);
	incident(f, "x", PROBLEM_STRAGGLER, SEVERITY_HIGH, INCIDENT_RESOLVED); /* never heard of */
	assert_int_equal(f->open[PROBLEM_STRAGGLER][SEVERITY_MEDIUM], 0);
	assert_int_equal(f->open[PROBLEM_STRAGGLER][SEVERITY_HIGH], 0);
	assert_int_equal(f->found[PROBLEM_STRAGGLER][SEVERITY_MEDIUM], 2);
	assert_int_equal(f->found[PROBLEM_STRAGGLER][SEVERITY_HIGH], 0);
	for (int i = 0; i < INCIDENT_TRACKER_MAX + 2; i++) {
		snprintf(id, sizeof(id), "%d", i);
		incident(f, id, PROBLEM_PCIE, SEVERITY_LOW, INCIDENT_NEW);
	}
	assert_int_equal(f->open[PROBLEM_PCIE][SEVERITY_LOW], INCIDENT_TRACKER_MAX);
	assert_int_equal(f->found[PROBLEM_PCIE][SEVERITY_LOW], INCIDENT_TRACKER_MAX + 2);
	assert_int_equal(f->cut, 2);
}

static void test_processes_with_nccl(void **state)
{
	_cleanup_(metric_state_freep) struct metric_state *f = metric_state_new();
	struct target_library libs[] = {
		{.kind = TARGET_CUDART}, {.kind = TARGET_NCCL, .path = "/x/libnccl.so.2.21.5"}};
	struct target_process with = {.pid = 1, .comm = "a", .libraries = libs, .library_count = 2};
	struct target_process without = {.pid = 2, .libraries = libs, .library_count = 1};

	assert_false(f->has_nccl);
	for (int snapshot = 0; snapshot < 2; snapshot++) {
		metric_state_nccl_begin(f);
		metric_state_nccl_process(f, &with);
		metric_state_nccl_process(f, &without);
		assert_int_equal(f->nccl_count, 1);
	}
	assert_true(f->has_nccl);
	assert_string_equal(metric_state_nccl_version(f->nccl[0].path), "2.21.5");
	assert_string_equal(metric_state_nccl_version("/a.so.9/libnccl.so"), "");
	assert_string_equal(metric_state_nccl_version(""), "");
	for (int i = 0; i < METRIC_STATE_NCCL + 1; i++)
		metric_state_nccl_process(f, &with);
	assert_int_equal(f->nccl_count, METRIC_STATE_NCCL + 2);
	assert_int_equal(f->cut, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_incidents),
		cmocka_unit_test(test_processes_with_nccl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
