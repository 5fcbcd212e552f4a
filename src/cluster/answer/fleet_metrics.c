/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_metrics.c - see fleet_metrics.h. Names that were published before are kept. */
#include "cluster/answer/fleet_metrics.h"

#include <string.h>

#define CLUSTER                                                                                    \
	{                                                                                          \
		"cluster_id", "cluster_id"                                                         \
	}
#define COHORT                                                                                     \
	{                                                                                          \
		"cgroup_path_hash", "cgroup_path_hash"                                             \
	}
#define NODE                                                                                       \
	{                                                                                          \
		"node", "node"                                                                     \
	}
#define RANK                                                                                       \
	{                                                                                          \
		"rank", "rank"                                                                     \
	}

static const struct metric_desc active_nodes = {.prometheus = "ingero_fleet_active_nodes",
	.unit = "{node}",
	.help = "Nodes whose scores make the threshold",
	.keys = {CLUSTER, COHORT}};
static const struct metric_desc known_nodes = {.prometheus = "ingero_fleet_known_nodes",
	.unit = "{node}",
	.help = "Nodes that push, in any state",
	.keys = {CLUSTER, COHORT}};
static const struct metric_desc median = {.prometheus = "ingero_fleet_median",
	.unit = "1",
	.is_double = true,
	.help = "Median of the active nodes' scores",
	.keys = {CLUSTER, COHORT}};
static const struct metric_desc mad = {.prometheus = "ingero_fleet_mad",
	.unit = "1",
	.is_double = true,
	.help = "Median absolute deviation of the active nodes' scores",
	.keys = {CLUSTER, COHORT}};
static const struct metric_desc threshold = {.prometheus = "ingero_fleet_threshold",
	.unit = "1",
	.is_double = true,
	.help = "Score below which a node is a straggler; 0 without a quorum",
	.keys = {CLUSTER, COHORT}};
static const struct metric_desc quorum_met = {.prometheus = "ingero_fleet_quorum_met",
	.unit = "1",
	.help = "1 if enough nodes are active for a threshold",
	.keys = {CLUSTER, COHORT}};
static const struct metric_desc stragglers = {.prometheus = "ingero_fleet_straggler_count",
	.unit = "{node}",
	.help = "Nodes that are stragglers by score, by their peers, or silent",
	.keys = {CLUSTER, COHORT}};
/* The same under a name that a gauge may have: _count is a histogram's. */
static const struct metric_desc stragglers_now = {.prometheus = "ingero_fleet_stragglers",
	.unit = "{node}",
	.help = "Same as ingero_fleet_straggler_count",
	.keys = {CLUSTER, COHORT}};
static const struct metric_desc coverage_low = {.prometheus = "ingero_fleet_coverage_low",
	.unit = "1",
	.help = "1 if too few of the known nodes are active",
	.keys = {CLUSTER, COHORT}};

static const struct metric_desc refused = {.prometheus = "ingero_fleet_refused_total",
	.unit = "{push}",
	.kind = METRIC_COUNTER,
	.help = "Pushes of health that were refused",
	.keys = {{"reason", "reason"}}};
static const struct metric_desc received = {.prometheus = "ingero_fleet_received_total",
	.unit = "{item}",
	.kind = METRIC_COUNTER,
	.help = "What agents have pushed",
	.keys = {{"kind", "kind"}}};
static const struct metric_desc dropped = {.prometheus = "ingero_fleet_dropped_total",
	.unit = "{item}",
	.kind = METRIC_COUNTER,
	.help = "What there was no room for",
	.keys = {{"kind", "kind"}}};
static const struct metric_desc calls = {.prometheus = "ingero_fleet_calls_total",
	.unit = "{call}",
	.kind = METRIC_COUNTER,
	.help = "Communications of ranks, by what became of them",
	.keys = {CLUSTER, {"result", "result"}}};
static const struct metric_desc calls_bytes = {.prometheus = "ingero_fleet_calls_bytes",
	.unit = "By",
	.help = "Memory that communications of ranks take",
	.keys = {CLUSTER}};

static const struct metric_desc cluster_cost = {.prometheus = "ingero_fleet_cost_per_hour",
	.unit = "1",
	.is_double = true,
	.help = "Money lost at barriers in an hour at the present rate",
	.keys = {CLUSTER, {"currency", "currency"}}};
static const struct metric_desc cluster_lost = {.prometheus = "ingero_fleet_lost_gpu_seconds",
	.unit = "s",
	.is_double = true,
	.help = "GPU time lost at barriers by ongoing incidents, since they began",
	.keys = {CLUSTER}};
static const struct metric_desc cluster_priced = {.prometheus = "ingero_fleet_priced",
	.unit = "1",
	.help = "1 if every GPU model of the cluster has a price",
	.keys = {CLUSTER}};
static const struct metric_desc episode_cost = {.prometheus = "ingero_fleet_episode_cost_per_hour",
	.unit = "1",
	.is_double = true,
	.help = "Money lost because of one node or rank in an hour at the present rate",
	.keys = {CLUSTER, NODE, RANK, {"problem", "problem"}, {"currency", "currency"}}};
static const struct metric_desc episode_lost = {
	.prometheus = "ingero_fleet_episode_lost_gpu_seconds",
	.unit = "s",
	.is_double = true,
	.help = "GPU time lost because of one node or rank since its incident began",
	.keys = {CLUSTER, NODE, RANK, {"problem", "problem"}}};

static const struct metric_desc lag_p50 = {.prometheus = "ingero_nccl_peer_lag_p50_seconds",
	.unit = "s",
	.is_double = true,
	.help = "Median of what a rank is late by where it comes last",
	.keys = {CLUSTER, NODE, RANK}};
static const struct metric_desc lag_p99 = {.prometheus = "ingero_nccl_peer_lag_p99_seconds",
	.unit = "s",
	.is_double = true,
	.help = "99th percentile of what a rank is late by where it comes last",
	.keys = {CLUSTER, NODE, RANK}};
static const struct metric_desc last_total = {.prometheus = "ingero_nccl_last_total",
	.unit = "{collective}",
	.kind = METRIC_COUNTER,
	.help = "Collectives for which a rank came last",
	.keys = {CLUSTER, NODE, RANK}};

/* ---- nodes ---- */

static int64_t count_stragglers(const struct nodes *n, const char *cluster, const char *cohort)
{
	struct node_view v;
	size_t cursor = 0;
	int64_t count = 0;

	while (nodes_next(n, cluster, &cursor, &v))
		count += v.straggler && (!cohort[0] || strcmp(v.last->cohort, cohort) == 0);
	return count;
}

static void put_cohorts(struct metric_set *s, const struct nodes *n)
{
	const char *cluster, *cohort;
	struct threshold t;
	size_t cursor = 0;

	while (nodes_cohort_next(n, &cursor, &cluster, &cohort, &t)) {
		const struct metric_attribute *of =
			METRIC_OF(METRIC_TEXT(cluster), METRIC_TEXT(cohort));
		wall_time none = {0};

		metric_put_int(s, &active_nodes, none, t.active, of);
		metric_put_int(s, &known_nodes, none, t.known, of);
		metric_put_double(s, &median, none, t.median, of);
		metric_put_double(s, &mad, none, t.mad, of);
		metric_put_double(s, &threshold, none, t.value, of);
		metric_put_int(s, &quorum_met, none, t.quorum_met, of);
		metric_put_int(s, &stragglers, none, count_stragglers(n, cluster, cohort), of);
		metric_put_int(s, &stragglers_now, none, count_stragglers(n, cluster, cohort), of);
		metric_put_int(s, &coverage_low, none, t.coverage_low, of);
	}
	for (int r = NODES_NONE + 1; r < NODES_REFUSAL_COUNT; r++)
		metric_put_int(s, &refused, (wall_time){0}, (int64_t)nodes_refused(n, r),
			METRIC_OF(METRIC_TEXT(nodes_refusal_id(r))));
}

/* ---- ranks ---- */

static void put_calls(struct metric_set *s, const char *cluster, const struct calls *c)
{
	struct calls_stats stats = calls_stats(c);
	const struct {
		const char *result;
		uint64_t count;
	} rows[] = {{"taken", stats.taken}, {"duplicate", stats.duplicate},
		{"refused", stats.refused}, {"evicted", stats.evicted},
		{"unmatched", stats.unmatched}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		metric_put_int(s, &calls, (wall_time){0}, (int64_t)rows[i].count,
			METRIC_OF(METRIC_TEXT(cluster), METRIC_TEXT(rows[i].result)));
	metric_put_int(s, &calls_bytes, (wall_time){0}, (int64_t)stats.bytes,
		METRIC_OF(METRIC_TEXT(cluster)));
}

static struct metric_attribute rank_of(int32_t rank)
{
	return rank >= 0 ? METRIC_NUMBER(rank) : METRIC_NONE;
}

static void put_ranks(struct metric_set *s, const char *cluster, const struct calls *c)
{
	struct worker_view v;
	size_t cursor = 0;

	while (calls_worker_next(c, &cursor, &v)) {
		const struct metric_attribute *of =
			METRIC_OF(METRIC_TEXT(cluster), METRIC_TEXT(v.node), rank_of(v.world_rank));
		wall_time none = {0};

		if (!v.last_count)
			continue;
		metric_put_double(
			s, &lag_p50, none, (double)sketch_quantile(&v.lag, 0.5) / NS_PER_S, of);
		metric_put_double(
			s, &lag_p99, none, (double)sketch_quantile(&v.lag, 0.99) / NS_PER_S, of);
		metric_put_int(s, &last_total, none, (int64_t)v.last_count, of);
	}
}

/* ---- cost ---- */

static void put_cost(struct metric_set *s, const struct fleet *f, const char *cluster)
{
	struct fleet_cost cost;

	if (!fleet_cost(f, cluster, &cost))
		return;
	if (cost.currency[0])
		metric_put_double(s, &cluster_cost, (wall_time){0}, cost.per_hour,
			METRIC_OF(METRIC_TEXT(cluster), METRIC_TEXT(cost.currency)));
	metric_put_double(s, &cluster_lost, (wall_time){0}, cost.gpu_seconds,
		METRIC_OF(METRIC_TEXT(cluster)));
	metric_put_int(
		s, &cluster_priced, (wall_time){0}, cost.priced, METRIC_OF(METRIC_TEXT(cluster)));
}

static bool is_same_series(const struct fleet_episode *a, const struct fleet_episode *b)
{
	return a->problem == b->problem && a->rank == b->rank && !strcmp(a->node, b->node) &&
	       !strcmp(a->cluster, b->cluster);
}

/* Two episodes of the same rank would be two values of one series: the worse, which comes first,
 * counts. */
static void put_episodes(struct metric_set *s, const struct fleet *f)
{
	_cleanup_free_ struct fleet_episode *e = calloc(FLEET_METRICS_EPISODES, sizeof(*e));
	size_t cursor = 0, n = 0;

	while (e && n < FLEET_METRICS_EPISODES && fleet_episode_next(f, NULL, &cursor, &e[n])) {
		size_t i = 0;

		while (i < n && !is_same_series(&e[i], &e[n]))
			i++;
		n += i == n && e[n].until_ns == 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct metric_attribute cluster = METRIC_TEXT(e[i].cluster),
					node = e[i].node[0] ? METRIC_TEXT(e[i].node) : METRIC_NONE,
					rank = rank_of(e[i].rank),
					problem = METRIC_TEXT(fleet_problem_id(e[i].problem));

		if (e[i].cost.currency[0])
			metric_put_double(s, &episode_cost, (wall_time){0}, e[i].cost.per_hour,
				METRIC_OF(cluster, node, rank, problem,
					METRIC_TEXT(e[i].cost.currency)));
		metric_put_double(s, &episode_lost, (wall_time){0}, e[i].cost.gpu_seconds,
			METRIC_OF(cluster, node, rank, problem));
	}
}

static void put_stats(struct metric_set *s, struct fleet *f)
{
	struct fleet_stats stats = fleet_stats(f);
	const struct {
		const struct metric_desc *desc;
		const char *kind;
		uint64_t count;
	} rows[] = {{&received, "health", stats.health}, {&received, "calls", stats.calls},
		{&received, "reports", stats.reports}, {&dropped, "notices", stats.notices_lost},
		{&dropped, "clusters", stats.clusters_refused},
		{&dropped, "node_changes", nodes_changes_lost(fleet_nodes(f))},
		{&dropped, "verdicts", stats.blame_failed}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		metric_put_int(s, rows[i].desc, (wall_time){0}, (int64_t)rows[i].count,
			METRIC_OF(METRIC_TEXT(rows[i].kind)));
}

void fleet_metrics(struct metric_set *s, struct fleet *f)
{
	const char *cluster;
	size_t cursor = 0;

	put_cohorts(s, fleet_nodes(f));
	put_stats(s, f);
	while (fleet_cluster_next(f, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);

		if (c)
			put_calls(s, cluster, c);
		put_cost(s, f, cluster);
	}
	put_episodes(s, f);
	/* Last: what is cut for want of room is here. */
	cursor = 0;
	while (fleet_cluster_next(f, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);

		if (c)
			put_ranks(s, cluster, c);
	}
}
