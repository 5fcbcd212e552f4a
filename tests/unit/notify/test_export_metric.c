/* SPDX-License-Identifier: Apache-2.0 */
/* test_export_metric.c - what the exporters tell of themselves, all of it from the beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "notify/telemetry/telemetry.h"

static int64_t value(const struct metric_set *s, enum export_metric_id id, const char *result)
{
	for (const struct metric *m = metric_first(s); m; m = m->next)
		for (const struct metric_point *p = m->first; p; p = p->next)
			if (m->desc == &export_metric_table[id] &&
				(!result || !strcmp(p->attributes[0].text, result)))
				return p->value.i;
	return -1;
}

static void test_figures(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){9});
	struct push_stats f = {.backlog = {.sent_batches = 4,
				       .sent_points = 40,
				       .dropped_batches = 3,
				       .dropped_points = 30,
				       .refused_batches = 2,
				       .refused_points = 20,
				       .retries = 6},
		.rejected_points = 7,
		.queued_batches = 5,
		.queued_bytes = 500};

	export_metric_push(s, (wall_time){1}, &f);
	export_metric_scrapes(s, (wall_time){1}, 12);
	assert_int_equal(value(s, E_BATCHES, "sent"), 4);
	assert_int_equal(value(s, E_BATCHES, "dropped"), 3);
	assert_int_equal(value(s, E_BATCHES, "refused"), 2);
	assert_int_equal(value(s, E_POINTS, "sent"), 33); /* without the rejected */
	assert_int_equal(value(s, E_POINTS, "rejected"), 7);
	assert_int_equal(value(s, E_POINTS, "dropped"), 30);
	assert_int_equal(value(s, E_POINTS, "refused"), 20);
	assert_int_equal(value(s, E_RETRIES, NULL), 6);
	assert_int_equal(value(s, E_QUEUE, NULL), 5);
	assert_int_equal(value(s, E_QUEUE_BYTES, NULL), 500);
	assert_int_equal(value(s, E_SCRAPES, NULL), 12);
	assert_int_equal(metric_first(s)->first->start.ns, 1);
}

static void test_zeros_are_told(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){9});

	export_metric_push(s, (wall_time){1}, &(struct push_stats){0});
	assert_int_equal(value(s, E_BATCHES, "dropped"), 0);
	assert_int_equal(value(s, E_POINTS, "rejected"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_zeros_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
