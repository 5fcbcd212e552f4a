/* SPDX-License-Identifier: Apache-2.0 */
/* test_culprit.c - sums by cause and culprit, the ceiling of rows, and who keeps a device busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/calls/culprit.h"
#include "diagnose/calls/part.h"
#include "scene.h"

static struct part part(size_t call, enum cause cause, uint32_t pid, const char *name, uint64_t ns)
{
	struct part p = {
		.call = call, .cause = cause, .culprit_pid = pid, .ns = ns, .culprit_share = 1};

	snprintf(p.culprit, sizeof(p.culprit), "%s", name);
	return p;
}

static void test_rows_by_cause_and_name(void **state)
{
	struct part parts[] = {
		part(0, CAUSE_PREEMPTED, 10, "hog", 100), part(0, CAUSE_PREEMPTED, 11, "hog", 50),
		part(1, CAUSE_PREEMPTED, 10, "hog", 100), part(1, CAUSE_RUN_QUEUE, 10, "hog", 70),
		part(1, CAUSE_PREEMPTED, VICTIM, "hog", 30), /* the victim bears the name too */
		part(2, CAUSE_RUN_QUEUE, 0, "", 20), part(2, CAUSE_PREEMPTED, 12, "", 10),
		part(2, CAUSE_PREEMPTED, 13, "", 9), /* nameless: told apart by pid */
	};
	struct part_list l = {.items = parts, .count = ARRAY_SIZE(parts)};
	struct incident inc = {.pid = VICTIM, .excess_ns = 1000, .slow_calls = 3};

	assert_int_equal(culprit_sum(&(struct recording){0}, &l, &inc), 0);
	assert_int_equal(inc.cause_count, 7);
	assert_int_equal(inc.causes[0].cause, CAUSE_UNEXPLAINED);
	assert_int_equal(inc.causes[0].ns, 611);
	assert_int_equal(inc.causes[1].cause, CAUSE_PREEMPTED);
	assert_int_equal(inc.causes[1].ns, 250);
	assert_int_equal(inc.causes[1].calls, 2);
	assert_int_equal(inc.causes[1].culprit_pid, 10);
	assert_true(inc.causes[1].culprit_share == 0.8);
	assert_int_equal(inc.causes[2].cause, CAUSE_RUN_QUEUE);
	assert_int_equal(inc.causes[2].ns, 70);
	assert_int_equal(inc.causes[3].culprit_pid, VICTIM);
	assert_int_equal(inc.causes[4].culprit_pid, 0);
	assert_int_equal(inc.causes[5].culprit_pid, 12);
	assert_int_equal(inc.causes[6].culprit_pid, 13);
	assert_true(inc.explained > 0.388 && inc.explained < 0.390);
}

static void test_too_many_rows_fold(void **state)
{
	struct part parts[60];
	struct part_list l = {.items = parts, .count = ARRAY_SIZE(parts)};
	struct incident inc = {.pid = VICTIM, .excess_ns = 100000, .slow_calls = 60};
	uint64_t sum = 0;
	char name[COMM_LEN];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(name, sizeof(name), "p%zu", i);
		parts[i] = part(i, i % 2 ? CAUSE_PREEMPTED : CAUSE_RUN_QUEUE, 100 + (uint32_t)i,
			name, 1000 + i);
	}
	assert_int_equal(culprit_sum(&(struct recording){0}, &l, &inc), 0);
	assert_int_equal(inc.cause_count,
		INCIDENT_CAUSES - CAUSE_COUNT + 3); /* named, 2 folded, unexplained */
	for (int i = 0; i < inc.cause_count; i++)
		sum += inc.causes[i].ns;
	assert_int_equal(sum, inc.excess_ns);
	assert_int_equal(
		inc.causes[inc.cause_count - 1].culprit_pid, 160 - (INCIDENT_CAUSES - CAUSE_COUNT));
}

static void test_nothing_to_sum(void **state)
{
	struct part_list l = {0};
	struct incident inc = {.pid = VICTIM, .excess_ns = 10, .slow_calls = 3};

	assert_int_equal(culprit_sum(&(struct recording){0}, &l, &inc), 0);
	assert_int_equal(inc.cause_count, 1);
	assert_int_equal(inc.causes[0].cause, CAUSE_UNEXPLAINED);
	assert_true(inc.explained == 0);
}

/* One part of 10 ms on the device, beside what is in @s; the largest share of it. */
static struct part blame(struct scene *s)
{
	struct recording rec = scene_recording(s);
	size_t rows[16];
	struct attribution_index x = {.requests = rows};
	struct part p = part(0, CAUSE_BLOCK_IO, 0, "", 10000000);
	_cleanup_(part_list_done) struct part_list l = {0};
	uint64_t sum = 0;

	for (size_t i = 0; i < s->event_count; i++)
		if (s->events[i].dev == s->events[0].dev)
			rows[x.request_count++] = i;
	for (size_t i = 0; i < s->event_count; i++)
		if (s->events[i].dev != s->events[0].dev)
			rows[x.request_count++] = i;
	p.start_ns = s->events[0].start.ns;
	p.end_ns = event_end_ns(&s->events[0]);
	assert_int_equal(part_add(&l, &p), 0);
	assert_int_equal(culprit_blame_disk(&rec, &x, &l, VICTIM), 0);
	for (size_t i = 0; i < l.count; i++) {
		sum += l.items[i].ns;
		assert_true(i == 0 || l.items[i].ns <= l.items[0].ns);
	}
	assert_in_range(sum, p.ns - l.count, p.ns);
	return l.items[0];
}

static void test_who_keeps_the_device_busy(void **state)
{
	_cleanup_(scene_done) struct scene s = {0};
	struct part p;

	scene_io(&s, IO_READ, VICTIM, "python3", 1000, 10000, 100);
	p = blame(&s);
	assert_int_equal(p.culprit_pid, VICTIM);
	assert_true(p.culprit_share == 1);

	/* Much, but before and after; and a little meanwhile: still its own doing. */
	scene_io(&s, IO_WRITE, 70, "writer", 0, 1000, 100000);
	scene_io(&s, IO_WRITE, 70, "writer", 11000, 1000, 100000);
	scene_io(&s, IO_WRITE, 70, "writer", 2000, 1000, 100);
	p = blame(&s);
	assert_int_equal(p.culprit_pid, VICTIM);

	/* On another device: no matter how much. */
	scene_io(&s, IO_WRITE, 71, "elsewhere", 1000, 10000, 1000000)->dev++;
	p = blame(&s);
	assert_int_equal(p.culprit_pid, VICTIM);

	/* Two of one name, each less than the victim, together more. */
	scene_io(&s, IO_WRITE, 72, "pair", 1000, 10000, 60);
	scene_io(&s, IO_WRITE, 73, "pair", 1000, 10000, 61);
	p = blame(&s);
	assert_int_equal(p.culprit_pid, 73);
	assert_string_equal(p.culprit, "pair");
	assert_true(p.culprit_share > 0.5 && p.culprit_share < 0.6);
	assert_in_range(p.ns, 5000000, 6000000); /* of 10 ms: the victim has its part */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_by_cause_and_name),
		cmocka_unit_test(test_too_many_rows_fold),
		cmocka_unit_test(test_nothing_to_sum),
		cmocka_unit_test(test_who_keeps_the_device_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
