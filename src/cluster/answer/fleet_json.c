/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json.c - thresholds, clusters, cost, nodes, version, and what all answers have in common. */
#include "cluster/answer/fleet_json.h"

#include <math.h>

#include "config.h"

bool fleet_json_next_cluster(const struct fleet *f, const struct fleet_json_query *q,
	size_t *cursor, const char **ret_cluster)
{
	while (fleet_cluster_next(f, cursor, ret_cluster))
		if (!q->cluster[0] || strcmp(q->cluster, *ret_cluster) == 0)
			return true;
	return false;
}

const char *fleet_json_one_cluster(const struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster = NULL, *another;
	size_t cursor = 0;

	if (!fleet_json_next_cluster(f, q, &cursor, &cluster))
		return NULL;
	return fleet_json_next_cluster(f, q, &cursor, &another) ? NULL : cluster;
}

size_t fleet_json_limit(const struct fleet_json_query *q, size_t max)
{
	return q->limit && q->limit < max ? q->limit : max;
}

/* ---- thresholds ---- */

static void put_threshold(struct json_writer *w, const struct threshold *t)
{
	JSON_PUT(w, JSON_R("threshold", t->value), JSON_B("quorum_met", t->quorum_met),
		JSON_R("median", t->median), JSON_R("mad", t->mad),
		JSON_U("active_nodes", t->active), JSON_U("known_nodes", t->known),
		JSON_B("half_bad", t->half_bad), JSON_B("coverage_low", t->coverage_low));
}

static void put_cohorts(struct json_writer *w, struct fleet *f, const char *cluster)
{
	const char *its, *cohort;
	struct threshold t;
	size_t cursor = 0;

	json_begin_array_member(w, "cohorts");
	while (nodes_cohort_next(fleet_nodes(f), &cursor, &its, &cohort, &t)) {
		if (strcmp(its, cluster) != 0)
			continue;
		json_begin_object(w);
		json_string_member(w, "cgroup_path_hash", cohort);
		put_threshold(w, &t);
		json_end_object(w);
	}
	json_end_array(w);
}

/* A cluster that nobody has heard of has the answer of one that has just begun: agents poll before
 * they push. */
int fleet_json_threshold(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster = q->cluster[0] ? q->cluster : fleet_json_one_cluster(f, q);
	struct threshold t = {0};

	if (cluster && !nodes_threshold(fleet_nodes(f), cluster, q->cohort, &t))
		t = (struct threshold){0};
	json_begin_object(w);
	put_threshold(w, &t);
	if (cluster) {
		json_string_member(w, "cluster_id", cluster);
		put_cohorts(w, f, cluster);
	}
	json_end_object(w);
	return 0;
}

/* ---- clusters and what they cost ---- */

void fleet_json_cost_members(struct json_writer *w, const struct fleet_cost *c)
{
	bool has_price = c->currency[0];

	JSON_PUT(w, JSON_R("cost_per_hour", has_price ? c->per_hour : NAN),
		JSON_R("cost_total", has_price ? c->total : NAN),
		JSON_S("currency", has_price ? c->currency : NULL),
		JSON_S("symbol", has_price ? c->symbol : NULL), JSON_B("priced", c->priced),
		JSON_R("gpu_hour", c->gpu_hour > 0 ? c->gpu_hour : NAN),
		JSON_S("price_is", !has_price     ? NULL
				   : c->is_guess  ? "middle of list prices, provider unknown"
				   : c->is_middle ? "middle of list prices"
						  : "provider's"),
		JSON_S("unpriced_model", c->unpriced[0] ? c->unpriced : NULL),
		JSON_R("lost_gpu_seconds", c->gpu_seconds),
		JSON_R("lost_watt_hours", c->watt_hours > 0 ? c->watt_hours : NAN));
}

static void put_cost(struct json_writer *w, const struct fleet *f, const char *cluster)
{
	struct fleet_cost cost;

	if (fleet_cost(f, cluster, &cost))
		fleet_json_cost_members(w, &cost);
}

static void count_nodes(
	const struct nodes *n, const char *cluster, size_t *ret_nodes, size_t *ret_stragglers)
{
	struct node_view v;
	size_t cursor = 0;

	*ret_nodes = *ret_stragglers = 0;
	while (nodes_next(n, cluster, &cursor, &v)) {
		++*ret_nodes;
		*ret_stragglers += v.straggler;
	}
}

static void put_counts(struct json_writer *w, const struct calls *c)
{
	struct calls_stats s = calls_stats(c);
	struct worker_view worker;
	struct comm_view comm;
	size_t cursor = 0, workers = 0, comms = 0;

	while (calls_worker_next(c, &cursor, &worker))
		workers++;
	cursor = 0;
	while (calls_comm_next(c, &cursor, &comm))
		comms++;
	JSON_PUT(w, JSON_U("ranks", workers), JSON_U("communicators", comms));
	JSON_PUT_INTO(w, "calls", JSON_U("taken", s.taken), JSON_U("duplicate", s.duplicate),
		JSON_U("refused", s.refused), JSON_U("evicted", s.evicted),
		JSON_U("unmatched", s.unmatched), JSON_U("joined", s.joined),
		JSON_U("without_communicator_id", s.held + s.given_up));
}

static size_t count_episodes(const struct fleet *f, const char *cluster)
{
	struct fleet_episode e;
	size_t cursor = 0, n = 0;

	while (fleet_episode_next(f, cluster, &cursor, &e))
		n += e.until_ns == 0;
	return n;
}

int fleet_json_clusters(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster;
	size_t cursor = 0;

	json_begin_object(w);
	json_int_member(w, "now_ns", q->now_ns);
	json_begin_array_member(w, "clusters");
	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *calls = fleet_calls(f, cluster);
		size_t nodes, stragglers;
		struct threshold t = {0};

		count_nodes(fleet_nodes(f), cluster, &nodes, &stragglers);
		nodes_threshold(fleet_nodes(f), cluster, "", &t);
		json_begin_object(w);
		JSON_PUT(w, JSON_S("cluster_id", cluster), JSON_U("nodes", nodes),
			JSON_U("stragglers", stragglers),
			JSON_U("episodes", count_episodes(f, cluster)));
		put_threshold(w, &t);
		if (calls)
			put_counts(w, calls);
		put_cost(w, f, cluster);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
	return 0;
}

/* What is lost, and of that what each episode that lasts takes. */
int fleet_json_cost(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster;
	size_t cursor = 0;

	json_begin_object(w);
	json_begin_array_member(w, "clusters");
	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		struct fleet_episode e;
		size_t at = 0;

		json_begin_object(w);
		json_string_member(w, "cluster_id", cluster);
		put_cost(w, f, cluster);
		json_begin_array_member(w, "by");
		while (fleet_episode_next(f, cluster, &at, &e)) {
			if (e.until_ns)
				continue;
			json_begin_object(w);
			JSON_PUT(w, JSON_U("episode", e.id),
				JSON_S("problem", fleet_problem_id(e.problem)),
				JSON_S("node", e.node[0] ? e.node : NULL),
				JSON_KNOWN("rank", e.rank >= 0, e.rank),
				JSON_S("cause", e.cause[0] ? e.cause : NULL));
			fleet_json_cost_members(w, &e.cost);
			json_end_object(w);
		}
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
	return 0;
}

int fleet_json_version(
	struct json_writer *w, struct fleet *f _unused_, const struct fleet_json_query *q)
{
	JSON_PUT_OBJECT(w, JSON_S("program", "ingero-cluster"), JSON_S("version", INGERO_VERSION),
		JSON_S("node_page", q->node_page), JSON_I("now_ns", q->now_ns));
	return 0;
}

/* ---- nodes: what each said last, and what the cluster makes of it ---- */

static void put_straggler(struct json_writer *w, const struct node_view *v)
{
	json_bool_member(w, "straggler", v->straggler);
	if (!v->straggler)
		return;
	JSON_PUT(w, JSON_S("reason", nodes_reason_id(v->reason)),
		JSON_S("signal", FLEET_JSON_TEXT(v->dominant)), JSON_I("since_ns", v->since_ns));
	if (v->robust_z != 0) {
		JSON_PUT(w, JSON_R("robust_z", v->robust_z), JSON_R("value", v->value),
			JSON_R("peer_median", v->peer_median));
	}
}

static void put_node(struct json_writer *w, const struct node_view *v, int64_t now_ns)
{
	const struct push_health *h = v->last;

	json_begin_object(w);
	JSON_PUT(w, JSON_S("cluster_id", h->who.cluster), JSON_S("node", h->who.node),
		JSON_KNOWN("rank", h->who.rank >= 0, h->who.rank),
		JSON_S("state", push_state_id(h->state)), JSON_R("score", h->score),
		JSON_R("threshold", v->threshold > 0 ? v->threshold : NAN),
		JSON_R("throughput", h->throughput), JSON_R("compute", h->compute),
		JSON_R("memory", h->memory), JSON_R("cpu", h->cpu),
		JSON_B("degraded", h->degraded));
	put_straggler(w, v);
	JSON_PUT(w, JSON_S("cgroup_path_hash", FLEET_JSON_TEXT(h->cohort)),
		JSON_S("workload", FLEET_JSON_TEXT(h->workload)),
		JSON_S("provider", FLEET_JSON_TEXT(h->who.provider)),
		JSON_S("gpu_model", FLEET_JSON_TEXT(h->gpu_model)),
		JSON_U("gpu_count", h->gpu_count));
	json_begin_object_member(w, "signals");
	for (unsigned i = 0; i < PUSH_SIGNAL_COUNT; i++)
		if (h->signals[i] >= 0)
			json_double_member(w, push_signal_metric(i), h->signals[i]);
	json_end_object(w);
	JSON_PUT(w, JSON_I("first_ns", v->first_ns),
		JSON_I("age_ns", MAX(now_ns - v->last_ns, (int64_t)0)));
	json_end_object(w);
}

int fleet_json_nodes(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster = q->cluster[0] ? q->cluster : NULL;
	size_t cursor = 0, n = 0, limit = fleet_json_limit(q, FLEET_JSON_NODES_MAX);
	struct node_view v;

	json_begin_object(w);
	json_begin_array_member(w, "nodes");
	/* Stragglers first: a short answer holds those that matter. */
	while (nodes_next(fleet_nodes(f), cluster, &cursor, &v))
		if (v.straggler && n++ < limit)
			put_node(w, &v, q->now_ns);
	cursor = 0;
	while (nodes_next(fleet_nodes(f), cluster, &cursor, &v))
		if (!v.straggler && n++ < limit)
			put_node(w, &v, q->now_ns);
	json_end_array(w);
	json_uint_member(w, "total", n);
	json_end_object(w);
	return 0;
}
