/* SPDX-License-Identifier: Apache-2.0 */
/* test_quota.c - a process is told of the quota of its own control group, and of no other's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/chains/chain.h"
#include "base/macros.h"

#define JOB 100
#define T0  INT64_C(1700000000000000000)
#define S   ((int64_t)NS_PER_S)

enum { OWN = 7, OTHER = 8 };

/* Ten seconds in which the job's group is stopped for 100 ms a second and another's for 600 ms. */
struct scene {
	struct event events[2];
	struct container_sample groups[20];
	struct recording rec;
};

static struct recording *scene_init(struct scene *s)
{
	for (int i = 0; i < 20; i++)
		s->groups[i] = (struct container_sample){.time.ns = T0 + i / 2 * S,
			.cgroup_id = i % 2 ? OTHER : OWN,
			.throttled_us = i / 2 * (i % 2 ? 600000 : 100000),
			.quota_us = i % 2 ? 50000 : 200000,
			.period_us = 100000};
	s->events[0] = (struct event){.start.ns = T0,
		.pid = JOB,
		.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH,
		.cgroup_id = OWN};
	s->events[1] = (struct event){.start.ns = T0 + 6 * S,
		.pid = JOB,
		.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH,
		.cgroup_id = OWN};
	s->rec = (struct recording){.events = s->events,
		.event_count = 2,
		.containers = s->groups,
		.container_count = 20};
	return &s->rec;
}

static void test_the_own_group(void **state)
{
	struct scene s;
	struct quota_stop q = quota_find(scene_init(&s), JOB, T0, T0 + 9 * S);

	assert_int_equal(q.ns, 900 * NS_PER_MS);
	assert_float_equal(q.cpus, 2, 0.001);
}

static void test_it_has_moved(void **state)
{
	struct scene s;
	struct quota_stop q;

	scene_init(&s);
	s.events[1].cgroup_id = OTHER;
	q = quota_find(&s.rec, JOB, T0, T0 + 9 * S);
	assert_int_equal(q.ns, 5400 * NS_PER_MS);
	q = quota_find(&s.rec, JOB, T0, T0 + 4 * S); /* before it moved; a reading more */
	assert_int_equal(q.ns, 500 * NS_PER_MS);
}

/* Rows of the host may be made by whoever had the CPU. */
static void test_a_group_that_is_not_known(void **state)
{
	struct scene s;
	struct quota_stop q;

	scene_init(&s);
	s.events[0].source = s.events[1].source = SOURCE_HOST;
	q = quota_find(&s.rec, JOB, T0, T0 + 9 * S);
	assert_int_equal(q.ns, 0);
	for (int i = 0; i < 20; i++)
		s.groups[i].cgroup_id = i % 2 ? OWN : OTHER;
	for (int i = 0; i < 10; i++)
		s.groups[i] = s.groups[2 * i];
	s.rec.container_count = 10; /* the only one */
	q = quota_find(&s.rec, JOB, T0, T0 + 9 * S);
	assert_int_equal(q.ns, 900 * NS_PER_MS);
}

static void test_not_stopped(void **state)
{
	struct scene s;
	struct quota_stop q;

	scene_init(&s);
	for (int i = 0; i < 20; i += 2)
		s.groups[i].throttled_us = 5;
	q = quota_find(&s.rec, JOB, T0, T0 + 9 * S);
	assert_int_equal(q.ns, 0);
	s.rec.container_count = 0;
	q = quota_find(&s.rec, JOB, T0, T0 + 9 * S);
	assert_int_equal(q.ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_own_group),
		cmocka_unit_test(test_it_has_moved),
		cmocka_unit_test(test_a_group_that_is_not_known),
		cmocka_unit_test(test_not_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
