/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json_rank.c - ranks and what they do together: who is last, by how much, who is missing, who
 * disagrees. */
#include "cluster/answer/fleet_json.h"

#include "base/array.h"
#include "base/search.h"
#include "wire/names.h"

#define RANKS_MAX 65536 /* of a communicator, whose arrivals are told */

static void put_op(struct json_writer *w, uint16_t op)
{
	char scratch[32];

	json_string_member(w, "op", wire_op_name(SOURCE_NCCL, op, scratch));
}

/* The members of @worker into an object that is open; nothing if it has been forgotten. */
static void put_who(struct json_writer *w, const struct worker_directory *p, uint32_t worker)
{
	const struct worker_entry *who = worker_directory_find(p, worker);

	if (!who)
		return;
	json_known_member(w, "rank", who->rank >= 0, who->rank);
	json_string_member(w, "node", who->node);
	json_uint_member(w, "pid", who->pid);
}

/* What its agent says of it: what it does, where its slow steps lose their time, and why. */
static void put_account(struct json_writer *w, const struct push_report *r)
{
	json_key(w, "account");
	if (!r) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_int_member(w, "sent_ns", r->sent_ns);
	json_string_member(w, "doing", push_doing_id(r->doing));
	fleet_json_text(w, "doing_where", r->doing_where);
	json_known_member(w, "step_ns", r->step_ns, (int64_t)r->step_ns);
	json_known_member(w, "ordinary_ns", r->ordinary_ns, (int64_t)r->ordinary_ns);
	fleet_json_text(w, "line", r->line);
	json_known_member(w, "line_ns", r->line_ns, (int64_t)r->line_ns);
	fleet_json_text(w, "cause", r->cause);
	fleet_json_text(w, "fix", r->fix);
	fleet_json_text(w, "incident", r->incident);
	json_double_member(w, "confidence", r->confidence);
	json_end_object(w);
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
	if (n)
		qsort(*ret, n, sizeof(**ret), compare_late);
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
		json_string_member(w, "cluster_id", cluster);
		json_known_member(w, "rank", v.world_rank >= 0, v.world_rank);
		json_string_member(w, "node", v.node);
		json_uint_member(w, "pid", v.pid);
		json_uint_member(w, "calls", v.calls);
		json_uint_member(w, "last_count", v.last_count);
		json_uint_member(w, "lag_p50_ns", sketch_quantile(&v.lag, 0.5));
		json_uint_member(w, "lag_p99_ns", sketch_quantile(&v.lag, 0.99));
		json_uint_member(w, "lag_max_ns", v.lag.max);
		json_uint_member(w, "waited_ns", v.waited_ns);
		json_int_member(w, "last_ns", v.last_ns);
		json_begin_object_member(w, "clock");
		json_int_member(w, "offset_ns", v.offset_ns);
		json_known_member(w, "error_ns", v.error_ns != UINT64_MAX, (int64_t)v.error_ns);
		json_double_member(w, "drift_ppm", v.drift_ppm);
		json_end_object(w);
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
	fleet_json_comm_member(w, "comm", v->comm);
	json_uint_member(w, "seq", v->seq);
	put_op(w, v->op);
	json_uint_member(w, "bytes", v->bytes);
	json_int_member(w, "nranks", v->nranks);
	json_begin_object_member(w, "last");
	put_who(w, p, v->last_worker);
	json_end_object(w);
	json_uint_member(w, "lag_ns", v->lag_ns);
	json_uint_member(w, "waited_ns", v->waited_ns);
	json_int_member(w, "last_ns", v->last_ns);
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
	qsort(scratch, n, sizeof(*scratch), compare_times);
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
	fleet_json_comm_member(w, "comm", q->comm);
	json_uint_member(w, "seq", q->seq);
	json_int_member(w, "median_ns", median);
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
	json_string_member(w, "cluster_id", cluster);
	fleet_json_comm_member(w, "comm", h->comm);
	json_uint_member(w, "seq", h->seq);
	put_op(w, h->op);
	json_int_member(w, "nranks", h->nranks);
	json_uint_member(w, "waiting", h->waiting);
	json_uint_member(w, "missing_count", h->missing);
	json_begin_array_member(w, "missing");
	for (uint32_t i = 0; i < MIN(h->missing, ARRAY_SIZE(h->first_missing)); i++) {
		const struct worker_entry *who = worker_directory_find(p, h->first_missing[i]);
		int32_t rank = who && who->rank >= 0 ? who->rank : h->missing_rank[i];

		json_begin_object(w);
		json_known_member(w, "rank", rank >= 0, rank);
		json_string_member(w, "node", who ? who->node : NULL);
		json_bool_member(w, "ever_seen", who);
		json_end_object(w);
	}
	json_end_array(w);
	json_int_member(w, "since_ns", h->since_ns);
	json_int_member(w, "lasts_ns", now_ns - h->since_ns);
	json_end_object(w);
}

static void put_side(struct json_writer *w, const struct worker_directory *p, const char *key,
	uint32_t worker, enum calls_mismatch what, uint64_t value)
{
	json_begin_object_member(w, key);
	put_who(w, p, worker);
	if (what == CALLS_MISMATCH_OP)
		put_op(w, (uint16_t)value);
	else
		json_uint_member(w, "value", value);
	json_end_object(w);
}

static void put_mismatch(struct json_writer *w, const char *cluster,
	const struct worker_directory *p, const struct mismatch_view *m)
{
	json_begin_object(w);
	json_string_member(w, "cluster_id", cluster);
	fleet_json_comm_member(w, "comm", m->comm);
	json_uint_member(w, "seq", m->seq);
	json_string_member(w, "what", calls_mismatch_id(m->what));
	put_side(w, p, "rank_says", m->worker, m->what, m->value);
	put_side(w, p, "others_say", m->other, m->what, m->other_value);
	json_int_member(w, "at_ns", m->at_ns);
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
			else
				put_mismatch(w, cluster, &workers, &m);
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
