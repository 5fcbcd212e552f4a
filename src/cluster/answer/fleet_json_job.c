/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json_job.c - jobs: ranks that meet in communicators, the nodes they run on, and the heatmap.
 *
 * 1,024 ranks and 200 collectives are 200 K cells, so that a cell is one character: '-' for a rank
 * that is missing, else a digit of base 62 whose value is twice the logarithm (base 2) of 1 + the
 * microseconds after the median arrival: 0 is on time, 20 about 1 ms, 40 about 1 s. The very times
 * are in fleet_json_collectives(). */
#include <math.h>

#include "base/array.h"
#include "base/search.h"
#include "cluster/answer/fleet_json.h"
#include "wire/names.h"

/* ---- who the workers are ---- */

ORDER(compare_workers, struct worker_entry, ASCENDING(worker))

int worker_directory_list(const struct calls *c, struct worker_directory *ret)
{
	size_t cursor = 0, room = 0;
	struct worker_view v;

	while (calls_worker_next(c, &cursor, &v)) {
		if (ARRAY_RESERVE(ret->who, room, ret->count + 1, SIZE_MAX / 64) < 0)
			return -ENOMEM;
		ret->who[ret->count++] =
			(struct worker_entry){v.worker, v.pid, v.world_rank, v.node};
	}
	SORT(ret->who, ret->count, compare_workers);
	return 0;
}

void worker_directory_done(struct worker_directory *p)
{
	free(p->who);
}

const struct worker_entry *worker_directory_find(const struct worker_directory *p, uint32_t worker)
{
	struct worker_entry key = {.worker = worker};

	return p->count ? bsearch(&key, p->who, p->count, sizeof(key), compare_workers) : NULL;
}

/* ---- jobs ---- */

struct seat { /* a rank of a job */
	uint32_t job;
	const struct worker_entry *who;
};

ORDER(compare_seats, struct seat,
	ASCENDING(job) ?: strcmp(x->who->node, y->who->node) ?: ASCENDING(who->rank))

static size_t list_seats(
	const struct calls_jobs *j, const struct worker_directory *p, struct seat *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < p->count; i++)
		if (j->of[p->who[i].worker] != CALLS_NO_JOB)
			ret[n++] = (struct seat){j->of[p->who[i].worker], &p->who[i]};
	SORT(ret, n, compare_seats);
	return n;
}

static void put_job(struct json_writer *w, const char *cluster, const struct job_view *v,
	const struct seat *s, size_t count)
{
	size_t i;

	json_begin_object(w);
	JSON_PUT(w, JSON_S("cluster_id", cluster), JSON_S("comm", TEXT_HEX(v->comm)),
		JSON_I("nranks", v->nranks), JSON_U("ranks", v->ranks),
		JSON_U("communicators", v->comms), JSON_I("last_ns", v->last_ns));
	i = 0;
	json_begin_array_member(w, "nodes");
	while (i < count) {
		const char *node = s[i].who->node;

		json_begin_object(w);
		json_string_member(w, "node", node);
		json_begin_array_member(w, "ranks");
		for (; i < count && strcmp(s[i].who->node, node) == 0; i++)
			s[i].who->rank >= 0 ? json_put_int(w, s[i].who->rank) : json_put_null(w);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

static int put_jobs(struct json_writer *w, const struct calls *c, const char *cluster, size_t limit,
	size_t *total)
{
	_cleanup_(calls_jobs_done) struct calls_jobs jobs = {0};
	_cleanup_(worker_directory_done) struct worker_directory workers = {0};
	_cleanup_free_ struct seat *seats = NULL;
	size_t count;

	if (calls_jobs(c, &jobs) < 0 || worker_directory_list(c, &workers) < 0)
		return -ENOMEM;
	seats = calloc(workers.count + 1, sizeof(*seats));
	if (!seats)
		return -ENOMEM;
	count = list_seats(&jobs, &workers, seats);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && seats[end].job == seats[i].job;)
			end++;
		if ((*total)++ < limit)
			put_job(w, cluster, &jobs.items[seats[i].job], seats + i, end - i);
	}
	return 0;
}

int fleet_json_jobs(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, total = 0, limit = fleet_json_limit(q, FLEET_JSON_JOBS_MAX);
	const char *cluster;
	int r = 0;

	json_begin_object(w);
	json_begin_array_member(w, "jobs");
	while (r == 0 && fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);

		if (c)
			r = put_jobs(w, c, cluster, limit, &total);
	}
	json_end_array(w);
	json_uint_member(w, "total", total);
	json_end_object(w);
	return r;
}

/* ---- how late each rank was for each of the last collectives of one communicator ---- */

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* The communicator that is asked for, or the one with the most ranks, of these the busiest. */
static bool choose_comm(
	const struct calls *c, const struct fleet_json_query *q, struct comm_view *ret)
{
	struct comm_view v;
	size_t cursor = 0;
	bool found = false;

	while (calls_comm_next(c, &cursor, &v)) {
		if (q->has_comm ? v.comm != q->comm : v.matched == 0)
			continue;
		if (found && (v.nranks < ret->nranks ||
				     (v.nranks == ret->nranks && v.matched <= ret->matched)))
			continue;
		*ret = v;
		found = true;
	}
	return found;
}

static char cell(int64_t at, int64_t median)
{
	double level;

	if (at == INT64_MIN)
		return '-';
	level = 2 * log2(1 + (double)MAX(at - median, (int64_t)0) / 1000);
	return digits[(size_t)MIN(level, (double)sizeof(digits) - 2)];
}

/* @at has room for as many again. */
static void put_column(struct json_writer *w, const struct collective_view *v, int64_t *at,
	size_t ranks, char *text)
{
	int64_t median = fleet_json_median(at, ranks, at + ranks);

	for (size_t i = 0; i < ranks; i++)
		text[i] = cell(at[i], median);
	json_begin_object(w);
	JSON_PUT(w, JSON_U("seq", v->seq), JSON_S("op", WIRE_OP_NAME(SOURCE_NCCL, v->op)),
		JSON_I("last_ns", v->last_ns), JSON_U("lag_ns", v->lag_ns));
	json_key(w, "cells");
	json_put_string_len(w, text, ranks);
	json_end_object(w);
}

/* Newest first, as many as are asked for. */
static int put_columns(struct json_writer *w, const struct calls *c, const struct comm_view *comm,
	const struct fleet_json_query *q, size_t ranks)
{
	size_t limit = fleet_json_limit(q, FLEET_JSON_HEATMAP_COLUMNS);
	_cleanup_free_ int64_t *at = calloc(2 * ranks + 1, sizeof(*at));
	_cleanup_free_ char *text = malloc(ranks + 1);
	struct collective_view v;
	size_t cursor = 0, n = 0;

	if (!at || !text)
		return -ENOMEM;
	json_begin_array_member(w, "collectives");
	while (n < limit && calls_collective_next(c, &cursor, &v)) {
		int have;

		if (v.comm != comm->comm || (q->has_after && v.seq <= q->after))
			continue;
		have = calls_arrivals(c, v.comm, v.seq, at, ranks);
		if (have < 0)
			continue;
		put_column(w, &v, at, MIN((size_t)have, ranks), text);
		n++;
	}
	json_end_array(w);
	return 0;
}

/* The node of each row, told where it changes: neighbours mostly share one. */
static void put_places(struct json_writer *w, const struct worker_directory *p,
	const uint32_t *workers, size_t ranks)
{
	const char *before = NULL;

	json_begin_array_member(w, "places");
	for (size_t i = 0; i < ranks; i++) {
		const struct worker_entry *who = worker_directory_find(p, workers[i]);
		const char *node = who ? who->node : "";

		if (before && strcmp(before, node) == 0)
			continue;
		before = node;
		JSON_PUT_OBJECT(w, JSON_U("from", i), JSON_S("node", who ? node : NULL));
	}
	json_end_array(w);
}

/* Who the rows are: a rank in the communicator is not a rank in the job. */
static int put_members(struct json_writer *w, const struct calls *c, uint64_t comm, size_t ranks)
{
	_cleanup_free_ uint32_t *members = calloc(ranks + 1, sizeof(*members));
	_cleanup_(worker_directory_done) struct worker_directory workers = {0};

	if (!members || worker_directory_list(c, &workers) < 0)
		return -ENOMEM;
	calls_members(c, comm, members, ranks);
	json_begin_array_member(w, "ranks");
	for (size_t i = 0; i < ranks; i++) {
		const struct worker_entry *who = worker_directory_find(&workers, members[i]);

		who && who->rank >= 0 ? json_put_int(w, who->rank) : json_put_null(w);
	}
	json_end_array(w);
	put_places(w, &workers, members, ranks);
	return 0;
}

int fleet_json_heatmap(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster = fleet_json_one_cluster(f, q);
	const struct calls *c = cluster ? fleet_calls(f, cluster) : NULL;
	struct comm_view comm = {0};
	size_t ranks;
	int r = 0;
	struct comm_view v;
	size_t cursor;
	size_t n;

	json_begin_object(w);
	if (c && choose_comm(c, q, &comm)) {
		ranks = MIN((size_t)MAX(comm.nranks, 0), (size_t)FLEET_JSON_HEATMAP_RANKS);
		JSON_PUT(w, JSON_S("comm", TEXT_HEX(comm.comm)), JSON_I("nranks", comm.nranks),
			JSON_U("shown_ranks", ranks));
		r = put_columns(w, c, &comm, q, ranks);
		r = r ?: put_members(w, c, comm.comm, ranks);
		cursor = 0;
		n = 0;
		json_begin_array_member(w, "communicators");
		while (n++ < FLEET_JSON_COLLECTIVES_MAX && calls_comm_next(c, &cursor, &v)) {
			JSON_PUT_OBJECT(w, JSON_S("comm", TEXT_HEX(v.comm)),
				JSON_I("nranks", v.nranks), JSON_U("seen_ranks", v.ranks),
				JSON_U("matched", v.matched), JSON_U("open", v.open),
				JSON_U("last_seq", v.last_seq));
		}
		json_end_array(w);
	}
	json_end_object(w);
	return r;
}

/* ---- what is wrong, and what was: the core's episodes, worst first ---- */

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

static void put_end(struct json_writer *w, const char *key, int32_t rank, const char *node)
{
	JSON_PUT_INTO(w, key, JSON_I("rank", rank), JSON_S("node", node));
}

/* How long one takes. */
static void put_transfer(struct json_writer *w, const struct fleet_episode *e)
{
	json_begin_object_member(w, "transfer");
	if (e->problem == FLEET_LINK) {
		put_end(w, "from", e->from_rank, e->from_node);
		put_end(w, "to", e->to_rank, e->to_node);
	}
	JSON_PUT(w, JSON_U("bytes", e->bytes), JSON_U("took_ns", e->took_ns),
		JSON_U("usual_ns", e->usual_ns), JSON_S("usual_is", e->by_past ? "past" : "peers"));
	json_end_object(w);
}

static void put_episode(struct json_writer *w, const struct fleet_episode *e, int64_t now_ns)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("text", e->text), JSON_U("id", e->id),
		JSON_S("event_id", FLEET_JSON_TEXT(e->event)), JSON_S("cluster_id", e->cluster),
		JSON_S("problem", fleet_problem_id(e->problem)),
		JSON_S("node", FLEET_JSON_TEXT(e->node)), JSON_KNOWN("rank", e->rank >= 0, e->rank),
		JSON_KNOWN("stage", e->stage >= 0 && e->problem == FLEET_STAGE, e->stage),
		JSON_R("confidence", e->confidence), JSON_B("provisional", e->provisional));
	if (e->problem != FLEET_NODE && e->problem != FLEET_SILENT) {
		JSON_PUT_INTO(w, "collective", JSON_S("comm", TEXT_HEX(e->comm)),
			JSON_U("seq", e->seq), JSON_S("op", WIRE_OP_NAME(SOURCE_NCCL, e->op)));
		if ((e->problem == FLEET_LINK || e->problem == FLEET_COLLECTIVE) && e->took_ns)
			put_transfer(w, e);
	} else {
		JSON_PUT(w, JSON_S("signal", FLEET_JSON_TEXT(e->signal)), JSON_R("score", e->score),
			JSON_R("threshold", e->threshold));
	}
	JSON_PUT(w, JSON_S("cause", FLEET_JSON_TEXT(e->cause)),
		JSON_S("fix", FLEET_JSON_TEXT(e->fix)));
	put_fields(w, e);
	JSON_PUT(w, JSON_KNOWN("until_ns", e->until_ns, e->until_ns),
		JSON_I("lasts_ns", fleet_episode_end(e, now_ns) - e->since_ns));
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
	JSON_PUT_INTO(w, "examined", JSON_U("clusters", clusters), JSON_U("nodes", nodes),
		JSON_U("ranks", ranks), JSON_U("collectives", collectives),
		JSON_U("without_communicator_id", nameless));
}

/* Who is alerted asks later: the incident that ended last, or null. */
static void put_last(struct json_writer *w, const struct fleet *f, const struct fleet_json_query *q)
{
	const char *cluster = q->cluster[0] ? q->cluster : NULL;
	struct fleet_episode e, last = {0};
	size_t cursor = 0;

	while (fleet_episode_next(f, cluster, &cursor, &e))
		if (!e.provisional && e.until_ns > last.until_ns)
			last = e;
	if (!last.until_ns) {
		json_null_member(w, "last");
		return;
	}
	json_key(w, "last");
	put_episode(w, &last, q->now_ns);
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
	put_last(w, f, q);
	put_examined(w, f, q);
	total = put_episodes(w, f, q, false, fleet_json_limit(q, FLEET_JSON_BLAME_MAX));
	JSON_PUT(w, JSON_U("total", total), JSON_I("now_ns", q->now_ns));
	json_end_object(w);
	return 0;
}
