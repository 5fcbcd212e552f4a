/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_added.c - calls that came with slow steps are told, and none that were there before or came by chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/chains/call_added.h"
#include "base/clock.h"
#include "base/macros.h"

#define JOB    100
#define T0     INT64_C(1700000000000000000)
#define SECOND ((int64_t)NS_PER_S)
#define STEPS  100 /* in a second; ten seconds of ordinary ones, ten of slow ones */

struct scene {
	struct account_bar bars[20];
	struct event events[400];
	size_t event_count;
	struct aggregate aggregates[4];
	struct step_account account;
};

static void scene_init(struct scene *s)
{
	*s = (struct scene){0};
	for (int i = 0; i < 20; i++)
		s->bars[i] = (struct account_bar){.start.ns = T0 + i * SECOND,
			.dur_ns = NS_PER_S,
			.steps = STEPS,
			.slow_steps = i < 10 ? 0 : STEPS};
	s->account = (struct step_account){.pid = JOB,
		.first.ns = T0,
		.last.ns = T0 + 20 * SECOND,
		.slow_first.ns = T0 + 10 * SECOND,
		.slow_last.ns = T0 + 20 * SECOND,
		.steps = 20 * STEPS,
		.ordinary_steps = 10 * STEPS,
		.slow_steps = 10 * STEPS,
		.slow_step_ns = NS_PER_S / STEPS,
		.ordinary_launches = 18,
		.bars = s->bars,
		.bar_count = 20};
	for (int i = 0; i < 4; i++)
		s->aggregates[i] = (struct aggregate){.bucket.ns = T0 + i * 5 * SECOND,
			.pid = JOB,
			.source = SOURCE_CUDA,
			.op = CUDA_MEMSET_ASYNC};
}

static struct event *row(struct scene *s, int64_t at, uint16_t op)
{
	struct event *e = &s->events[s->event_count++];

	*e = (struct event){
		.start.ns = T0 + at, .pid = JOB, .source = SOURCE_CUDA, .op = op, .stack_hash = 9};
	return e;
}

/* 18 fills in each slow step, of which some rows are kept, while the steps wait for a stream. */
static void fills(struct scene *s)
{
	scene_init(s);
	for (int i = 0; i < 20; i++)
		row(s, i * SECOND, CUDA_STREAM_SYNC)->stream = 77;
	for (int i = 0; i < 30; i++)
		row(s, 11 * SECOND + i * (int64_t)NS_PER_MS, CUDA_MEMSET_ASYNC);
	s->aggregates[2].sketch.count = s->aggregates[3].sketch.count = 9 * 10 * STEPS;
}

static struct call_added find(const struct scene *s)
{
	struct recording rec = {.events = s->events,
		.event_count = s->event_count,
		.aggregates = s->aggregates,
		.aggregate_count = ARRAY_SIZE(s->aggregates)};
	struct call_added c;

	call_added_find(&rec, &s->account, &c);
	return c;
}

static void test_fills_that_came(void **state)
{
	struct scene s;
	struct call_added c;

	fills(&s);
	c = find(&s);
	assert_int_equal(c.source, SOURCE_CUDA);
	assert_int_equal(c.op, CUDA_MEMSET_ASYNC);
	assert_float_equal(c.in_step, 18, 0.01);
	assert_int_equal(c.stack_hash, 9);
	assert_true(c.is_on_default_stream);
}

static void test_on_which_stream(void **state)
{
	struct scene s;

	fills(&s);
	s.events[s.event_count - 1].stream = 5;
	assert_false(find(&s).is_on_default_stream);
	fills(&s);
	for (int i = 0; i < 20; i++)
		s.events[i].stream = 0; /* all that there is is on it */
	assert_false(find(&s).is_on_default_stream);
	assert_int_equal(find(&s).op, CUDA_MEMSET_ASYNC);
}

/* Each of these takes the reason away that the one before has. */
static void test_what_is_not_told(void **state)
{
	for (int way = 0; way < 10; way++) {
		struct scene s;

		fills(&s);
		switch (way) {
		case 0: row(&s, SECOND, CUDA_MEMSET_ASYNC); break; /* was there before */
		case 1:
			s.aggregates[0].sketch.count = 9 * 10 * STEPS;
			break; /* likewise, without rows */
		case 2: s.aggregates[2].sketch.count = s.aggregates[3].sketch.count = 100; break;
		case 3:
			s.account.ordinary_launches = 0;
			break; /* then fills were not probed either */
		case 4:
			for (size_t i = 20; i < s.event_count; i++)
				s.events[i].start.ns += 6 * SECOND; /* it came later */
			break;
		case 5:
			for (int i = 0; i < 20; i++) /* a mixture of slow and ordinary ones */
				s.bars[i].slow_steps = STEPS / 2;
			break;
		case 6:
			for (int i = 0; i < 4; i++)
				s.aggregates[i].flags = WIRE_NESTED;
			break;
		case 7:
			for (size_t i = 20; i < s.event_count; i++)
				s.events[i].op = CUDA_MALLOC; /* of which its own line tells */
			break;
		case 8: s.account.slow_steps = 0; break;
		case 9:
			s.account.first.ns = T0 + 6 * SECOND;
			break; /* no whole bucket is of ordinary steps */
		}
		assert_int_equal(find(&s).source, 0);
	}
}

static void test_hostile(void **state)
{
	struct scene s;

	fills(&s);
	for (int i = 0; i < 4; i++)
		s.aggregates[i].bucket.ns = i % 2 ? INT64_MAX : INT64_MIN;
	s.events[25].op = UINT16_MAX;
	assert_int_equal(find(&s).source, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fills_that_came),
		cmocka_unit_test(test_on_which_stream),
		cmocka_unit_test(test_what_is_not_told),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
