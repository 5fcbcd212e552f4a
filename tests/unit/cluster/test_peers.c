/* SPDX-License-Identifier: Apache-2.0 */
/* test_peers.c - who is a straggler: found from boot, after a lasting drop, in a drift, by score; and
 * nobody in healthy clusters. Costs with 10,000 nodes are printed, not asserted. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "base/macros.h"
#include "nodes_fixture.h"

#define NODES_MAX 64

struct scene {
	struct nodes *n;
	unsigned nodes;
	uint64_t seed;
	double noise, differs; /* from push to push; among nodes for good: parts of the value */
	double memory;         /* how much of the noise of one push is still in the next */
	double offset[NODES_MAX][PUSH_SIGNAL_COUNT], wander[NODES_MAX][PUSH_SIGNAL_COUNT + 1];
	int64_t now_ns;
	unsigned began, ended;
	struct nodes_change last;
	char last_node[PUSH_ID_MAX];
};

typedef void spoil_fn(struct push_health *h, unsigned node, unsigned step);

static void scene_init(struct scene *s, unsigned nodes, double noise, double differs, uint64_t seed)
{
	*s = (struct scene){.nodes = nodes,
		.noise = noise,
		.differs = differs,
		.seed = seed,
		.now_ns = 1000 * INTERVAL};
	assert_int_equal(nodes_new(&nodes_defaults, &s->n), 0);
	for (unsigned i = 0; i < nodes; i++)
		for (unsigned j = 0; j < PUSH_SIGNAL_COUNT; j++)
			s->offset[i][j] = 1 + differs * random_normal(&s->seed);
}

/* Noise with a memory, as of windows that overlap; its spread is s->noise all the same. */
static double noise(struct scene *s, unsigned node, unsigned signal)
{
	double *w = &s->wander[node][signal];

	*w = s->memory * *w + sqrt(1 - s->memory * s->memory) * random_normal(&s->seed);
	return s->noise * *w;
}

static void scene_step(struct scene *s, unsigned step, spoil_fn *spoil)
{
	struct nodes_change c;

	for (unsigned i = 0; i < s->nodes; i++) {
		struct push_health h = healthy_number(i);

		h.who.world_size = s->nodes * h.gpu_count;
		h.score = fmin(1, h.score + 0.2 * noise(s, i, PUSH_SIGNAL_COUNT));
		for (unsigned j = 0; j < PUSH_SIGNAL_COUNT; j++)
			h.signals[j] *=
				fmax(0.01, s->offset[i][j] + s->noise * random_normal(&s->seed));
		if (spoil)
			spoil(&h, i, step);
		assert_int_equal(take(s->n, h, s->now_ns), NODES_NONE);
	}
	nodes_tick(s->n, s->now_ns);
	s->now_ns += INTERVAL;
	while (nodes_change(s->n, &c)) {
		s->began += c.began;
		s->ended += !c.began;
		s->last = c;
		snprintf(s->last_node, sizeof(s->last_node), "%s", c.node.last->who.node);
	}
}

static void slow_from_boot(struct push_health *h, unsigned node, unsigned step)
{
	if (node == 2)
		h->signals[PUSH_SIGNAL_OWN_TIME] *= 1.6;
}

static void drop_for_good(struct push_health *h, unsigned node, unsigned step)
{
	if (node == 2 && step >= 30)
		h->signals[PUSH_SIGNAL_LAUNCH_RATE] *= 0.5;
}

static void slow_drift(struct push_health *h, unsigned node, unsigned step)
{
	if (node == 2) /* 1 % of a minute: six steps */
		h->signals[PUSH_SIGNAL_SM_CLOCK] *= 1 - 0.01 * step / 6.0;
}

/* Plays until node 2 is found, and an hour more: it must stay found. */
static unsigned find(unsigned nodes, spoil_fn *spoil, enum nodes_reason reason,
	enum push_signal signal, const char *dominant)
{
	struct scene s;
	struct node_view v;
	unsigned step = 0;

	scene_init(&s, nodes, 0.01, 0.01, nodes);
	while (!s.began && step < 400)
		scene_step(&s, step++, spoil);
	assert_int_equal(s.began, 1);
	assert_string_equal(s.last_node, "node-00002");
	assert_int_equal(s.last.node.reason, reason);
	assert_int_equal(s.last.node.signal, signal);
	assert_string_equal(s.last.node.dominant, dominant);
	assert_true(s.last.node.robust_z > 2);
	for (unsigned i = 0; i < 360 && step < 480; i++)
		scene_step(&s, step++, spoil);
	assert_int_equal(s.began, 1);
	assert_int_equal(s.ended, 0);
	assert_true(nodes_find(s.n, "c", "node-00002", &v));
	assert_true(v.straggler);
	for (unsigned i = 0; i < 4; i++) /* and well again */
		scene_step(&s, 0, spoil == slow_from_boot ? NULL : spoil);
	assert_int_equal(s.ended, 1);
	nodes_free(s.n);
	for (step = 0, scene_init(&s, nodes, 0.01, 0.01, nodes); !s.began; step++)
		scene_step(&s, step, spoil);
	nodes_free(s.n);
	return step;
}

static void test_found_by_peers(void **state)
{
	const unsigned sizes[] = {3, 4, 5, 8, 16, 64};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned boot = find(sizes[i], slow_from_boot, NODES_PEERS_REASON,
			PUSH_SIGNAL_OWN_TIME, "own_seconds_per_step");
		unsigned drop = find(sizes[i], drop_for_good, NODES_PEERS_REASON,
			PUSH_SIGNAL_LAUNCH_RATE, "launch_rate");
		unsigned drift = find(sizes[i], slow_drift, NODES_DRIFT_REASON,
			PUSH_SIGNAL_SM_CLOCK, "sm_clock_hz");

		print_message("%u nodes: slow from boot found after %u intervals, a drop after %u, "
			      "a drift of 1 %%/min after %.1f min\n",
			sizes[i], boot, drop - 30, drift / 6.0);
		assert_true(boot <= 6);
		assert_true(drop - 30 <= (sizes[i] <= 4 ? 6 : 3));
		assert_true(drift <= (sizes[i] <= 4 ? 180 : 90)); /* 10 % are reached at 60 */
	}
}

static void no_job(struct push_health *h, unsigned node, unsigned step)
{
	if (node != 5 || step < 20)
		return;
	h->throughput = fmax(0, 1 - 0.17 * (step - 19)); /* launches leave a window of 60 s */
	h->score = fmax(0.1, 0.95 - 0.4 * (1 - h->throughput));
}

static void test_found_by_score(void **state)
{
	struct scene s;
	unsigned step = 0;

	scene_init(&s, 8, 0.02, 0.0, 3);
	while (!s.began && step < 40)
		scene_step(&s, step++, no_job);
	print_message("by score after %u intervals\n", step - 20);
	assert_int_equal(s.last.node.reason, NODES_SCORE_REASON);
	assert_string_equal(s.last.node.dominant, "throughput");
	assert_true(step - 20 <= 4);
	while (step < 60)
		scene_step(&s, step++, no_job);
	assert_int_equal(s.began, 1);
	assert_int_equal(s.ended, 0);
	scene_step(&s, 0, NULL);
	assert_int_equal(s.ended, 0); /* once is not an end */
	scene_step(&s, 0, NULL);
	assert_int_equal(s.ended, 1);
	nodes_free(s.n);
}

static void only_memory(struct push_health *h, unsigned node, unsigned step)
{
	if (node == 1) {
		h->memory = 0.05;
		h->score = 0.4;
	}
}

static void test_dominant_compares_like_with_like(void **state)
{
	struct scene s;

	scene_init(&s, 8, 0.02, 0, 4);
	for (unsigned step = 0; step < 6; step++)
		scene_step(&s, step, only_memory);
	assert_int_equal(s.began, 1);
	assert_string_equal(s.last.node.dominant, "memory");
	nodes_free(s.n);
}

static unsigned bad_count;
static void many_bad(struct push_health *h, unsigned node, unsigned step)
{
	uint64_t seed = node;

	if (node < bad_count)
		h->score = 0.3 + 0.3 * random_uniform(&seed);
}

static void test_breakdown_point(void **state)
{
	for (bad_count = 1; bad_count <= 32; bad_count++) {
		struct scene s;
		struct threshold t;
		struct node_view v;
		size_t cursor = 0;
		unsigned below = 0, flagged = 0, wrong = 0;

		scene_init(&s, 64, 0.05, 0, bad_count);
		for (unsigned step = 0; step < 6; step++)
			scene_step(&s, step, many_bad);
		assert_true(nodes_threshold(s.n, "c", "", &t));
		for (unsigned i = 0; nodes_next(s.n, "c", &cursor, &v); i++) {
			below += v.last->score < t.value && i < bad_count;
			wrong += v.last->score < t.value && i >= bad_count;
			flagged += v.straggler && v.reason == NODES_SCORE_REASON && i < bad_count;
		}
		if (bad_count < 32) {
			assert_true(t.quorum_met && !t.half_bad);
			assert_int_equal(below, bad_count);
			assert_int_equal(flagged, bad_count);
			assert_true(wrong * 100 <= 3 * 64);
			assert_int_equal(s.began, bad_count);
		} else {
			assert_true(!t.quorum_met && t.half_bad);
			assert_float_equal(t.value, 0, 0);
			assert_int_equal(s.began, 0);
		}
		nodes_free(s.n);
	}
}

static void idle_later(struct push_health *h, unsigned node, unsigned step)
{
	slow_from_boot(h, node, step);
	if (node == 2 && step >= 10)
		h->state = PUSH_IDLE;
}

static void test_idle_is_an_end(void **state)
{
	struct scene s;

	scene_init(&s, 8, 0.01, 0.01, 5);
	for (unsigned step = 0; step < 10; step++)
		scene_step(&s, step, idle_later);
	assert_int_equal(s.began, 1);
	scene_step(&s, 10, idle_later);
	assert_int_equal(s.ended, 1);
	assert_false(s.last.node.straggler);
	nodes_free(s.n);
}

/* All nodes of a job slow down together, as in an evaluation. */
static void all_at_once(struct push_health *h, unsigned node, unsigned step)
{
	if (step / 30 % 2)
		for (unsigned j = 0; j < PUSH_SIGNAL_COUNT; j++)
			h->signals[j] *= 0.4;
}

/* Jobs of other sizes are other peers. */
static void two_jobs(struct push_health *h, unsigned node, unsigned step)
{
	if (node >= 24) {
		h->who.world_size = 64;
		for (unsigned j = 0; j < PUSH_SIGNAL_COUNT; j++)
			h->signals[j] *= 0.3;
	}
}

static void more_from_boot(struct push_health *h, unsigned node, unsigned step)
{
	if (node == 2)
		h->signals[PUSH_SIGNAL_LAUNCH_RATE] *= 1.3;
}

static void more_since(struct push_health *h, unsigned node, unsigned step)
{
	if (step >= 30)
		more_from_boot(h, node, step);
}

static void a_bit_more_since(struct push_health *h, unsigned node, unsigned step)
{
	if (step >= 30 && node == 2)
		h->signals[PUSH_SIGNAL_LAUNCH_RATE] *= 1.08;
}

/* A node that comes to launch more than its peers is seen to, however little if it is no chance, and called no straggler for it; one
 * that always did is one that has more to do than they. */
static void test_more_launches(void **state)
{
	static void (*const changes[])(struct push_health *, unsigned, unsigned) = {
		more_since, a_bit_more_since, more_from_boot};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		bool always = changes[i] == more_from_boot;
		struct node_view v;
		struct scene s;
		size_t cursor = 0, others = 0;

		scene_init(&s, 8, 0.005, 0.005, 5);
		for (unsigned step = 0; step < 40; step++)
			scene_step(&s, step, changes[i]);
		assert_int_equal(s.began, 0);
		assert_true(nodes_find(s.n, "c", "node-00002", &v));
		if (always)
			assert_true(v.more_launches == 0);
		else
			assert_true(i ? v.more_launches > 0.05 && v.more_launches < 0.1
				      : v.more_launches > 0.2 && v.more_launches < 0.4);
		while (nodes_next(s.n, "c", &cursor, &v))
			others += v.more_launches > 0;
		assert_int_equal(others, !always);
		nodes_free(s.n);
	}
}

static void more_since_the_third(struct push_health *h, unsigned node, unsigned step)
{
	if (step >= 2)
		a_bit_more_since(h, node, 30);
}

/* Where a node usually is takes two minutes to know: what changes before is compared with what was seen of it. */
static void test_more_launches_of_a_young_job(void **state)
{
	for (int always = 0; always < 2; always++) {
		struct node_view v;
		struct scene s;

		scene_init(&s, 8, 0.005, 0.005, 5);
		for (unsigned step = 0; step < 8; step++)
			scene_step(&s, step, always ? more_from_boot : more_since_the_third);
		assert_true(nodes_find(s.n, "c", "node-00002", &v));
		assert_true(always ? v.more_launches == 0 : v.more_launches > 0.05);
		nodes_free(s.n);
	}
}

static void test_what_all_do_is_no_fault(void **state)
{
	struct scene s;

	scene_init(&s, 16, 0.02, 0.02, 6);
	for (unsigned step = 0; step < 600; step++)
		scene_step(&s, step, all_at_once);
	assert_int_equal(s.began, 0);
	nodes_free(s.n);
	scene_init(&s, 32, 0.02, 0.02, 6);
	for (unsigned step = 0; step < 600; step++)
		scene_step(&s, step, two_jobs);
	assert_int_equal(s.began, 0);
	nodes_free(s.n);
}

/* A day of a few healthy nodes, or the same number of pushes of more. Returns alarms. */
static unsigned healthy_day(
	unsigned nodes, double noise, double differs, double memory, uint64_t seed)
{
	unsigned steps = 8640 * 8 / MAX(nodes, 8u);
	struct scene s;

	scene_init(&s, nodes, noise, differs, seed);
	s.memory = memory;
	for (unsigned step = 0; step < steps; step++)
		scene_step(&s, step, NULL);
	if (s.began)
		print_message("%u nodes, noise %g, memory %g, differing by %g: %u alarms\n", nodes,
			noise, memory, differs, s.began);
	nodes_free(s.n);
	return s.began;
}

static void test_healthy_clusters(void **state)
{
	const unsigned sizes[] = {3, 5, 8, 16, 64};
	const double noises[] = {0.01, 0.03, 0.10}, memories[] = {0, 0.85};
	unsigned alarms = 0, days = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(noises); i++)
		for (unsigned j = 0; j < 4; j++, days++) {
			unsigned size = sizes[i % ARRAY_SIZE(sizes)], begun;
			double of = noises[i / ARRAY_SIZE(sizes) % ARRAY_SIZE(noises)];

			begun = healthy_day(
				size, of, j & 1 ? 0.03 : 0, memories[j / 2], 17 * i + j);
			assert_true(begun <= 1);
			alarms += begun;
		}
	print_message("%u false alarms in %u days\n", alarms, days);
	assert_true(alarms * 4 <= days);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_cost_of_10000_nodes(void **state)
{
	size_t before = mallinfo2().uordblks;
	_cleanup_(nodes_freep) struct nodes *n = NULL;
	uint64_t seed = 1;
	int64_t now = INTERVAL;
	double pushes = 0, ticks = 0, worst = 0;
	struct threshold t;

	assert_int_equal(nodes_new(&nodes_defaults, &n), 0);
	for (unsigned round = 0; round < 5; round++, now += INTERVAL) {
		double at = seconds(), end;

		for (unsigned i = 0; i < 10000; i++) {
			struct push_health h = healthy_number(i * 7919 % 10000);

			h.score += 0.01 * random_normal(&seed);
			h.score = fmin(h.score, 1);
			assert_int_equal(take(n, h, now), NODES_NONE);
		}
		end = seconds();
		pushes += round ? end - at : 0;
		nodes_tick(n, now);
		at = seconds() - end;
		ticks += at;
		worst = fmax(worst, at);
	}
	assert_true(nodes_threshold(n, "c", "", &t));
	assert_int_equal(t.active, 10000);
	print_message("10,000 nodes: %.2f us a push, %.1f ms a tick (worst %.1f ms), %.1f MiB\n",
		pushes / 40000 * 1e6, ticks / 5 * 1e3, worst * 1e3,
		(double)(mallinfo2().uordblks - before) / 1048576);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_peers),
		cmocka_unit_test(test_found_by_score),
		cmocka_unit_test(test_dominant_compares_like_with_like),
		cmocka_unit_test(test_breakdown_point),
		cmocka_unit_test(test_idle_is_an_end),
		cmocka_unit_test(test_more_launches),
		cmocka_unit_test(test_more_launches_of_a_young_job),
		cmocka_unit_test(test_what_all_do_is_no_fault),
		cmocka_unit_test(test_healthy_clusters),
		cmocka_unit_test(test_cost_of_10000_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
