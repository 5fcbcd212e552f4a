/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/live/incident_tracker.h"
#include "base/macros.h"
#include "model/problem.h"

#define S ((int64_t)NS_PER_S)

struct heard {
	size_t findings, grown, resolved;
	struct incident last;
	wall_time detected;
};

static void hear(
	void *arg, const struct incident *i, wall_time detected, enum incident_change change)
{
	struct heard *h = arg;

	h->findings += change == INCIDENT_NEW;
	h->grown += change == INCIDENT_GROWN;
	h->resolved += change == INCIDENT_RESOLVED;
	h->last = *i;
	h->detected = detected;
}

static struct incident slow(uint32_t pid, int64_t first_s, int64_t last_s, enum severity severity)
{
	struct incident i = {.problem = PROBLEM_SLOW_CALL,
		.pid = pid,
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.severity = severity,
		.first.ns = first_s * S,
		.last.ns = last_s * S,
		.slow_calls = (uint64_t)(last_s - first_s + 1),
		.excess_ns = 1000};

	snprintf(i.id, sizeof(i.id), "slow-%u-%lld", pid, (long long)i.first.ns);
	return i;
}

static void snapshot(struct incident_tracker *b, const struct incident *i, size_t n, int64_t now_s,
	struct heard *h)
{
	assert_int_equal(incident_tracker_update(b, i, n, (wall_time){now_s * S},
				 (wall_time){(now_s - 330) * S}, hear, h),
		0);
}

static void test_life(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	struct incident i = slow(7, 1000, 1004, SEVERITY_MEDIUM);

	snapshot(&b, &i, 1, 1005, &h);
	assert_int_equal(h.findings, 1);
	assert_int_equal(h.detected.ns, 1005 * S);
	i = slow(7, 1000, 1009, SEVERITY_HIGH);
	snapshot(&b, &i, 1, 1010, &h);
	assert_int_equal(h.grown, 1);
	assert_int_equal(h.last.severity, SEVERITY_HIGH);
	assert_int_equal(h.last.slow_calls, 10);
	assert_int_equal(h.detected.ns, 1005 * S); /* when it was first found */
	snapshot(&b, &i, 1, 1015, &h);             /* as before: nothing to say */
	snapshot(&b, &i, 1, 1039, &h);
	assert_int_equal(h.grown, 1);
	snapshot(&b, &i, 1, 1040, &h); /* 31 s quiet, first look that finds it so */
	assert_int_equal(h.resolved, 0);
	snapshot(&b, &i, 1, 1045, &h);
	assert_int_equal(h.resolved, 1);
	assert_int_equal(h.last.resolved.ns, 1045 * S);
	assert_int_equal(h.last.last.ns, 1009 * S);
	/* while it is still in memory it is found again and again: no second incident */
	for (int64_t now = 1050; now < 1305; now += 5)
		snapshot(&b, &i, 1, now, &h);
	assert_int_equal(h.findings + h.grown + h.resolved, 3);
	snapshot(&b, NULL, 0, 1340, &h);
	assert_int_equal(b.count, 0); /* forgotten here, not where it is stored */
	incident_tracker_done(&b);
}

/* Its beginning leaves the memory, its first time changes: id, first_seen and the worst stay. */
static void test_growing_stays_one(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	struct incident i = slow(7, 1000, 1200, SEVERITY_HIGH);
	char id[sizeof(i.id)];

	memcpy(id, i.id, sizeof(id));
	for (int64_t now = 1205; now < 2000; now += 5) {
		i = slow(7, MAX(now - 300, INT64_C(1000)), now - 1,
			now < 1300 ? SEVERITY_HIGH : SEVERITY_MEDIUM);
		if (now == 1205)
			memcpy(id, i.id, sizeof(id));
		snapshot(&b, &i, 1, now, &h);
	}
	assert_int_equal(h.findings, 1);
	assert_int_equal(h.resolved, 0);
	assert_int_equal(h.grown, 158);
	assert_string_equal(h.last.id, id);
	assert_int_equal(h.last.first.ns, 1000 * S);
	assert_int_equal(h.last.last.ns, 1994 * S);
	assert_int_equal(h.last.severity, SEVERITY_HIGH);
	incident_tracker_done(&b);
}

static void test_not_found_any_more(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	struct incident i = slow(7, 1000, 1004, SEVERITY_MEDIUM);

	snapshot(&b, &i, 1, 1005, &h);
	snapshot(&b, NULL, 0, 1010, &h);
	assert_int_equal(h.resolved, 0);
	snapshot(&b, &i, 1, 1015, &h); /* found after all: the count begins anew */
	snapshot(&b, NULL, 0, 1020, &h);
	assert_int_equal(h.resolved, 0);
	snapshot(&b, NULL, 0, 1025, &h);
	assert_int_equal(h.resolved, 1);
	/* it goes on within the pause that ends a stretch: the same case, open again */
	i = slow(7, 1000, 1030, SEVERITY_MEDIUM);
	snapshot(&b, &i, 1, 1031, &h);
	assert_int_equal(h.findings, 1);
	assert_int_equal(h.grown, 1);
	assert_int_equal(h.last.resolved.ns, 0);
	incident_tracker_done(&b);
}

static void test_what_is_another(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	struct incident list[6];

	for (size_t k = 0; k < ARRAY_SIZE(list); k++)
		list[k] = slow(7, 1000, 1010, SEVERITY_MEDIUM);
	list[1].pid = 8;
	list[2].op = CUDA_MEMCPY;
	list[3].source = SOURCE_DRIVER;
	list[4].problem = PROBLEM_STARVATION;
	list[5] = slow(7, 1041, 1045, SEVERITY_MEDIUM); /* 31 s after the first */
	snapshot(&b, list, ARRAY_SIZE(list), 1046, &h);
	assert_int_equal(h.findings, 6);
	list[5] = slow(7, 1040, 1046, SEVERITY_MEDIUM); /* now 30 s: joined to one of them */
	snapshot(&b, &list[5], 1, 1047, &h);
	assert_int_equal(h.findings, 6);
	incident_tracker_done(&b);
}

/* Two losses of one process are two cases, and what becomes a change was what every step had. */
static void test_what_time_is_lost_to(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	struct incident i[2] = {
		slow(7, 1000, 1004, SEVERITY_MEDIUM), slow(7, 1000, 1004, SEVERITY_MEDIUM)};

	snprintf(i[0].id, sizeof(i[0].id), "goodput-7-1000-disk");
	snprintf(i[1].id, sizeof(i[1].id), "goodput-7-1000-host");
	snapshot(&b, i, 2, 1005, &h);
	assert_int_equal(h.findings, 2);
	snprintf(i[1].id, sizeof(i[1].id), "goodput-7-1002-every-host");
	i[1].last.ns = 1009 * S;
	snapshot(&b, i, 2, 1010, &h);
	assert_int_equal(h.findings, 2);
	assert_int_equal(h.grown, 1);
	incident_tracker_done(&b);
}

static void test_low_opens_nothing(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	struct incident i = slow(7, 1000, 1004, SEVERITY_LOW);

	snapshot(&b, &i, 1, 1005, &h);
	assert_int_equal(h.findings, 0);
	i.severity = SEVERITY_MEDIUM;
	snapshot(&b, &i, 1, 1010, &h);
	assert_int_equal(h.findings, 1);
	i = slow(7, 1000, 1014, SEVERITY_LOW); /* and does not fall back */
	snapshot(&b, &i, 1, 1015, &h);
	assert_int_equal(h.last.severity, SEVERITY_MEDIUM);
	incident_tracker_done(&b);
}

static void test_ceiling(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	static struct incident many[INCIDENT_TRACKER_MAX + 3];

	for (uint32_t k = 0; k < ARRAY_SIZE(many); k++)
		many[k] = slow(100 + k, 1000, 1004, SEVERITY_MEDIUM);
	snapshot(&b, many, ARRAY_SIZE(many), 1005, &h);
	assert_int_equal(h.findings, INCIDENT_TRACKER_MAX);
	assert_int_equal(b.left_out, 3);
	for (int64_t now = 1040; now <= 1045; now += 5)
		snapshot(&b, many, INCIDENT_TRACKER_MAX, now, &h);
	assert_int_equal(h.resolved, INCIDENT_TRACKER_MAX);
	many[INCIDENT_TRACKER_MAX] =
		slow(9, 1046, 1047, SEVERITY_MEDIUM); /* in place of a resolved one */
	snapshot(&b, &many[INCIDENT_TRACKER_MAX], 1, 1050, &h);
	assert_int_equal(h.findings, INCIDENT_TRACKER_MAX + 1);
	assert_int_equal(b.count, INCIDENT_TRACKER_MAX);
	incident_tracker_done(&b);
}

static void test_hostile_times(void **state)
{
	static const int64_t times[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
	struct incident_tracker b = {0};
	struct heard h = {0};

	for (size_t k = 0; k < ARRAY_SIZE(times); k++)
		for (size_t m = 0; m < ARRAY_SIZE(times); m++) {
			struct incident i = slow(7, 1, 1, SEVERITY_MEDIUM);

			i.first.ns = times[k];
			i.last.ns = times[m];
			assert_int_equal(incident_tracker_update(&b, &i, 1, (wall_time){times[m]},
						 (wall_time){times[k]}, hear, &h),
				0);
		}
	assert_in_range(h.findings, 1, 25);
	incident_tracker_done(&b);
}

/* Of one mistake in several processes, those that began it leave the memory first. */
static void test_several_processes(void **state)
{
	struct incident_tracker b = {0};
	struct heard h = {0};
	struct incident i = slow(7, 1000, 1004, SEVERITY_MEDIUM);

	i.pids[0] = 7;
	i.pids[1] = 8;
	i.pid_count = 2;
	i.pid_total = 2;
	snapshot(&b, &i, 1, 1005, &h);
	i = slow(8, 1002, 1009, SEVERITY_MEDIUM);
	i.pids[0] = 8;
	i.pids[1] = 9;
	i.pid_count = 2;
	i.pid_total = 2;
	snapshot(&b, &i, 1, 1010, &h);
	assert_int_equal(h.findings, 1);
	assert_int_equal(h.grown, 1);
	i = slow(10, 1002, 1014, SEVERITY_MEDIUM); /* control: none in common */
	snapshot(&b, &i, 1, 1015, &h);
	assert_int_equal(h.findings, 2);
	incident_tracker_done(&b);
}

/* What was said while recording is told in the end if a process, and the problem, the loss, the culprit or the line are
 * the same. */
static void test_what_is_told(void **state)
{
	struct incident said = slow(7, 1000, 1005, SEVERITY_HIGH), end = said;

	assert_false(incident_is_told(&said, &end, 0));
	assert_true(incident_is_told(&said, &end, 1));
	end.problem = PROBLEM_GOODPUT;
	assert_false(incident_is_told(&said, &end, 1));
	snprintf(said.place, sizeof(said.place), "train.py:7 (step)");
	snprintf(end.place, sizeof(end.place), "train.py:7 (step)");
	assert_true(incident_is_told(&said, &end, 1));
	end.place[0] = 0;
	snprintf(said.id, sizeof(said.id), "node:goodput-7-1000-every-process");
	snprintf(end.id, sizeof(end.id), "goodput-7-900-process");
	assert_true(incident_is_told(&said, &end, 1));
	end.pid = 8;
	assert_false(incident_is_told(&said, &end, 1));
	end.problem = said.problem; /* the other of two that hold each other up */
	end.cause_count = 1;
	end.causes[0].culprit_pid = 7;
	assert_true(incident_is_told(&said, &end, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_several_processes),
		cmocka_unit_test(test_growing_stays_one),
		cmocka_unit_test(test_not_found_any_more),
		cmocka_unit_test(test_what_is_another),
		cmocka_unit_test(test_what_time_is_lost_to),
		cmocka_unit_test(test_low_opens_nothing),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_hostile_times),
		cmocka_unit_test(test_what_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
