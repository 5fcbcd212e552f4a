/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_metrics.c - fleet_metrics() of fleet_json.h. Names that were published before are kept. */
#include "cluster/answer/fleet_json.h"

#define CLUSTER METRIC_LABEL("cluster_id")
#define COHORT  METRIC_LABEL("cgroup_path_hash")
#define NODE    METRIC_LABEL("node")
#define RANK    METRIC_LABEL("rank")

METRIC_ROW(active_nodes, GAUGE, false, "ingero_fleet_active_nodes", "{node}",
	"Nodes whose scores are used for the threshold", CLUSTER, COHORT);
METRIC_ROW(known_nodes, GAUGE, false, "ingero_fleet_known_nodes", "{node}",
	"Nodes that push, in any state", CLUSTER, COHORT);
METRIC_ROW(median, GAUGE, true, "ingero_fleet_median", "1", "Median of the active nodes' scores",
	CLUSTER, COHORT);
METRIC_ROW(mad, GAUGE, true, "ingero_fleet_mad", "1",
	"Median absolute deviation of the active nodes' scores", CLUSTER, COHORT);
METRIC_ROW(threshold, GAUGE, true, "ingero_fleet_threshold", "1",
	"Score below which a node is a straggler; 0 without a quorum", CLUSTER, COHORT);
METRIC_ROW(quorum_met, GAUGE, false, "ingero_fleet_quorum_met", "1",
	"1 if enough nodes are active for a threshold", CLUSTER, COHORT);
METRIC_ROW(stragglers, GAUGE, false, "ingero_fleet_straggler_count", "{node}",
	"Nodes that are stragglers by score, by their peers, or silent", CLUSTER, COHORT);
/* The same under a name that a gauge may have: _count is a histogram's. */
METRIC_ROW(stragglers_now, GAUGE, false, "ingero_fleet_stragglers", "{node}",
	"Same as ingero_fleet_straggler_count", CLUSTER, COHORT);
METRIC_ROW(coverage_low, GAUGE, false, "ingero_fleet_coverage_low", "1",
	"1 if too few of the known nodes are active", CLUSTER, COHORT);

METRIC_ROW(refused, COUNTER, false, "ingero_fleet_refused_total", "{push}",
	"Health pushes that were refused", METRIC_LABEL("reason"));
METRIC_ROW(received, COUNTER, false, "ingero_fleet_received_total", "{item}",
	"Items pushed by agents", METRIC_LABEL("kind"));
METRIC_ROW(dropped, COUNTER, false, "ingero_fleet_dropped_total", "{item}",
	"Items dropped for lack of room", METRIC_LABEL("kind"));
METRIC_ROW(calls, COUNTER, false, "ingero_fleet_calls_total", "{call}",
	"Collective, send and receive calls of ranks, by result", CLUSTER, METRIC_LABEL("result"));
METRIC_ROW(calls_bytes, GAUGE, false, "ingero_fleet_calls_bytes", "By",
	"Memory used by the collective, send and receive calls of ranks", CLUSTER);

METRIC_ROW(cluster_cost, GAUGE, true, "ingero_fleet_cost_per_hour", "1",
	"Money lost at barriers per hour, at the present rate", CLUSTER, METRIC_LABEL("currency"));
METRIC_ROW(cluster_lost, GAUGE, true, "ingero_fleet_lost_gpu_seconds", "s",
	"GPU time lost at barriers by ongoing incidents, since they began", CLUSTER);
METRIC_ROW(cluster_priced, GAUGE, false, "ingero_fleet_priced", "1",
	"1 if every GPU model of the cluster has a price", CLUSTER);
METRIC_ROW(episode_cost, GAUGE, true, "ingero_fleet_episode_cost_per_hour", "1",
	"Money lost per hour because of one node or rank, at the present rate", CLUSTER, NODE, RANK,
	METRIC_LABEL("problem"), METRIC_LABEL("currency"));
METRIC_ROW(episode_lost, GAUGE, true, "ingero_fleet_episode_lost_gpu_seconds", "s",
	"GPU time lost because of one node or rank since its incident began", CLUSTER, NODE, RANK,
	METRIC_LABEL("problem"));

METRIC_ROW(lag_p50, GAUGE, true, "ingero_nccl_peer_lag_p50_seconds", "s",
	"Median lag of a rank where it arrives last", CLUSTER, NODE, RANK);
METRIC_ROW(lag_p99, GAUGE, true, "ingero_nccl_peer_lag_p99_seconds", "s",
	"99th percentile of the lag of a rank where it arrives last", CLUSTER, NODE, RANK);
METRIC_ROW(last_total, COUNTER, false, "ingero_nccl_last_total", "{collective}",
	"Collectives at which a rank arrived last", CLUSTER, NODE, RANK);

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
	metric_put_count(s, &cluster_priced, cluster, cost.priced);
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

		if (c) {
			struct calls_stats stats = calls_stats(c);
			const struct {
				const char *result;
				uint64_t count;
			} rows[] = {{"taken", stats.taken}, {"duplicate", stats.duplicate},
				{"refused", stats.refused}, {"evicted", stats.evicted},
				{"unmatched", stats.unmatched}};

			for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
				metric_put_int(s, &calls, (wall_time){0}, (int64_t)rows[i].count,
					METRIC_OF(
						METRIC_TEXT(cluster), METRIC_TEXT(rows[i].result)));
			metric_put_count(s, &calls_bytes, cluster, stats.bytes);
		}
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
