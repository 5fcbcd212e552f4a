/* SPDX-License-Identifier: Apache-2.0 */
/* test_fleet_json.c - the cluster's answers and metrics, from a core that has been told of eight ranks
 * on two nodes, of which rank 5 is late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/answer/fleet_json.h"
#include "json/tree.h"
#include "prometheus/prometheus.h"
#include "wire/ids.h"

#define RANKS   8
#define STEPS   40
#define STEP_NS (100 * (int64_t)NS_PER_MS)
#define COMM    0xabcdef0123456789ULL
#define HOSTILE "node\"\n\x1b<b>\xff"

static const int64_t start = 1700000000 * (int64_t)NS_PER_S;
static int64_t now;

static void tell_health(struct fleet *f, const char *node, double score)
{
	struct push_health h = {.who = {.cluster = "a", .rank = -1, .world_size = RANKS},
		.sent_ns = now,
		.state = PUSH_ACTIVE,
		.score = score,
		.throughput = 1,
		.compute = 1,
		.memory = 1,
		.cpu = 1,
		.gpu_count = 4};
	struct threshold t;

	for (int i = 0; i < PUSH_SIGNAL_COUNT; i++)
		h.signals[i] = -1;
	snprintf(h.who.node, sizeof(h.who.node), "%s", node);
	assert_int_equal(fleet_take_health(f, &h, 0, now, &t), NODES_NONE);
}

/* The calls of step @step of the four ranks of a node; rank 5 comes 80 ms after the others. */
static void tell_calls(struct fleet *f, const char *node, int first, int step)
{
	struct push_call calls[RANKS / 2];
	struct push_calls b = {.who = {.cluster = "a", .rank = -1, .boot = 1},
		.batch = (uint64_t)step + 1,
		.sent_ns = now,
		.items = calls,
		.count = RANKS / 2};
	struct calls_taken taken;

	snprintf(b.who.node, sizeof(b.who.node), "%s", node);
	for (int i = 0; i < RANKS / 2; i++) {
		int rank = first + i;
		int64_t enter = now - STEP_NS + (rank == 5 ? 80 * (int64_t)NS_PER_MS : rank * 1000);

		calls[i] = (struct push_call){.comm = COMM,
			.seq = (uint64_t)step + 1,
			.bytes = 1 << 20,
			.enter_ns = enter,
			.leave_ns = now - STEP_NS / 10,
			.wait_ns = UINT64_MAX,
			.rank = rank,
			.nranks = RANKS,
			.peer = -1,
			.world_rank = rank,
			.pid = 100 + (uint32_t)rank,
			.op = NCCL_ALL_REDUCE,
			.datatype = 7};
	}
	assert_int_equal(fleet_take_calls(f, &b, now, &taken), 0);
}

static void tell_report(struct fleet *f)
{
	struct push_report r = {.who = {.cluster = "a", .node = HOSTILE},
		.sent_ns = now,
		.pid = 105,
		.world_rank = 5,
		.doing = PUSH_DOING_BLOCKED,
		.step_ns = 180 * NS_PER_MS,
		.ordinary_ns = 100 * NS_PER_MS,
		.line = "disk",
		.line_ns = 80 * NS_PER_MS,
		.cause = "the disk is busy",
		.confidence = 0.9};

	assert_int_equal(fleet_take_report(f, &r, now), 0);
}

static struct fleet *fleet_told(void)
{
	struct fleet_settings s = fleet_defaults;
	struct fleet *f;

	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	now = start;
	assert_int_equal(fleet_new(&s, &f), 0);
	for (int step = 0; step < STEPS; step++) {
		now += STEP_NS;
		if (step % 10 == 0) {
			tell_health(f, "node-0", 0.9);
			tell_health(f, HOSTILE, 0.8);
		}
		tell_calls(f, "node-0", 0, step);
		tell_calls(f, HOSTILE, RANKS / 2, step);
		fleet_tick(f, now);
	}
	tell_report(f);
	return f;
}

static json_t *ask(struct fleet *f,
	int (*answer)(struct json_writer *, struct fleet *, const struct fleet_json_query *),
	struct fleet_json_query q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct json_writer w = json_writer_to_buf(&b);
	json_t *tree;

	q.now_ns = now;
	assert_int_equal(answer(&w, f, &q), 0);
	assert_int_equal(json_finish(&w), 0);
	assert_int_equal(json_tree_read(buf_str(&b), b.len, 0, &tree, NULL), 0);
	return tree;
}

static json_t *list(json_t *tree, const char *key)
{
	json_t *a = json_object_get(tree, key);

	assert_true(json_is_array(a));
	return a;
}

static double number(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	assert_true(json_is_number(v));
	return json_number_value(v);
}

/* The contract of agents that poll: these two first, and 0 and false from a service that has just
 * begun. */
static void test_cold_threshold(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);
	struct fleet_json_query q = {.cluster = "nobody"};
	struct fleet_settings s = fleet_defaults;
	struct fleet *f;

	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	assert_int_equal(fleet_new(&s, &f), 0);
	assert_int_equal(fleet_json_threshold(&w, f, &q), 0);
	assert_int_equal(json_finish(&w), 0);
	assert_ptr_equal(
		strstr(buf_str(&b), "{\"threshold\":0,\"quorum_met\":false,"), buf_str(&b));
	fleet_free(f);
}

static void test_nodes(void **state)
{
	struct fleet *f = *state;
	json_t *tree = ask(f, fleet_json_nodes, (struct fleet_json_query){0}), *rows, *row;
	bool hostile = false;
	size_t i;

	rows = list(tree, "nodes");
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(number(tree, "total"), 2);
	json_array_foreach (rows, i, row) {
		const char *node = json_string_value(json_object_get(row, "node"));

		assert_string_equal(json_string_value(json_object_get(row, "state")), "active");
		hostile |= node && !strcmp(node, "node\"\n\x1b<b>\xef\xbf\xbd");
	}
	assert_true(hostile);
	json_decref(tree);
	tree = ask(f, fleet_json_nodes, (struct fleet_json_query){.limit = 1});
	assert_int_equal(json_array_size(list(tree, "nodes")), 1);
	assert_int_equal(number(tree, "total"), 2);
	json_decref(tree);
	tree = ask(f, fleet_json_nodes, (struct fleet_json_query){.cluster = "another"});
	assert_int_equal(json_array_size(list(tree, "nodes")), 0);
	json_decref(tree);
}

static void test_ranks(void **state)
{
	struct fleet *f = *state;
	json_t *tree = ask(f, fleet_json_ranks, (struct fleet_json_query){0}), *row;
	size_t i;

	assert_int_equal(json_array_size(list(tree, "ranks")), RANKS);
	json_array_foreach (list(tree, "ranks"), i, row) {
		if (number(row, "rank") != 5) {
			assert_true(number(row, "last_count") < STEPS / 2);
			continue;
		}
		assert_true(number(row, "last_count") > STEPS / 2);
		assert_true(number(row, "lag_p50_ns") > 70e6 && number(row, "lag_p50_ns") < 90e6);
		assert_int_equal(i, 0); /* the latest is first */
		assert_null(json_object_get(row, "account"));
	}
	json_decref(tree);
	tree = ask(f, fleet_json_ranks, (struct fleet_json_query){.limit = 1});
	assert_int_equal(number(json_array_get(list(tree, "ranks"), 0), "rank"), 5);
	assert_int_equal(number(tree, "total"), RANKS);
	json_decref(tree);
}

static void test_account(void **state)
{
	struct fleet *f = *state;
	json_t *tree = ask(
		       f, fleet_json_ranks, (struct fleet_json_query){.rank = 5, .has_rank = true}),
	       *account;

	assert_int_equal(json_array_size(list(tree, "ranks")), 1);
	account = json_object_get(json_array_get(list(tree, "ranks"), 0), "account");
	assert_string_equal(json_string_value(json_object_get(account, "doing")), "blocked");
	assert_string_equal(json_string_value(json_object_get(account, "line")), "disk");
	assert_int_equal(number(account, "line_ns"), 80 * NS_PER_MS);
	assert_true(json_is_null(json_object_get(account, "fix")));
	json_decref(tree);
	tree = ask(f, fleet_json_ranks, (struct fleet_json_query){.node = "node-0"});
	assert_int_equal(json_array_size(list(tree, "ranks")), RANKS / 2);
	account = json_object_get(json_array_get(list(tree, "ranks"), 0), "account");
	assert_true(json_is_null(account)); /* its agent has said nothing */
	json_decref(tree);
}

static void test_jobs(void **state)
{
	struct fleet *f = *state;
	json_t *tree = ask(f, fleet_json_jobs, (struct fleet_json_query){0}), *job, *node;

	assert_int_equal(json_array_size(list(tree, "jobs")), 1);
	job = json_array_get(list(tree, "jobs"), 0);
	assert_string_equal(json_string_value(json_object_get(job, "comm")), "abcdef0123456789");
	assert_int_equal(number(job, "ranks"), RANKS);
	assert_int_equal(json_array_size(list(job, "nodes")), 2);
	node = json_array_get(list(job, "nodes"), 1); /* by name */
	assert_string_equal(json_string_value(json_object_get(node, "node")), "node-0");
	assert_int_equal(json_array_size(list(node, "ranks")), RANKS / 2);
	assert_int_equal(json_integer_value(json_array_get(list(node, "ranks"), 3)), 3);
	json_decref(tree);
}

static void test_collectives(void **state)
{
	struct fleet *f = *state;
	struct fleet_json_query q = {.comm = COMM, .has_comm = true, .seq = 20, .has_seq = true};
	json_t *tree = ask(f, fleet_json_collectives, (struct fleet_json_query){.limit = 5}), *row;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);

	assert_int_equal(json_array_size(list(tree, "collectives")), 5);
	row = json_array_get(list(tree, "collectives"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "comm")), "abcdef0123456789");
	assert_int_equal(number(json_object_get(row, "last"), "rank"), 5);
	json_decref(tree);
	tree = ask(f, fleet_json_collectives, q);
	assert_int_equal(json_array_size(list(tree, "after_median_ns")), RANKS);
	assert_true(json_number_value(json_array_get(list(tree, "after_median_ns"), 5)) > 70e6);
	json_decref(tree);
	q.seq = 1 << 20;
	assert_int_equal(fleet_json_collectives(&w, f, &q), -ENOENT);
	assert_int_equal(b.len, 0);
}

static void test_heatmap(void **state)
{
	struct fleet *f = *state;
	json_t *tree = ask(f, fleet_json_heatmap, (struct fleet_json_query){0}), *column;
	size_t i;

	assert_int_equal(number(tree, "nranks"), RANKS);
	assert_int_equal(json_array_size(list(tree, "communicators")), 1);
	json_array_foreach (list(tree, "collectives"), i, column) {
		const char *cells = json_string_value(json_object_get(column, "cells"));

		assert_int_equal(strlen(cells), RANKS);
		for (int rank = 0; rank < RANKS; rank++) /* 80 ms is 2 * log2(80001) = 32: 'W' */
			assert_true(rank == 5 ? cells[rank] >= 'V' : cells[rank] <= '9');
	}
	assert_true(i > STEPS / 2);
	assert_int_equal(json_array_size(list(tree, "ranks")), RANKS);
	assert_int_equal(json_integer_value(json_array_get(list(tree, "ranks"), 5)), 5);
	assert_int_equal(json_array_size(list(tree, "places")), 2);
	assert_int_equal(number(json_array_get(list(tree, "places"), 1), "from"), RANKS / 2);
	json_decref(tree);
	tree = ask(f, fleet_json_heatmap,
		(struct fleet_json_query){.after = STEPS - 5, .has_after = true});
	assert_in_range(json_array_size(list(tree, "collectives")), 1, 5);
	json_decref(tree);
	tree = ask(f, fleet_json_heatmap, (struct fleet_json_query){.cluster = "another"});
	assert_int_equal(json_object_size(tree), 0);
	json_decref(tree);
}

static void test_blame(void **state)
{
	struct fleet *f = *state;
	json_t *tree = ask(f, fleet_json_blame, (struct fleet_json_query){0}), *worst;

	assert_true(json_array_size(list(tree, "episodes")) >= 1);
	worst = json_array_get(list(tree, "episodes"), 0);
	assert_string_equal(json_string_value(json_object_get(worst, "problem")), "straggler");
	assert_int_equal(number(worst, "rank"), 5);
	assert_string_equal(json_string_value(json_object_get(tree, "text")),
		json_string_value(json_object_get(worst, "text")));
	assert_int_equal(number(json_object_get(tree, "examined"), "ranks"), RANKS);
	/* a GPU of unknown model is unpriced, never free */
	assert_true(json_is_null(json_object_get(worst, "cost_per_hour")));
	assert_true(json_is_false(json_object_get(worst, "priced")));
	assert_true(number(worst, "lost_gpu_seconds") > 0);
	json_decref(tree);
	tree = ask(f, fleet_json_blame, (struct fleet_json_query){.cluster = "another"});
	assert_true(json_is_null(json_object_get(tree, "text")));
	assert_int_equal(json_array_size(list(tree, "episodes")), 0);
	json_decref(tree);
}

/* Over: nobody is named, and the one that was is still said. */
static void test_blame_afterwards(void **state)
{
	struct fleet *f = fleet_told();
	json_t *tree = ask(f, fleet_json_blame, (struct fleet_json_query){0});

	assert_true(json_is_null(json_object_get(tree, "last")));
	json_decref(tree);
	for (int64_t end = now + 3600 * (int64_t)NS_PER_S; now < end; now += NS_PER_S)
		fleet_tick(f, now);
	tree = ask(f, fleet_json_blame, (struct fleet_json_query){0});
	assert_true(json_is_null(json_object_get(tree, "text")));
	assert_int_equal(number(json_object_get(tree, "last"), "rank"), 5);
	/* nobody pushed any more: it was late for as long as there were steps, and cost no more than that */
	assert_in_range(number(json_object_get(tree, "last"), "lasts_ns"), STEPS * STEP_NS / 2,
		STEPS * STEP_NS);
	assert_true(number(json_object_get(tree, "last"), "lost_gpu_seconds") <=
		    STEPS * 0.08 * (RANKS - 1));
	assert_true(number(json_object_get(tree, "last"), "lost_gpu_seconds") >=
		    STEPS * 0.08 * (RANKS - 1) / 2);
	json_decref(tree);
	tree = ask(f, fleet_json_blame, (struct fleet_json_query){.cluster = "another"});
	assert_true(json_is_null(json_object_get(tree, "last")));
	json_decref(tree);
	fleet_freep(&f);
}

static void test_others(void **state)
{
	struct fleet *f = *state;
	static const struct {
		int (*answer)(
			struct json_writer *, struct fleet *, const struct fleet_json_query *);
		const char *key;
		size_t count;
	} rows[] = {{fleet_json_clusters, "clusters", 1}, {fleet_json_cost, "clusters", 1},
		{fleet_json_hangs, "hangs", 0}, {fleet_json_mismatches, "mismatches", 0}};
	json_t *tree;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		tree = ask(f, rows[i].answer, (struct fleet_json_query){0});
		assert_int_equal(json_array_size(list(tree, rows[i].key)), rows[i].count);
		json_decref(tree);
	}
	tree = ask(f, fleet_json_version, (struct fleet_json_query){0});
	assert_true(json_is_string(json_object_get(tree, "version")));
	json_decref(tree);
}

static void test_metrics(void **state)
{
	static const char *const wanted[] = {
		"\ningero_fleet_active_nodes{cluster_id=\"a\",cgroup_path_hash=\"\"} 2\n",
		"\n# TYPE ingero_fleet_median gauge\n", "\n# TYPE ingero_fleet_mad gauge\n",
		"\n# TYPE ingero_fleet_threshold gauge\n",
		"\n# TYPE ingero_fleet_straggler_count gauge\n",
		"\n# TYPE ingero_fleet_stragglers gauge\n",
		"\n# TYPE ingero_fleet_coverage_low gauge\n",
		"\ningero_fleet_refused_total{reason=\"not_finite\"} 0\n",
		"\ningero_fleet_calls_total{cluster_id=\"a\",result=\"taken\"} 320\n",
		"\ningero_fleet_episode_lost_gpu_seconds{cluster_id=\"a\",node=\"node\\\"\\n",
		",rank=\"5\",problem=\"straggler\"} ", "\ningero_nccl_peer_lag_p99_seconds{"};
	struct fleet *f = *state;
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){now});
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	buf_putc(&b, '\n');
	fleet_metrics(s, f);
	prometheus_text(&b, s);
	assert_int_equal(b.err, 0);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!strstr(buf_str(&b), wanted[i]))
			fail_msg("%s is not in:\n%s", wanted[i], buf_str(&b));
	assert_null(strstr(buf_str(&b), "cost_per_hour{")); /* unpriced is not 0 */
}

static int set_up(void **state)
{
	*state = fleet_told();
	return 0;
}

static int tear_down(void **state)
{
	fleet_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cold_threshold),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_heatmap),
		cmocka_unit_test(test_blame),
		cmocka_unit_test(test_blame_afterwards),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_metrics),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
