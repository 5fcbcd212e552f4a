/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json_episode.c - what is wrong, and what was: the core's episodes, worst first. */
#include "cluster/answer/fleet_json.h"

#include "wire/names.h"

static bool is_about_calls(enum fleet_problem p)
{
	return p != FLEET_NODE && p != FLEET_SILENT;
}

/* What model/episode_field.h lists; null: not told. */
static void put_fields(struct json_writer *w, const struct fleet_episode *e)
{
	for (const struct fleet_field *f = fleet_fields; f->name; f++) {
		struct fleet_value v;

		fleet_field_get(f, e, &v);
		json_key(w, f->name);
		if (v.text)
			json_put_string(w, v.known ? v.text : NULL);
		else if (v.is_real)
			json_put_double(w, v.d);
		else if (v.known || f->form == FLEET_FORM_U64)
			json_put_int(w, v.i);
		else
			json_put_null(w);
	}
}

static bool is_about_transfer(enum fleet_problem p)
{
	return p == FLEET_LINK || p == FLEET_COLLECTIVE;
}

static void put_end(struct json_writer *w, const char *key, int32_t rank, const char *node)
{
	json_begin_object_member(w, key);
	json_int_member(w, "rank", rank);
	json_string_member(w, "node", node);
	json_end_object(w);
}

/* How long one takes. */
static void put_transfer(struct json_writer *w, const struct fleet_episode *e)
{
	json_begin_object_member(w, "transfer");
	if (e->problem == FLEET_LINK) {
		put_end(w, "from", e->from_rank, e->from_node);
		put_end(w, "to", e->to_rank, e->to_node);
	}
	json_uint_member(w, "bytes", e->bytes);
	json_uint_member(w, "took_ns", e->took_ns);
	json_uint_member(w, "usual_ns", e->usual_ns);
	json_string_member(w, "usual_is", e->by_past ? "past" : "peers");
	json_end_object(w);
}

static void put_episode(struct json_writer *w, const struct fleet_episode *e, int64_t now_ns)
{
	json_begin_object(w);
	json_string_member(w, "text", e->text);
	json_uint_member(w, "id", e->id);
	fleet_json_text(w, "event_id", e->event);
	json_string_member(w, "cluster_id", e->cluster);
	json_string_member(w, "problem", fleet_problem_id(e->problem));
	fleet_json_text(w, "node", e->node);
	fleet_json_int(w, "rank", e->rank >= 0, e->rank);
	fleet_json_int(w, "stage", e->stage >= 0 && e->problem == FLEET_STAGE, e->stage);
	json_double_member(w, "confidence", e->confidence);
	json_bool_member(w, "provisional", e->provisional);
	if (is_about_calls(e->problem)) {
		char scratch[32];

		json_begin_object_member(w, "collective");
		fleet_json_comm_member(w, "comm", e->comm);
		json_uint_member(w, "seq", e->seq);
		json_string_member(w, "op", wire_op_name(SOURCE_NCCL, e->op, scratch));
		json_end_object(w);
		if (is_about_transfer(e->problem) && e->took_ns)
			put_transfer(w, e);
	} else {
		fleet_json_text(w, "signal", e->signal);
		json_double_member(w, "score", e->score);
		json_double_member(w, "threshold", e->threshold);
	}
	fleet_json_text(w, "cause", e->cause);
	fleet_json_text(w, "fix", e->fix);
	put_fields(w, e);
	fleet_json_int(w, "until_ns", e->until_ns, e->until_ns);
	json_int_member(w, "lasts_ns", (e->until_ns ? e->until_ns : now_ns) - e->since_ns);
	fleet_json_cost_members(w, &e->cost);
	json_end_object(w);
}

/* @ended: also those that are over. Returns how many there are. */
static size_t put_episodes(struct json_writer *w, const struct fleet *f,
	const struct fleet_json_query *q, bool ended, size_t limit)
{
	const char *cluster = q->cluster[0] ? q->cluster : NULL;
	struct fleet_episode e;
	size_t cursor = 0, n = 0;

	json_begin_array_member(w, "episodes");
	while (fleet_episode_next(f, cluster, &cursor, &e)) {
		if (e.until_ns && !ended)
			continue;
		if (n++ < limit)
			put_episode(w, &e, q->now_ns);
	}
	json_end_array(w);
	return n;
}

int fleet_json_episodes(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t total;

	json_begin_object(w);
	total = put_episodes(w, f, q, true, fleet_json_limit(q, FLEET_JSON_EPISODES_MAX));
	json_uint_member(w, "total", total);
	json_end_object(w);
	return 0;
}

/* What was looked at: an answer without a culprit is worth what stands behind it. */
static void put_examined(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, clusters = 0, nodes = 0, ranks = 0;
	uint64_t collectives = 0, nameless = 0;
	const char *cluster;
	struct node_view node;

	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *calls = fleet_calls(f, cluster);
		struct worker_view worker;
		struct comm_view comm;
		size_t at = 0;

		clusters++;
		while (calls && calls_worker_next(calls, &at, &worker))
			ranks++;
		at = 0;
		while (calls && calls_comm_next(calls, &at, &comm))
			collectives += comm.matched;
		if (calls)
			nameless += calls_stats(calls).held + calls_stats(calls).given_up;
	}
	cursor = 0;
	while (nodes_next(fleet_nodes(f), q->cluster[0] ? q->cluster : NULL, &cursor, &node))
		nodes++;
	json_begin_object_member(w, "examined");
	json_uint_member(w, "clusters", clusters);
	json_uint_member(w, "nodes", nodes);
	json_uint_member(w, "ranks", ranks);
	json_uint_member(w, "collectives", collectives);
	json_uint_member(w, "without_communicator_id", nameless);
	json_end_object(w);
}

int fleet_json_blame(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster = q->cluster[0] ? q->cluster : NULL;
	struct fleet_episode e;
	size_t cursor = 0, total;
	bool found = false;

	while (!found && fleet_episode_next(f, cluster, &cursor, &e))
		found = e.until_ns == 0;
	json_begin_object(w);
	json_string_member(w, "text", found ? e.text : NULL);
	put_examined(w, f, q);
	total = put_episodes(w, f, q, false, fleet_json_limit(q, FLEET_JSON_BLAME_MAX));
	json_uint_member(w, "total", total);
	json_int_member(w, "now_ns", q->now_ns);
	json_end_object(w);
	return 0;
}
