/* SPDX-License-Identifier: Apache-2.0 */
/* test_fleet_share.c - one cluster's names and episodes, however many, keep no other from being told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/detect/fleet.h"

#define SECOND   ((int64_t)NS_PER_S)
#define START    (1700000000 * SECOND)
#define EPISODES 4096 /* that last at once */

static struct fleet *fleet_made(uint32_t clusters)
{
	struct fleet_settings s = fleet_defaults;
	struct fleet *f = NULL;

	s.nodes = nodes_defaults;
	s.clusters_max = clusters;
	assert_int_equal(fleet_new(&s, &f), 0);
	return f;
}

static struct push_who who_of(const char *cluster, unsigned node)
{
	struct push_who who = {.rank = -1, .boot = 1};

	snprintf(who.cluster, sizeof(who.cluster), "%s", cluster);
	snprintf(who.node, sizeof(who.node), "n%u", node);
	return who;
}

/* A node that is known, and calls itself slow. */
static void is_slow(struct fleet *f, const char *cluster, unsigned node, int64_t now_ns)
{
	static const struct push_straggler own = {
		.dominant = "compute", .score = 0.6, .threshold = 0.9};
	struct push_health h = {.who = who_of(cluster, node),
		.sent_ns = now_ns,
		.state = PUSH_ACTIVE,
		.score = 0.9,
		.throughput = 1,
		.compute = 1,
		.memory = 1,
		.cpu = 1};
	struct threshold t;

	for (int i = 0; i < PUSH_SIGNAL_COUNT; i++)
		h.signals[i] = -1;
	assert_int_equal(fleet_take_health(f, &h, 0, now_ns, &t), NODES_NONE);
	assert_int_equal(fleet_take_straggler(f, &h.who, &own, now_ns), 0);
}

static size_t lasting(const struct fleet *f, const char *cluster)
{
	struct fleet_episode e;
	size_t cursor = 0, n = 0;

	while (fleet_episode_next(f, cluster, &cursor, &e))
		n += !e.until_ns;
	return n;
}

static void test_many_episodes_of_one_cluster(void **state)
{
	struct fleet *f = fleet_made(256);

	for (unsigned i = 0; i < EPISODES + 100; i++)
		is_slow(f, "flood", i, START);
	assert_int_equal(lasting(f, "flood"), EPISODES);
	assert_int_equal(fleet_stats(f).notices_lost >= 100, 1);
	is_slow(f, "quiet", 1, START);
	assert_int_equal(lasting(f, "quiet"), 1);
	assert_int_equal(lasting(f, "flood"), EPISODES - 1);
	/* and the flood does not get it back */
	is_slow(f, "flood", 9000, START);
	assert_int_equal(lasting(f, "quiet"), 1);
	assert_int_equal(lasting(f, "flood"), EPISODES - 1);
	fleet_tick(f, START + SECOND);
	assert_int_equal(lasting(f, "quiet"), 1);
	fleet_free(f);
}

static bool is_known(const struct fleet *f, const char *cluster)
{
	return fleet_calls(f, cluster) != NULL;
}

/* A cluster for each job: the 257th is watched as the first was. */
static void test_clusters_that_are_gone_make_room(void **state)
{
	struct fleet *f = fleet_made(4);
	char name[16];

	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		is_slow(f, name, 1, START + i * SECOND);
	}
	is_slow(f, "job-4", 1, START + 60 * SECOND);
	assert_false(is_known(f, "job-4")); /* all others have just said something */
	assert_int_equal(fleet_stats(f).clusters_refused, 1);
	is_slow(f, "job-0", 1, START + 300 * SECOND);
	is_slow(f, "job-4", 1, START + 700 * SECOND);
	assert_true(is_known(f, "job-4"));
	assert_true(is_known(f, "job-0"));
	assert_false(is_known(f, "job-1")); /* the one that was quiet for longest */
	assert_int_equal(lasting(f, "job-1"), 0);
	assert_true(is_known(f, "job-2"));
	fleet_tick(f, START + 701 * SECOND);
	fleet_free(f);
}

static size_t ended(const struct fleet *f, const char *cluster)
{
	struct fleet_episode e;
	size_t cursor = 0, n = 0;

	while (fleet_episode_next(f, cluster, &cursor, &e))
		n += e.until_ns != 0;
	return n;
}

static void is_well(struct fleet *f, const char *cluster, unsigned node, int64_t now_ns)
{
	const struct push_who who = who_of(cluster, node);
	const struct push_straggler own = {.resolved = true};

	assert_int_equal(fleet_take_straggler(f, &who, &own, now_ns), 0);
}

/* Of those that ended the cluster with the most loses its oldest. */
static void test_many_that_ended_of_one_cluster(void **state)
{
	struct fleet *f = fleet_made(256);
	struct fleet_episode e;
	size_t cursor = 0;

	for (unsigned i = 0; i < 2; i++) {
		is_slow(f, "quiet", i, START);
		is_well(f, "quiet", i, START + SECOND);
	}
	for (unsigned i = 0; i < 1500; i++) {
		is_slow(f, i % 2 ? "flood" : "other", i, START + 2 * SECOND);
		is_well(f, i % 2 ? "flood" : "other", i, START + 3 * SECOND);
	}
	assert_int_equal(ended(f, "quiet"), 2);
	assert_int_equal(ended(f, "flood"), 499);
	assert_int_equal(ended(f, "other"), 499);
	assert_true(fleet_episode_next(f, "flood", &cursor, &e));
	assert_string_equal(e.node, "n1499"); /* the newest first */
	fleet_free(f);
}

static void health_of(struct fleet *f, const char *cluster, uint64_t token, int64_t now_ns)
{
	struct push_health h = {.who = who_of(cluster, 1),
		.sent_ns = now_ns,
		.state = PUSH_ACTIVE,
		.score = 0.9,
		.throughput = 1,
		.compute = 1,
		.memory = 1,
		.cpu = 1};
	struct threshold t;

	for (int i = 0; i < PUSH_SIGNAL_COUNT; i++)
		h.signals[i] = -1;
	assert_int_equal(fleet_take_health(f, &h, token, now_ns, &t), NODES_NONE);
}

/* Names of clusters that one token makes up keep out nobody but itself. */
static void test_clusters_of_one_token(void **state)
{
	struct fleet *f = fleet_made(4);
	static const char *const made_up[] = {"a", "b", "c", "d"};

	for (int i = 0; i < 4; i++)
		health_of(f, made_up[i], 66, START + i * SECOND);
	health_of(f, "e", 66, START + 5 * SECOND);
	assert_false(is_known(f, "e")); /* its own: as without tokens */
	health_of(f, "mine", 7, START + 5 * SECOND);
	assert_true(is_known(f, "mine"));
	assert_false(is_known(f, "a"));
	health_of(f, "mine too", 7, START + 6 * SECOND);
	assert_true(is_known(f, "mine too"));
	assert_false(is_known(f, "b"));
	health_of(f, "one more", 7, START + 7 * SECOND);
	assert_false(is_known(f, "one more")); /* two each */
	health_of(f, "a", 66, START + 7 * SECOND);
	assert_false(is_known(f, "a")); /* and it does not get them back */
	assert_true(is_known(f, "c") && is_known(f, "d") && is_known(f, "mine"));
	fleet_tick(f, START + 8 * SECOND);
	fleet_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_episodes_of_one_cluster),
		cmocka_unit_test(test_clusters_that_are_gone_make_room),
		cmocka_unit_test(test_many_that_ended_of_one_cluster),
		cmocka_unit_test(test_clusters_of_one_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
