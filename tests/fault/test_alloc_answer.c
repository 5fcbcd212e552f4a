/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while a recording is explained: incidents as with all the memory, or ENOMEM. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../unit/scene.h"
#include "answer/explain.h"
#include "answer/flame.h"
#include "answer/ops.h"
#include "answer/encode/report.h"
#include "answer/encode/report_json.h"
#include "diagnose/compose/diagnose.h"
#include "fault.h"

static struct scene scene = {.seed = 1};

static int setup(void **state)
{
	scene_hog(&scene);
	scene_aggregate(&scene);
	return 0;
}

static int teardown(void **state)
{
	scene_done(&scene);
	return 0;
}

static int use_diagnose(void *arg)
{
	const struct recording rec = scene_recording(&scene);
	struct incident *found = (struct incident *)&scene;
	size_t count = 99;
	int r = diagnose_run(&rec, &found, &count);

	if (r < 0) {
		assert_ptr_equal(found, &scene);
		assert_int_equal(count, 99);
		return r;
	}
	assert_int_equal(count, 1);
	assert_string_equal(found[0].causes[0].culprit, "sim-cpu-hog");
	free(found);
	return 0;
}

static void correlating(void **state)
{
	assert_true(fault_torture(use_diagnose, NULL) > 10);
}

static struct nodedb_content content(void)
{
	return (struct nodedb_content){.events = scene.events,
		.event_count = scene.event_count,
		.aggregates = scene.aggregates,
		.aggregate_count = scene.aggregate_count,
		.first_ns = SCENE_T0_NS,
		.last_ns = SCENE_T0_NS + 40 * 1000000000LL};
}

static int use_explain(void *arg)
{
	const struct nodedb_content c = content();
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 20), json = BUF_INIT(1 << 20);
	struct explanation e = {0};
	struct errinfo err = {0};
	int r = explain_find(&c, true, &e, &err);

	if (r < 0)
		return r;
	report_text(&text, e.incidents, e.count, &e.scope, false);
	report_json(&json, e.incidents, e.count, &e.scope);
	explanation_done(&e);
	return text.err ? text.err : json.err;
}

static void explaining(void **state)
{
	assert_true(fault_torture(use_explain, NULL) > 10);
}

static int use_query(void *arg)
{
	const struct nodedb_content c = content();
	const struct query_view v = {.content = &c};
	_cleanup_buf_ struct buf text = BUF_INIT(16 << 20), json = BUF_INIT(16 << 20);
	struct ops_answer a = {.origin = OPS_ROWS};
	int r = op_stat_run(c.events, c.event_count, &a.rows, &a.count);

	if (r < 0)
		return r;
	query_table(
		&text, &(struct query_head){.events = c.event_count}, &a, &(struct host_answer){0});
	ops_answer_done(&a);
	query_json(&json, &v);
	return text.err ? text.err : json.err;
}

static void querying(void **state)
{
	assert_true(fault_torture(use_query, NULL) > 3);
}

static int use_flame(void *arg)
{
	static const struct stack_frame frames[] = {{.symbol = "inner"}, {.symbol = "outer"}};
	const struct stack s = {.hash = 7, .frames = frames, .count = 2, .stop = ""};
	struct flame f = FLAME_INIT;
	int r = 0;

	for (unsigned op = 1; r == 0 && op < 10; op++)
		r = flame_add(&f, &s, SOURCE_CUDA, op, 5);
	if (r == 0)
		r = flame_finish(&f);
	if (r == 0)
		assert_int_equal(f.nodes[0].total + f.left_out, 45);
	flame_done(&f);
	return r;
}

static void flame_graphs(void **state)
{
	assert_true(fault_torture(use_flame, NULL) > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(correlating),
		cmocka_unit_test(explaining),
		cmocka_unit_test(querying),
		cmocka_unit_test(flame_graphs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
