/* SPDX-License-Identifier: Apache-2.0 */
/* test_explainer.c - a stream that was recorded goes in with its clock, and the incident comes out;
 * what finds no room on the way in or out is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/trace/explainer.h"
#include "scene.h"

#define BUCKET_US   5000000
#define HOG_ENDS_US 48000000 /* of scene_hog() */

static int64_t now_us; /* of the fake clock */

static wall_time clock_now(void)
{
	return (wall_time){SCENE_T0_NS + now_us * 1000};
}

static const struct explainer_config config = {.node = "gpu-1", .clock = clock_now};
static const struct accounting books;

struct found {
	size_t begun, grown, resolved;
	struct explainer_finding last;
};

static void find(void *arg, const struct explainer_finding *f)
{
	struct found *h = arg;

	h->begun += f->change == INCIDENT_NEW;
	h->grown += f->change == INCIDENT_GROWN;
	h->resolved += f->change == INCIDENT_RESOLVED;
	h->last = *f;
}

static int setup(void **state)
{
	struct explainer *x;

	now_us = 0;
	assert_int_equal(explainer_new(&config, &x), 0);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	explainer_free(*state);
	return 0;
}

/* Put in what @s has up to the end of the bucket that ends at @to_us, as the tracer would. */
static void play_bucket(struct explainer *x, const struct scene *s, int64_t to_us)
{
	int64_t from = SCENE_T0_NS + (to_us - BUCKET_US) * 1000, to = SCENE_T0_NS + to_us * 1000;

	for (size_t i = 0; i < s->event_count; i++)
		if (s->events[i].start.ns >= from && s->events[i].start.ns < to)
			explainer_event(x, &s->events[i]);
	for (size_t i = 0; i < s->aggregate_count; i++)
		if (s->aggregates[i].bucket.ns >= from && s->aggregates[i].bucket.ns < to)
			explainer_aggregate(x, &s->aggregates[i]);
	now_us = to_us;
	explainer_look(x, &books);
}

static void put_all(struct explainer *x, const struct scene *s)
{
	for (size_t i = 0; i < s->event_count; i++)
		explainer_event(x, &s->events[i]);
	for (size_t i = 0; i < s->aggregate_count; i++)
		explainer_aggregate(x, &s->aggregates[i]);
}

static void an_incident_is_found_as_it_happens_and_ends(void **state)
{
	struct explainer *x = *state;
	struct found found = {0};
	struct scene s = {.seed = 1};
	int64_t at_us = 0, step_us = 0;

	scene_steps(&s, &step_us, 400); /* calm for 20 s, contended for 20 s */
	scene_hogged(&s, &step_us, 290, HOG, "sim-cpu-hog");
	scene_steps(&s, &step_us, 1200);
	scene_aggregate(&s);
	while ((at_us += BUCKET_US) <= 20000000) {
		play_bucket(x, &s, at_us);
		assert_int_equal(explainer_step(x), 0);
		explainer_poll(x, find, &found);
	}
	assert_int_equal(found.begun, 0); /* control: the calm part has none */
	for (; at_us <= 40000000; at_us += BUCKET_US) {
		play_bucket(x, &s, at_us);
		assert_int_equal(explainer_step(x), 0);
		explainer_poll(x, find, &found);
	}
	assert_int_equal(found.begun, 1);
	assert_true(found.grown > 0);
	assert_int_equal(found.resolved, 0);
	assert_int_equal(found.last.incident.pid, VICTIM);
	assert_true(found.last.detected.ns > SCENE_T0_NS + (int64_t)20000000 * 1000);
	assert_true(found.last.detected.ns <= SCENE_T0_NS + (int64_t)40000000 * 1000);
	for (; at_us <= 100000000; at_us += BUCKET_US) {
		play_bucket(x, &s, at_us);
		assert_int_equal(explainer_step(x), 0);
		explainer_poll(x, find, &found);
	}
	assert_int_equal(found.begun, 1);
	assert_int_equal(found.resolved, 1);
	assert_int_equal(explainer_dropped(x).inputs, 0);
	assert_int_equal(explainer_dropped(x).findings, 0);
	scene_done(&s);
}

static void the_last_look_is_made_when_it_stops(void **state)
{
	struct explainer *x = *state;
	struct found found = {0};
	struct scene s = {.seed = 1};

	scene_hog(&s);
	scene_aggregate(&s);
	put_all(x, &s);
	now_us = HOG_ENDS_US;
	assert_int_equal(explainer_step(x), 0);
	explainer_poll(x, find, &found);
	assert_int_equal(found.begun, 0); /* control: nobody has asked for a look */
	explainer_stop(x, &books);
	explainer_poll(x, find, &found);
	assert_int_equal(found.begun, 1);
	scene_done(&s);
}

static void nothing_is_unusual_before_there_are_some_buckets(void **state)
{
	struct explainer *x = *state;
	struct found found = {0};
	struct scene s = {.seed = 1};

	scene_hog(&s);
	scene_aggregate(&s);
	put_all(x, &s);
	now_us = HOG_ENDS_US;
	for (int i = 1; i <= EXPLAINER_BUCKETS_MIN; i++) {
		explainer_look(x, &books);
		assert_int_equal(explainer_step(x), 0);
		explainer_poll(x, find, &found);
		assert_int_equal(found.begun, i == EXPLAINER_BUCKETS_MIN);
	}
	scene_done(&s);
}

/* Each of the inbox's lists has its own ceiling, and is empty again once it was taken. */
static void a_full_inbox_drops_and_counts(void **state)
{
	struct event sync = {
		.source = SOURCE_CUDA, .op = CUDA_STREAM_SYNC, .pid = VICTIM, .dur_ns = 1000};
	struct event launch = {.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .dur_ns = 1000};
	struct collective c = {.wait_ns = -1};
	struct host_sample sample = {0};
	struct aggregate a = {.pid = VICTIM, .source = SOURCE_CUDA};
	struct aggregate disk = {.pid = VICTIM, .source = SOURCE_IO};
	struct gpu_sample gpu = {0};
	struct container_sample container = {0};
	struct ledger_row row = {.pid = VICTIM};
	struct stack stack = {.hash = 1, .stop = ""};
	struct explainer *x = *state;

	for (unsigned i = 0; i < EXPLAINER_EVENTS_MAX; i++)
		explainer_event(x, &sync);
	explainer_event(x, &launch); /* nobody would look at it, so it is not missing */
	assert_int_equal(explainer_dropped(x).inputs, 0);
	explainer_event(x, &sync);
	explainer_event(x, &sync);
	assert_int_equal(explainer_dropped(x).inputs, 2);
	for (unsigned i = 0; i < EXPLAINER_AGGREGATES_MAX + 3; i++)
		explainer_aggregate(x, &a);
	explainer_aggregate(x, &disk); /* likewise nobody's */
	assert_int_equal(explainer_dropped(x).inputs, 5);
	for (unsigned i = 0; i < EXPLAINER_SAMPLES_MAX + 5; i++)
		explainer_sample(x, &sample);
	assert_int_equal(explainer_dropped(x).inputs, 10);
	for (unsigned i = 0; i < EXPLAINER_GPUS_MAX + 7; i++)
		explainer_gpu(x, &gpu);
	assert_int_equal(explainer_dropped(x).inputs, 17);
	for (unsigned i = 0; i < EXPLAINER_COLLECTIVES_MAX + 11; i++)
		explainer_collective(x, &sync, &c);
	assert_int_equal(explainer_dropped(x).inputs, 28);
	for (unsigned i = 0; i < EXPLAINER_LEDGER_MAX + 13; i++)
		explainer_ledger(x, &row);
	assert_int_equal(explainer_dropped(x).inputs, 41);
	for (unsigned i = 0; i < EXPLAINER_CONTAINERS_MAX + 17; i++)
		explainer_container(x, &container);
	assert_int_equal(explainer_dropped(x).inputs, 58);
	for (unsigned i = 0; i < EXPLAINER_STACKS_MAX + 19; i++)
		explainer_stack(x, &stack);
	assert_int_equal(explainer_dropped(x).inputs, 77);
	assert_int_equal(explainer_step(x), 0);
	explainer_event(x, &sync);
	explainer_gpu(x, &gpu);
	explainer_ledger(x, &row);
	explainer_container(x, &container);
	explainer_stack(x, &stack); /* is freed with what was not taken */
	assert_int_equal(explainer_dropped(x).inputs, 77);
}

/* More processes fail than anybody fetches findings for. */
static void findings_nobody_fetches_are_counted(void **state)
{
	const unsigned failing = EXPLAINER_FINDINGS_MAX + 6;
	struct explainer *x = *state;
	struct found found = {0};
	struct scene s = {.seed = 1};

	for (unsigned i = 0; i < failing; i++)
		for (unsigned k = 0; k < 40; k++) {
			struct event *e = scene_add(&s, SOURCE_CUDA, CUDA_STREAM_SYNC, 5000 + i,
				5000 + i, 1000 + k * 100000 + i, 1000);

			e->ret = k >= 20 ? 700 : 0;
		}
	scene_aggregate(&s);
	put_all(x, &s);
	now_us = 10000000;
	explainer_stop(x, &books);
	assert_int_equal(explainer_dropped(x).inputs, 0);
	explainer_poll(x, find, &found);
	assert_int_equal(found.begun, EXPLAINER_FINDINGS_MAX);
	assert_true(explainer_dropped(x).findings > 0);
	scene_done(&s);
}

/* The same on a thread of its own: what was put in before the stop is looked at. */
static void a_thread_explains(void **state)
{
	struct explainer *x = *state;
	struct found found = {0};
	struct scene s = {.seed = 1};

	scene_hog(&s);
	scene_aggregate(&s);
	now_us = HOG_ENDS_US;
	put_all(x, &s);
	assert_int_equal(explainer_start(x), 0);
	for (int i = 0; i < EXPLAINER_BUCKETS_MIN; i++)
		explainer_look(x, &books);
	explainer_stop(x, &books);
	explainer_poll(x, find, &found);
	assert_int_equal(found.begun, 1);
	assert_int_equal(explainer_dropped(x).inputs, 0);
	scene_done(&s);
}

#define RUN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(an_incident_is_found_as_it_happens_and_ends),
		RUN(the_last_look_is_made_when_it_stops),
		RUN(nothing_is_unusual_before_there_are_some_buckets),
		RUN(a_full_inbox_drops_and_counts),
		RUN(findings_nobody_fetches_are_counted),
		RUN(a_thread_explains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
