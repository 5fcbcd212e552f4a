/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json_rank.c - ranks and what they do together: who is last, by how much, who is missing, who
 * disagrees. */
#include "cluster/answer/fleet_json.h"

#include "base/array.h"
#include "base/search.h"
#include "wire/names.h"

#define RANKS_MAX 65536 /* of a communicator, whose arrivals are told */

/* The members of @worker into an object that is open; nothing if it has been forgotten. */
static void put_who(struct json_writer *w, const struct worker_directory *p, uint32_t worker)
{
	const struct worker_entry *who = worker_directory_find(p, worker);

	if (!who)
		return;
	JSON_PUT(w, JSON_KNOWN("rank", who->rank >= 0, who->rank), JSON_S("node", who->node),
		JSON_U("pid", who->pid));
}

/* What its agent says of it: what it does, where its slow steps lose their time, and why. */
static void put_account(struct json_writer *w, const struct push_report *r)
{
	if (!r) {
		json_null_member(w, "account");
		return;
	}
	JSON_PUT_INTO(w, "account", JSON_I("sent_ns", r->sent_ns),
		JSON_S("doing", push_doing_id(r->doing)),
		JSON_S("doing_where", FLEET_JSON_TEXT(r->doing_where)),
		JSON_KNOWN("step_ns", r->step_ns, (int64_t)r->step_ns),
		JSON_KNOWN("ordinary_ns", r->ordinary_ns, (int64_t)r->ordinary_ns),
		JSON_S("line", FLEET_JSON_TEXT(r->line)),
		JSON_KNOWN("line_ns", r->line_ns, (int64_t)r->line_ns),
		JSON_S("cause", FLEET_JSON_TEXT(r->cause)), JSON_S("fix", FLEET_JSON_TEXT(r->fix)),
		JSON_S("incident", FLEET_JSON_TEXT(r->incident)),
		JSON_R("confidence", r->confidence));
}

struct late {          /* a rank and how late it is */
	size_t cursor; /* of calls_worker_next() */
	double ns;     /* in all, about */
};

ORDER(compare_late, struct late, DESCENDING(ns) ?: ASCENDING(cursor))

static bool is_asked(const struct fleet_json_query *q, const struct worker_view *v)
{
	return (!q->has_rank || (v->world_rank >= 0 && (uint64_t)v->world_rank == q->rank)) &&
	       (!q->node[0] || strcmp(q->node, v->node) == 0);
}

/* Latest first: a short answer holds those that matter. The caller frees *ret. -ENOMEM, or how many. */
static ssize_t list_late(const struct calls *c, const struct fleet_json_query *q, struct late **ret)
{
	size_t cursor = 0, n = 0, room = 0;
	struct worker_view v;

	for (size_t at = 0; calls_worker_next(c, &cursor, &v); at = cursor) {
		if (!is_asked(q, &v))
			continue;
		if (ARRAY_RESERVE(*ret, room, n + 1, SIZE_MAX / 64) < 0)
			return -ENOMEM;
		(*ret)[n++] = (struct late){
			at, (double)v.last_count * (double)sketch_quantile(&v.lag, 0.99)};
	}
	SORT(*ret, n, compare_late);
	return (ssize_t)n;
}

/* @limit: how many more may be written. Returns how many there are, or -ENOMEM. */
static ssize_t put_ranks(struct json_writer *w, const struct fleet *f, const char *cluster,
	const struct fleet_json_query *q, size_t limit)
{
	const struct calls *c = fleet_calls(f, cluster);
	_cleanup_free_ struct late *late = NULL;
	ssize_t count = c ? list_late(c, q, &late) : 0;

	for (size_t i = 0; count > 0 && i < MIN((size_t)count, limit); i++) {
		struct worker_view v;

		calls_worker_next(c, &late[i].cursor, &v);
		json_begin_object(w);
		JSON_PUT(w, JSON_S("cluster_id", cluster),
			JSON_KNOWN("rank", v.world_rank >= 0, v.world_rank), JSON_S("node", v.node),
			JSON_U("pid", v.pid), JSON_U("calls", v.calls),
			JSON_U("last_count", v.last_count),
			JSON_U("lag_p50_ns", sketch_quantile(&v.lag, 0.5)),
			JSON_U("lag_p99_ns", sketch_quantile(&v.lag, 0.99)),
			JSON_U("lag_max_ns", v.lag.max), JSON_U("waited_ns", v.waited_ns),
			JSON_I("last_ns", v.last_ns));
		JSON_PUT_INTO(w, "clock", JSON_I("offset_ns", v.offset_ns),
			JSON_KNOWN("error_ns", v.error_ns != UINT64_MAX, (int64_t)v.error_ns),
			JSON_R("drift_ppm", v.drift_ppm));
		if (q->has_rank || q->node[0])
			put_account(w, fleet_report(f, cluster, v.node, v.pid, v.world_rank));
		json_end_object(w);
	}
	return count;
}

int fleet_json_ranks(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, n = 0, limit = fleet_json_limit(q, FLEET_JSON_RANKS_MAX);
	const char *cluster;

	json_begin_object(w);
	json_begin_array_member(w, "ranks");
	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		ssize_t count = put_ranks(w, f, cluster, q, limit - MIN(n, limit));

		if (count < 0)
			return (int)count;
		n += (size_t)count;
	}
	json_end_array(w);
	json_uint_member(w, "total", n);
	json_end_object(w);
	return 0;
}

/* ---- collectives ---- */

static void put_collective(
	struct json_writer *w, const struct worker_directory *p, const struct collective_view *v)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("comm", TEXT_HEX(v->comm)), JSON_U("seq", v->seq),
		JSON_S("op", WIRE_OP_NAME(SOURCE_NCCL, v->op)), JSON_U("bytes", v->bytes),
		JSON_I("nranks", v->nranks));
	json_begin_object_member(w, "last");
	put_who(w, p, v->last_worker);
	json_end_object(w);
	JSON_PUT(w, JSON_U("lag_ns", v->lag_ns), JSON_U("waited_ns", v->waited_ns),
		JSON_I("last_ns", v->last_ns));
	json_end_object(w);
}

ORDER(compare_times, int64_t, COMPARE(*x, *y))

int64_t fleet_json_median(const int64_t *at, size_t count, int64_t *scratch)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (at[i] != INT64_MIN)
			scratch[n++] = at[i];
	if (!n)
		return 0;
	SORT(scratch, n, compare_times);
	return scratch[(n - 1) / 2];
}

/* Who came when: by rank of the communicator, nanoseconds after the median. */
static int put_arrivals(
	struct json_writer *w, const struct calls *c, const struct fleet_json_query *q)
{
	_cleanup_free_ int64_t *at = calloc(RANKS_MAX, sizeof(*at));
	_cleanup_free_ int64_t *scratch = calloc(RANKS_MAX, sizeof(*scratch));
	int64_t median;
	int n;

	if (!at || !scratch)
		return -ENOMEM;
	n = calls_arrivals(c, q->comm, q->seq, at, RANKS_MAX);
	if (n < 0)
		return n;
	n = MIN(n, RANKS_MAX);
	median = fleet_json_median(at, (size_t)n, scratch);
	json_begin_object(w);
	JSON_PUT(w, JSON_S("comm", TEXT_HEX(q->comm)), JSON_U("seq", q->seq),
		JSON_I("median_ns", median));
	json_begin_array_member(w, "after_median_ns");
	for (int i = 0; i < n; i++)
		at[i] == INT64_MIN ? json_put_null(w) : json_put_int(w, at[i] - median);
	json_end_array(w);
	json_end_object(w);
	return 0;
}

int fleet_json_collectives(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, n = 0,
	       limit = q->limit ? fleet_json_limit(q, FLEET_JSON_COLLECTIVES_MAX) : 100;
	const char *cluster = fleet_json_one_cluster(f, q);
	const struct calls *c = cluster ? fleet_calls(f, cluster) : NULL;
	_cleanup_(worker_directory_done) struct worker_directory workers = {0};
	struct collective_view v;

	if (q->has_comm && q->has_seq)
		return c ? put_arrivals(w, c, q) : -ENOENT;
	if (c && worker_directory_list(c, &workers) < 0)
		return -ENOMEM;
	json_begin_object(w);
	json_begin_array_member(w, "collectives");
	while (c && n < limit && calls_collective_next(c, &cursor, &v)) {
		if (q->has_comm && v.comm != q->comm)
			continue;
		put_collective(w, &workers, &v);
		n++;
	}
	json_end_array(w);
	json_end_object(w);
	return 0;
}

/* ---- hangs and mismatches ---- */

static void put_hang(struct json_writer *w, const char *cluster, const struct worker_directory *p,
	const struct hang_view *h, int64_t now_ns)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("cluster_id", cluster), JSON_S("comm", TEXT_HEX(h->comm)),
		JSON_U("seq", h->seq), JSON_S("op", WIRE_OP_NAME(SOURCE_NCCL, h->op)),
		JSON_I("nranks", h->nranks), JSON_U("waiting", h->waiting),
		JSON_U("missing_count", h->missing));
	json_begin_array_member(w, "missing");
	for (uint32_t i = 0; i < MIN(h->missing, ARRAY_SIZE(h->first_missing)); i++) {
		const struct worker_entry *who = worker_directory_find(p, h->first_missing[i]);
		int32_t rank = who && who->rank >= 0 ? who->rank : h->missing_rank[i];

		JSON_PUT_OBJECT(w, JSON_KNOWN("rank", rank >= 0, rank),
			JSON_S("node", who ? who->node : NULL), JSON_B("ever_seen", who));
	}
	json_end_array(w);
	JSON_PUT(w, JSON_I("since_ns", h->since_ns), JSON_I("lasts_ns", now_ns - h->since_ns));
	json_end_object(w);
}

static void put_side(struct json_writer *w, const struct worker_directory *p, const char *key,
	uint32_t worker, enum calls_mismatch what, uint64_t value)
{
	json_begin_object_member(w, key);
	put_who(w, p, worker);
	if (what == CALLS_MISMATCH_OP)
		json_string_member(w, "op", WIRE_OP_NAME(SOURCE_NCCL, (uint16_t)value));
	else
		json_uint_member(w, "value", value);
	json_end_object(w);
}

static int put_faults(
	struct json_writer *w, struct fleet *f, const struct fleet_json_query *q, bool hangs)
{
	size_t cursor = 0, n = 0, limit = fleet_json_limit(q, FLEET_JSON_EPISODES_MAX);
	const char *cluster;

	json_begin_object(w);
	json_begin_array_member(w, hangs ? "hangs" : "mismatches");
	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);
		_cleanup_(worker_directory_done) struct worker_directory workers = {0};
		struct mismatch_view m;
		struct hang_view h;
		size_t at = 0;

		if (c && worker_directory_list(c, &workers) < 0)
			return -ENOMEM;
		while (c &&
			(hangs ? calls_hang_next(c, &at, &h) : calls_mismatch_next(c, &at, &m))) {
			if (n++ >= limit)
				continue;
			if (hangs)
				put_hang(w, cluster, &workers, &h, q->now_ns);
			else {
				json_begin_object(w);
				JSON_PUT(w, JSON_S("cluster_id", cluster),
					JSON_S("comm", TEXT_HEX(m.comm)), JSON_U("seq", m.seq),
					JSON_S("what", calls_mismatch_id(m.what)));
				put_side(w, &workers, "rank_says", m.worker, m.what, m.value);
				put_side(w, &workers, "others_say", m.other, m.what, m.other_value);
				json_int_member(w, "at_ns", m.at_ns);
				json_end_object(w);
			}
		}
	}
	json_end_array(w);
	json_uint_member(w, "total", n);
	json_end_object(w);
	return 0;
}

int fleet_json_hangs(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	return put_faults(w, f, q, true);
}

int fleet_json_mismatches(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	return put_faults(w, f, q, false);
}
