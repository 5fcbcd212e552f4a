/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json_node.c - the nodes: what each said last, and what the cluster makes of it. */
#include "cluster/answer/fleet_json.h"

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	json_string_member(w, key, text[0] ? text : NULL);
}

static void put_signals(struct json_writer *w, const struct push_health *h)
{
	json_begin_object_member(w, "signals");
	for (unsigned i = 0; i < PUSH_SIGNAL_COUNT; i++)
		if (h->signals[i] >= 0)
			json_double_member(w, push_signal_metric(i), h->signals[i]);
	json_end_object(w);
}

static void put_straggler(struct json_writer *w, const struct node_view *v)
{
	json_bool_member(w, "straggler", v->straggler);
	if (!v->straggler)
		return;
	json_string_member(w, "reason", nodes_reason_id(v->reason));
	put_text(w, "signal", v->dominant);
	json_int_member(w, "since_ns", v->since_ns);
	if (v->robust_z != 0) {
		json_double_member(w, "robust_z", v->robust_z);
		json_double_member(w, "value", v->value);
		json_double_member(w, "peer_median", v->peer_median);
	}
}

static void put_node(struct json_writer *w, const struct node_view *v, int64_t now_ns)
{
	const struct push_health *h = v->last;

	json_begin_object(w);
	json_string_member(w, "cluster_id", h->who.cluster);
	json_string_member(w, "node", h->who.node);
	json_key(w, "rank");
	h->who.rank >= 0 ? json_put_int(w, h->who.rank) : json_put_null(w);
	json_string_member(w, "state", push_state_id(h->state));
	json_double_member(w, "score", h->score);
	json_key(w, "threshold");
	v->threshold > 0 ? json_put_double(w, v->threshold) : json_put_null(w);
	json_double_member(w, "throughput", h->throughput);
	json_double_member(w, "compute", h->compute);
	json_double_member(w, "memory", h->memory);
	json_double_member(w, "cpu", h->cpu);
	json_bool_member(w, "degraded", h->degraded);
	put_straggler(w, v);
	put_text(w, "cgroup_path_hash", h->cohort);
	put_text(w, "workload", h->workload);
	put_text(w, "provider", h->who.provider);
	put_text(w, "gpu_model", h->gpu_model);
	json_uint_member(w, "gpu_count", h->gpu_count);
	put_signals(w, h);
	json_int_member(w, "first_ns", v->first_ns);
	json_int_member(w, "age_ns", MAX(now_ns - v->last_ns, (int64_t)0));
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
