/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_graph.c - graphs captured again and again, and graphs used as they are meant. */
#include "verdict.h"

static struct event *graph(
	struct scene *s, uint16_t op, int64_t at_us, int64_t dur_us, uint64_t arg0, uint64_t arg1)
{
	struct event *e = scene_add(s, SOURCE_GRAPH, op, VICTIM, VICTIM, at_us, dur_us);

	e->arg0 = arg0;
	e->arg1 = arg1;
	return e;
}

static void capture(struct scene *s, int64_t at_us, int64_t lasts_us)
{
	graph(s, GRAPH_BEGIN_CAPTURE, at_us, 10, 1, 0);
	graph(s, GRAPH_END_CAPTURE, at_us + lasts_us - 10, 10, 1, 0x100);
}

/* @steps of 10 ms; a graph is captured and made anew every @every of them. */
static void train(struct scene *s, int steps, int every, bool update)
{
	for (int i = 0; i < steps; i++) {
		int64_t at = i * 10000;

		if (i % every == 0) {
			capture(s, at, 500);
			graph(s, i && update ? GRAPH_EXEC_UPDATE : GRAPH_INSTANTIATE, at + 600, 500,
				0x100, 0x200 + (uint64_t)(update ? 0 : i))
				->stack_hash = 9;
		}
		graph(s, GRAPH_LAUNCH, at + 2000, 20,
			0x200 + (uint64_t)(update ? 0 : i - i % every), 0);
	}
}

static void test_recapture(void **state)
{
	SCENE;
	train(&s, 1000, 5, false);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_GRAPH_RECAPTURE);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_MEDIUM);
	assert_int_equal(i->period_steps, 5);
	assert_has(i->summary,
		"captured repeatedly: 180 times after warm-up, once for every 5 launches; 1.0ms each");
	assert_in_range(i->excess_ns, 179 * NS_PER_MS, 181 * NS_PER_MS);
	assert_int_equal(i->stacks[0].hash, 9);
	assert_true(i->confidence > 0.85); /* 0.95, of a recording that does not say what it lost */
}

static void test_dear_recapture_is_high(void **state)
{
	SCENE;
	train(&s, 1000, 1, false);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(verdict(&v, PROBLEM_GRAPH_RECAPTURE)->severity, SEVERITY_MEDIUM);
	for (size_t i = 0; i < s.event_count; i++)
		if (s.events[i].op == GRAPH_INSTANTIATE)
			s.events[i].dur_ns = 1400 * NS_PER_US;
	VERDICTS dear = verdicts_of(&rec);
	assert_int_equal(verdict(&dear, PROBLEM_GRAPH_RECAPTURE)->severity, SEVERITY_HIGH);
}

static void expect_none(struct scene *s)
{
	struct recording rec = scene_recording(s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_GRAPH_RECAPTURE));
}

static void test_updated_in_place(void **state)
{
	SCENE;
	train(&s, 1000, 5, true);
	expect_none(&s);
}

/* One graph for each of 60 shapes at the start, then launches only. */
static void test_many_graphs_in_warm_up(void **state)
{
	SCENE;
	for (int i = 0; i < 60; i++) {
		capture(&s, i * 10000, 5000);
		graph(&s, GRAPH_INSTANTIATE, i * 10000 + 6000, 3000, 0x100, 0x200 + (uint64_t)i);
	}
	for (int i = 0; i < 2000; i++)
		graph(&s, GRAPH_LAUNCH, 700000 + i * 5000, 20, 0x200 + (uint64_t)(i % 60), 0);
	expect_none(&s);
}

static void test_failed_capture(void **state)
{
	SCENE;
	train(&s, 100, 1000, false);
	graph(&s, GRAPH_END_CAPTURE, 500000, 10, 1, 0)->ret = 901;
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(verdict(&v, PROBLEM_GRAPH_RECAPTURE)->severity, SEVERITY_MEDIUM);
	assert_has(verdict(&v, PROBLEM_GRAPH_RECAPTURE)->summary, "stream capture invalidated");
	s.events[s.event_count - 1].ret = 2;
	VERDICTS memory = verdicts_of(&rec);
	assert_int_equal(verdict(&memory, PROBLEM_GRAPH_RECAPTURE)->severity, SEVERITY_HIGH);
}

static void test_hostile(void **state)
{
	SCENE;
	for (uint16_t op = 0; op < 9; op++)
		scene_hostile(&s, SOURCE_GRAPH, op);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec); /* negative codes are failures of unknown kind */

	for (size_t i = 0; i < v.count; i++)
		assert_true(v.list[i].severity <= SEVERITY_MEDIUM);
	_cleanup_(scene_done) struct scene two = {.seed = 1};

	graph(&two, GRAPH_INSTANTIATE, 0, 500, 0, 0);
	expect_none(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recapture),
		cmocka_unit_test(test_dear_recapture_is_high),
		cmocka_unit_test(test_updated_in_place),
		cmocka_unit_test(test_many_graphs_in_warm_up),
		cmocka_unit_test(test_failed_capture),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
