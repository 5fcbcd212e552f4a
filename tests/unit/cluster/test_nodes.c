/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodes.c - the table of nodes: what is refused and what not, silence, two agents, tokens, the
 * snapshot. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/macros.h"
#include "nodes_fixture.h"

static struct nodes *table(void)
{
	struct nodes *n;

	assert_int_equal(nodes_new(&nodes_defaults, &n), 0);
	return n;
}

/* One interval of pushes of nodes [first, last), then a tick. */
static void play(struct nodes *n, unsigned first, unsigned last, int64_t *now_ns)
{
	for (unsigned i = first; i < last; i++)
		assert_int_equal(take(n, healthy_number(i), *now_ns), NODES_NONE);
	nodes_tick(n, *now_ns);
	*now_ns += INTERVAL;
}

static void test_settings(void **state)
{
	struct nodes_settings s = nodes_defaults;
	struct nodes *n = NULL;

	s.k = 0.5;
	assert_int_equal(nodes_new(&s, &n), -EINVAL);
	s = nodes_defaults;
	s.ema_alpha = NAN;
	assert_int_equal(nodes_new(&s, &n), -EINVAL);
	assert_null(n);
}

static void spoil(struct push_health *h, unsigned how, int64_t now_ns)
{
	switch (how) {
	case 0: h->score = NAN; break;
	case 1: h->cpu = INFINITY; break;
	case 2: h->signals[PUSH_SIGNAL_STEP] = -INFINITY; break;
	case 3: h->score = 1.0001; break;
	case 4: h->memory = -0.1; break;
	case 5: h->signals[PUSH_SIGNAL_STEP] = -2; break;
	case 6: h->state = PUSH_STALE; break;
	case 7: h->state = (enum push_state)77; break;
	case 8: h->who.rank = -2; break;
	case 9: h->who.rank = 8, h->who.world_size = 8; break;
	case 10: h->who.world_size = 2000000; break;
	case 11: memset(h->who.node, 'x', sizeof(h->who.node)); break;
	case 12: memset(h->gpu_model, 'x', sizeof(h->gpu_model)); break;
	case 13: h->who.node[0] = 0; break;
	case 14: h->who.cluster[0] = 0; break;
	case 15: h->sent_ns = now_ns + 61 * SECOND; break;
	case 16: h->sent_ns = INT64_MAX; break;
	case 17: h->sent_ns = now_ns - 301 * SECOND; break;
	case 18: h->sent_ns = -1; break;
	case 19: h->sent_ns = INT64_MIN; break;
	}
}

static void test_bad_pushes(void **state)
{
	const enum nodes_refusal expected[] = {NODES_NOT_FINITE, NODES_NOT_FINITE, NODES_NOT_FINITE,
		NODES_OUT_OF_RANGE, NODES_OUT_OF_RANGE, NODES_OUT_OF_RANGE, NODES_OUT_OF_RANGE,
		NODES_OUT_OF_RANGE, NODES_OUT_OF_RANGE, NODES_OUT_OF_RANGE, NODES_OUT_OF_RANGE,
		NODES_OUT_OF_RANGE, NODES_OUT_OF_RANGE, NODES_NO_NAME, NODES_NO_NAME, NODES_FUTURE,
		NODES_FUTURE, NODES_PAST, NODES_PAST, NODES_PAST};
	_cleanup_(nodes_freep) struct nodes *n = table();
	int64_t now = 1000 * INTERVAL;
	uint64_t counts[NODES_REFUSAL_COUNT] = {0};
	struct node_view before, after;
	struct threshold t;
	size_t cursor = 0;

	play(n, 0, 5, &now);
	assert_true(nodes_find(n, "c", "node-00000", &before));
	for (unsigned how = 0; how < ARRAY_SIZE(expected); how++) {
		struct push_health h = healthy_number(0);

		h.sent_ns = now;
		spoil(&h, how, now);
		assert_int_equal(nodes_take(n, &h, 0, now, &t), expected[how]);
		assert_int_equal(nodes_refused(n, expected[how]), ++counts[expected[how]]);
		if (how != 11 && how != 12 && how != 14) /* it is told all the same */
			assert_true(t.quorum_met);
	}
	assert_true(nodes_find(n, "c", "node-00000", &after));
	assert_int_equal(after.last_ns, before.last_ns); /* none of them had an effect */
	assert_float_equal(after.last->score, 0.95, 0);
	for (unsigned i = 0; nodes_next(n, NULL, &cursor, &after); i++)
		assert_true(i < 5);
	/* at the edges of what is permitted */
	for (int64_t ahead = -300 * SECOND; ahead <= 60 * SECOND; ahead += 60 * SECOND) {
		struct push_health h = healthy_number(0);

		h.sent_ns = now + ahead;
		assert_int_equal(nodes_take(n, &h, 0, now, &t), NODES_NONE);
	}
}

static void test_words(void **state)
{
	assert_string_equal(nodes_refusal_id(NODES_TWO_AGENTS), "two_agents_one_name");
	assert_int_equal(nodes_refusal_status(NODES_TWO_AGENTS), 409);
	assert_int_equal(nodes_refusal_status(NODES_TOO_MANY_NODES), 429);
	assert_string_equal(nodes_reason_id(NODES_DRIFT_REASON), "drift");
}

static void test_ceiling(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	int64_t now = INTERVAL;

	play(n, 0, 10000, &now);
	assert_int_equal(take(n, healthy_number(10000), now), NODES_TOO_MANY_NODES);
	assert_int_equal(nodes_refused(n, NODES_TOO_MANY_NODES), 1);
	assert_int_equal(take(n, healthy_number(9999), now), NODES_NONE); /* those known go on */
	/* a name that is not heard any more makes room */
	now += 10 * INTERVAL;
	assert_int_equal(take(n, healthy_number(10000), now), NODES_NONE);
}

/* One token has taken all places: nodes of another one's come in at its cost, until both have as many. */
static void test_places_of_one_token(void **state)
{
	struct nodes_settings s = nodes_defaults;
	_cleanup_(nodes_freep) struct nodes *n = NULL;
	int64_t now = INTERVAL;
	struct threshold t;
	struct push_health h;
	unsigned taken = 0;

	s.nodes_max = 8;
	assert_int_equal(nodes_new(&s, &n), 0);
	for (unsigned i = 0; i < 9; i++) {
		h = healthy_number(i);
		h.sent_ns = now;
		assert_int_equal(
			nodes_take(n, &h, 77, now, &t), i < 8 ? NODES_NONE : NODES_TOO_MANY_NODES);
	}
	for (unsigned i = 100; i < 108; i++) {
		h = healthy_number(i);
		h.sent_ns = now;
		taken += nodes_take(n, &h, 78, now, &t) == NODES_NONE;
	}
	assert_int_equal(taken, 4);
	h = healthy_number(200);
	h.sent_ns = now;
	assert_int_equal(nodes_take(n, &h, 0, now, &t), NODES_TOO_MANY_NODES); /* nobody's */
}

static void test_tokens(void **state)
{
	struct nodes_settings s = nodes_defaults;
	_cleanup_(nodes_freep) struct nodes *n = NULL;
	int64_t now = INTERVAL;
	struct threshold t;

	s.nodes_per_token = 3;
	assert_int_equal(nodes_new(&s, &n), 0);
	for (unsigned i = 0; i < 5; i++) {
		struct push_health h = healthy_number(i);

		h.sent_ns = now;
		assert_int_equal(
			nodes_take(n, &h, 77, now, &t), i < 3 ? NODES_NONE : NODES_TOKEN_NODES);
		h.who.node[0] = 'x';
		assert_int_equal(
			nodes_take(n, &h, 0, now, &t), NODES_NONE); /* no token: no limit */
	}
	assert_int_equal(nodes_refused(n, NODES_TOKEN_NODES), 2);
	/* a token that is replaced gives its places back */
	for (unsigned i = 0; i < 3; i++) {
		struct push_health h = healthy_number(i);

		h.sent_ns = now;
		assert_int_equal(nodes_take(n, &h, 78, now, &t), NODES_NONE);
		h = healthy_number(i + 3);
		h.sent_ns = now;
		assert_int_equal(nodes_take(n, &h, 77, now, &t), NODES_NONE);
		assert_int_equal(
			nodes_take(n, &h, 78, now, &t), i < 2 ? NODES_NONE : NODES_TOKEN_NODES);
		if (i < 2) {
			assert_int_equal(nodes_take(n, &h, 77, now, &t), NODES_NONE);
		}
	}
}

static struct push_health agent(uint64_t boot, double score)
{
	struct push_health h = healthy("twice");

	h.who.boot = boot;
	h.score = score;
	return h;
}

static void test_two_agents(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	struct node_view v;
	int64_t now = INTERVAL;

	for (unsigned i = 0; i < 20; i++, now += INTERVAL) {
		assert_int_equal(take(n, agent(1, 0.95), now), NODES_NONE);
		assert_int_equal(take(n, agent(2, 0.1), now + INTERVAL / 2), NODES_TWO_AGENTS);
	}
	assert_int_equal(nodes_refused(n, NODES_TWO_AGENTS), 20);
	assert_true(nodes_find(n, "c", "twice", &v));
	assert_float_equal(v.last->score, 0.95, 0);
	/* when the first is silent, the other speaks */
	now += INTERVAL;
	assert_int_equal(take(n, agent(2, 0.1), now), NODES_NONE);
	/* the first comes back: now it is known who was first */
	assert_int_equal(take(n, agent(1, 0.95), now + SECOND), NODES_NONE);
	assert_int_equal(take(n, agent(2, 0.1), now + 4 * INTERVAL), NODES_TWO_AGENTS);
	assert_int_equal(take(n, agent(2, 0.1), now + 6 * INTERVAL), NODES_NONE);
}

static void test_slow_agents_with_one_name(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	int64_t now = INTERVAL;
	unsigned second = 0;

	/* both push every three intervals: each would look silent to a clock of one interval */
	for (unsigned i = 0; i < 20; i++, now += 3 * INTERVAL) {
		assert_int_equal(take(n, agent(1, 0.95), now), NODES_NONE);
		second += take(n, agent(2, 0.1), now + 3 * INTERVAL / 2) == NODES_NONE;
	}
	assert_true(second <= 1);
}

static void test_restart_of_an_agent(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	struct push_health h = agent(2, 0.9);

	assert_int_equal(take(n, agent(1, 0.9), INTERVAL), NODES_NONE);
	assert_int_equal(take(n, h, 2 * INTERVAL + INTERVAL / 2), NODES_NONE);
	assert_int_equal(take(n, h, 3 * INTERVAL + INTERVAL / 2), NODES_NONE);
	h.who.boot = 0; /* an agent that does not tell */
	assert_int_equal(take(n, h, 3 * INTERVAL + INTERVAL / 2 + 1), NODES_TWO_AGENTS);
}

static unsigned changes(struct nodes *n, bool began, enum nodes_reason reason)
{
	struct nodes_change c;
	unsigned count = 0;

	while (nodes_change(n, &c)) {
		assert_int_equal(c.began, began);
		assert_int_equal(c.node.reason, reason);
		assert_int_equal(c.node.straggler, began);
		count++;
	}
	return count;
}

static void test_silent(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	int64_t now = INTERVAL;
	struct threshold t;
	struct node_view v;

	for (unsigned i = 0; i < 5; i++)
		play(n, 0, 8, &now);
	for (unsigned i = 0; i < 5; i++) {
		play(n, 0, 7, &now);
		assert_int_equal(changes(n, true, NODES_SILENT_REASON), 0);
	}
	play(n, 0, 7, &now);
	assert_int_equal(changes(n, true, NODES_SILENT_REASON), 1);
	assert_true(nodes_find(n, "c", "node-00007", &v));
	assert_true(v.straggler && v.reason == NODES_SILENT_REASON && v.episode == 1);
	assert_true(nodes_threshold(n, "c", "", &t));
	assert_int_equal(t.active, 7);
	assert_int_equal(t.known, 8);
	play(n, 0, 8, &now); /* it is back */
	assert_int_equal(changes(n, false, NODES_SILENT_REASON), 1);
	/* silent for an hour: forgotten */
	for (unsigned i = 0; i < 363; i++)
		play(n, 0, 7, &now);
	assert_false(nodes_find(n, "c", "node-00007", &v));
	while (now > 0) {
		struct nodes_change c;

		if (!nodes_change(n, &c))
			break;
		assert_string_equal(c.node.last->who.node, "node-00007");
		assert_int_equal(c.node.episode, 2);
	}
}

static void test_goodbye_is_not_silence(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	int64_t now = INTERVAL;
	struct push_health idle = healthy_number(7);
	struct node_view v;

	play(n, 0, 8, &now);
	idle.state = PUSH_IDLE;
	assert_int_equal(take(n, idle, now), NODES_NONE);
	for (unsigned i = 0; i < 10; i++)
		play(n, 0, 7, &now);
	assert_int_equal(changes(n, true, NODES_SILENT_REASON), 0);
	assert_false(nodes_find(n, "c", "node-00007", &v));
}

static void test_nobody_is_silent_where_most_are(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	int64_t now = INTERVAL;

	for (unsigned i = 0; i < 5; i++)
		play(n, 0, 64, &now);
	for (unsigned i = 0; i < 10; i++) /* 40 of 64 are behind a switch that is off */
		play(n, 0, 24, &now);
	for (unsigned i = 0; i < 5; i++)
		play(n, 0, 64, &now);
	for (unsigned i = 0; i < 30; i++, now += INTERVAL) /* nothing reaches the service */
		nodes_tick(n, now);
	play(n, 0, 40, &now); /* and then the first ones */
	play(n, 0, 64, &now);
	now += 30 * INTERVAL; /* the service itself is stopped */
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(take(n, healthy_number(i), now), NODES_NONE);
	nodes_tick(n, now);
	play(n, 0, 64, &now);
	assert_int_equal(changes(n, true, NODES_SILENT_REASON), 0);
}

static void test_only_active_ones_count(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	struct threshold t;

	for (unsigned i = 0; i < 9; i++) {
		struct push_health h = healthy_number(i);

		h.state = i < 4 ? PUSH_ACTIVE : i < 7 ? PUSH_CALIBRATING : PUSH_IDLE;
		assert_int_equal(take(n, h, INTERVAL), NODES_NONE);
	}
	nodes_tick(n, INTERVAL);
	assert_true(nodes_threshold(n, "c", "", &t));
	assert_int_equal(t.active, 4);
	assert_int_equal(t.known, 9);
	assert_false(t.quorum_met);
	assert_float_equal(t.value, 0, 0);
	assert_true(t.coverage_low);
}

/* A cgroup for each pod, as where the agent sees the host's: nodes are compared by workload type. */
static void test_cohorts(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	const char *cluster, *cohort;
	struct threshold t;
	unsigned own = 0, shared = 0, workload = 0, all = 0;
	size_t cursor = 0;

	for (unsigned i = 0; i < 24; i++) {
		struct push_health h = healthy_number(i);

		if (i < 16)
			snprintf(h.cohort, sizeof(h.cohort), "%016x", i < 8 ? i : 0xabc);
		h.score = i < 16 ? 0.95 : 0.60;
		if (i >= 16)
			strcpy(h.workload, "inference");
		assert_int_equal(take(n, h, INTERVAL), NODES_NONE);
	}
	nodes_tick(n, INTERVAL);
	while (nodes_cohort_next(n, &cursor, &cluster, &cohort, &t)) {
		assert_string_equal(cluster, "c");
		all += !cohort[0];
		workload += strncmp(cohort, "workload:", 9) == 0;
		shared += strcmp(cohort, "0000000000000abc") == 0;
		own += strncmp(cohort, "000000000000000", 15) == 0;
		if (strncmp(cohort, "000000000000000", 15) == 0)
			assert_false(t.quorum_met);
	}
	assert_int_equal(all, 1);
	assert_int_equal(workload, 2);
	assert_int_equal(shared, 1);
	assert_int_equal(own, 8);
	for (unsigned i = 0; i < 24; i += 8) {
		struct push_health h = healthy_number(i);
		struct node_view v;

		assert_true(nodes_find(n, "c", h.who.node, &v));
		assert_float_equal(v.threshold, i < 16 ? 0.915 : 0.57, 0.015);
	}
	assert_true(nodes_threshold(n, "c", "workload:inference", &t));
	assert_float_equal(t.value, 0.57, 0.015);
	assert_false(nodes_threshold(n, "c", "no such", &t));
	assert_false(nodes_threshold(n, "other", "", &t));
}

static void test_walk_is_in_order(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	const char *names[] = {"b", "z", "a", "m"}, *clusters[] = {"two", "one"};
	struct node_view v;
	char last[512] = "";
	size_t cursor = 0, count = 0;

	for (size_t i = 0; i < 8; i++) {
		struct push_health h = healthy(names[i / 2]);

		strcpy(h.who.cluster, clusters[i % 2]);
		assert_int_equal(take(n, h, INTERVAL), NODES_NONE);
	}
	for (; nodes_next(n, NULL, &cursor, &v); count++) {
		char key[512];

		snprintf(key, sizeof(key), "%s/%s", v.last->who.cluster, v.last->who.node);
		assert_true(strcmp(last, key) < 0);
		strcpy(last, key);
	}
	assert_int_equal(count, 8);
	for (cursor = count = 0; nodes_next(n, "two", &cursor, &v); count++)
		assert_string_equal(v.last->who.cluster, "two");
	assert_int_equal(count, 4);
	cursor = 0;
	assert_false(nodes_next(n, "three", &cursor, &v));
}

static void test_quorum_after_a_restart(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table();
	int64_t now = 1000 * INTERVAL, start = now;
	struct threshold t;

	/* 64 agents, each somewhere in the interval; ticks every 250 ms */
	for (; now < start + 12 * SECOND; now += SECOND / 4) {
		for (unsigned i = 0; i < 64; i++)
			if ((now - start) % INTERVAL / (SECOND / 4) == i % 40)
				take(n, healthy_number(i), now);
		nodes_tick(n, now);
		if (nodes_threshold(n, "c", "", &t) && t.quorum_met)
			break;
	}
	print_message("quorum %.2f s after a restart\n", (double)(now - start) / 1e9);
	assert_true(t.quorum_met && now - start <= 12 * SECOND);
}

static void test_snapshot(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table(), *m = table();
	_cleanup_buf_ struct buf b = BUF_INIT(64u << 20);
	int64_t now = 1000 * INTERVAL;
	struct threshold before, t;
	struct node_view v;

	for (unsigned i = 0; i < 5; i++)
		play(n, 0, 8, &now);
	for (unsigned i = 0; i < 7; i++)
		play(n, 0, 7, &now);
	assert_true(nodes_threshold(n, "c", "", &before));
	assert_int_equal(nodes_save(n, now, &b), 0);
	now += 30 * SECOND;
	assert_int_equal(nodes_restore(m, b.data, b.len, now), 0);
	assert_true(nodes_threshold(m, "c", "", &t)); /* at once, before any push or tick */
	assert_true(t.quorum_met);
	assert_float_equal(t.value, before.value, 0);
	assert_true(nodes_find(m, "c", "node-00007", &v));
	assert_true(v.straggler && v.reason == NODES_SILENT_REASON && v.episode == 1);
	nodes_tick(m, now);
	play(m, 0, 7, &now);
	assert_true(nodes_threshold(m, "c", "", &t));
	assert_true(t.quorum_met && t.active == 7);
	assert_int_equal(
		changes(m, true, NODES_SILENT_REASON), 0); /* the episode is the same one */
	assert_int_equal(nodes_restore(m, b.data, b.len, now), -EEXIST);
}

static void test_bad_snapshots(void **state)
{
	_cleanup_(nodes_freep) struct nodes *n = table(), *m = table();
	_cleanup_buf_ struct buf b = BUF_INIT(64u << 20);
	int64_t now = 1000 * INTERVAL;
	struct node_view v;
	size_t cursor = 0;
	uint64_t sum;

	play(n, 0, 3, &now);
	assert_int_equal(nodes_save(n, now, &b), 0);
	for (size_t i = 0; i < b.len; i++) { /* every byte counts */
		b.data[i] ^= 0x41;
		assert_int_equal(nodes_restore(m, b.data, b.len, now), -EBADMSG);
		b.data[i] ^= 0x41;
	}
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(nodes_restore(m, b.data, len, now), -EBADMSG);
	assert_int_equal(nodes_restore(m, b.data, b.len, now - 1), -ESTALE);
	assert_int_equal(nodes_restore(m, b.data, b.len, now + 601 * SECOND), -ESTALE);
	/* with a checksum that is right: a score that is none, in the second node */
	for (size_t i = 0; i + 8 < b.len; i++) {
		double score;

		memcpy(&score, b.data + i, sizeof(score));
		if (score != 0.95)
			continue;
		score = NAN;
		memcpy(b.data + i, &score, sizeof(score));
		break;
	}
	sum = hash_bytes(b.data, b.len - sizeof(sum));
	memcpy(b.data + b.len - sizeof(sum), &sum, sizeof(sum));
	assert_int_equal(nodes_restore(m, b.data, b.len, now), -EBADMSG);
	assert_false(nodes_next(m, NULL, &cursor, &v)); /* nothing of it was taken */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_bad_pushes),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_places_of_one_token),
		cmocka_unit_test(test_two_agents),
		cmocka_unit_test(test_slow_agents_with_one_name),
		cmocka_unit_test(test_restart_of_an_agent),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_goodbye_is_not_silence),
		cmocka_unit_test(test_nobody_is_silent_where_most_are),
		cmocka_unit_test(test_only_active_ones_count),
		cmocka_unit_test(test_cohorts),
		cmocka_unit_test(test_walk_is_in_order),
		cmocka_unit_test(test_quorum_after_a_restart),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_bad_snapshots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
