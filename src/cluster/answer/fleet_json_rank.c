/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json_rank.c - ranks and what they do together: who is last, by how much, who is missing, who
 * disagrees. */
#include "cluster/answer/fleet_json.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/names.h"

#define RANKS_MAX 65536 /* of a communicator, whose arrivals are told */

static void put_rank(struct json_writer *w, int32_t rank)
{
	json_key(w, "rank");
	rank >= 0 ? json_put_int(w, rank) : json_put_null(w);
}

static void put_op(struct json_writer *w, uint16_t op)
{
	char scratch[32];

	json_string_member(w, "op", wire_op_name(SOURCE_NCCL, op, scratch));
}

/* Who a worker is. A view of one is large, so that they are walked once for an answer. */
struct who {
	uint32_t worker, pid;
	int32_t rank;
	const char *node;
};

struct people {
	struct who *who; /* by worker */
	size_t count;
};

static int compare_who(const void *a, const void *b)
{
	const struct who *x = a, *y = b;

	return (x->worker > y->worker) - (x->worker < y->worker);
}

static int people_list(const struct calls *c, struct people *ret)
{
	size_t cursor = 0, room = 0;
	struct worker_view v;

	while (calls_worker_next(c, &cursor, &v)) {
		if (ret->count == room) {
			struct who *more;

			room = MAX(room * 2, (size_t)64);
			more = realloc(ret->who, room * sizeof(*more));
			if (!more)
				return -ENOMEM;
			ret->who = more;
		}
		ret->who[ret->count++] = (struct who){v.worker, v.pid, v.world_rank, v.node};
	}
	if (ret->count)
		qsort(ret->who, ret->count, sizeof(*ret->who), compare_who);
	return 0;
}

static void people_done(struct people *p)
{
	free(p->who);
}

static const struct who *people_find(const struct people *p, uint32_t worker)
{
	struct who key = {.worker = worker};

	return p->count ? bsearch(&key, p->who, p->count, sizeof(key), compare_who) : NULL;
}

/* The members of @worker into an object that is open; nothing if it has been forgotten. */
static void put_who(struct json_writer *w, const struct people *p, uint32_t worker)
{
	const struct who *who = people_find(p, worker);

	if (!who)
		return;
	put_rank(w, who->rank);
	json_string_member(w, "node", who->node);
	json_uint_member(w, "pid", who->pid);
}

static void put_worker(struct json_writer *w, const char *cluster, const struct worker_view *v)
{
	json_begin_object(w);
	json_string_member(w, "cluster_id", cluster);
	put_rank(w, v->world_rank);
	json_string_member(w, "node", v->node);
	json_uint_member(w, "pid", v->pid);
	json_uint_member(w, "calls", v->calls);
	json_uint_member(w, "last_count", v->last_count);
	json_uint_member(w, "lag_p50_ns", sketch_quantile(&v->lag, 0.5));
	json_uint_member(w, "lag_p99_ns", sketch_quantile(&v->lag, 0.99));
	json_uint_member(w, "lag_max_ns", v->lag.max);
	json_uint_member(w, "waited_ns", v->waited_ns);
	json_int_member(w, "last_ns", v->last_ns);
	json_begin_object_member(w, "clock");
	json_int_member(w, "offset_ns", v->offset_ns);
	json_key(w, "error_ns");
	v->error_ns == UINT64_MAX ? json_put_null(w) : json_put_uint(w, v->error_ns);
	json_double_member(w, "drift_ppm", v->drift_ppm);
	json_end_object(w);
	json_end_object(w);
}

int fleet_json_ranks(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, n = 0, limit = fleet_json_limit(q, FLEET_JSON_RANKS_MAX);
	const char *cluster;

	json_begin_object(w);
	json_begin_array_member(w, "ranks");
	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);
		struct worker_view v;
		size_t at = 0;

		while (c && calls_worker_next(c, &at, &v))
			if (n++ < limit)
				put_worker(w, cluster, &v);
	}
	json_end_array(w);
	json_uint_member(w, "total", n);
	json_end_object(w);
	return 0;
}

/* ---- collectives ---- */

static void put_collective(
	struct json_writer *w, const struct people *p, const struct collective_view *v)
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

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

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
	_cleanup_(people_done) struct people people = {0};
	struct collective_view v;

	if (q->has_comm && q->has_seq)
		return c ? put_arrivals(w, c, q) : -ENOENT;
	if (c && people_list(c, &people) < 0)
		return -ENOMEM;
	json_begin_object(w);
	json_begin_array_member(w, "collectives");
	while (c && n < limit && calls_collective_next(c, &cursor, &v)) {
		if (q->has_comm && v.comm != q->comm)
			continue;
		put_collective(w, &people, &v);
		n++;
	}
	json_end_array(w);
	json_end_object(w);
	return 0;
}

/* ---- hangs and mismatches ---- */

static void put_missing(struct json_writer *w, const struct people *p, const struct hang_view *h)
{
	json_begin_array_member(w, "missing");
	for (uint32_t i = 0; i < MIN(h->missing, ARRAY_SIZE(h->first_missing)); i++) {
		const struct who *who = people_find(p, h->first_missing[i]);

		json_begin_object(w);
		put_rank(w, who && who->rank >= 0 ? who->rank : h->missing_rank[i]);
		json_string_member(w, "node", who ? who->node : NULL);
		json_bool_member(w, "ever_seen", who);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_hang(struct json_writer *w, const char *cluster, const struct people *p,
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
	put_missing(w, p, h);
	json_int_member(w, "since_ns", h->since_ns);
	json_int_member(w, "lasts_ns", now_ns - h->since_ns);
	json_end_object(w);
}

int fleet_json_hangs(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, n = 0, limit = fleet_json_limit(q, FLEET_JSON_EPISODES_MAX);
	const char *cluster;

	json_begin_object(w);
	json_begin_array_member(w, "hangs");
	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);
		_cleanup_(people_done) struct people people = {0};
		struct hang_view h;
		size_t at = 0;

		if (c && people_list(c, &people) < 0)
			return -ENOMEM;
		while (c && calls_hang_next(c, &at, &h))
			if (n++ < limit)
				put_hang(w, cluster, &people, &h, q->now_ns);
	}
	json_end_array(w);
	json_uint_member(w, "total", n);
	json_end_object(w);
	return 0;
}

static const char *mismatch_id(enum calls_mismatch m)
{
	static const char *const ids[] = {
#define X(NAME, id) [CALLS_MISMATCH_##NAME] = id,
		CALLS_MISMATCHES(X)
#undef X
	};

	return ids[m];
}

static void put_side(struct json_writer *w, const struct people *p, const char *key,
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

int fleet_json_mismatches(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, n = 0, limit = fleet_json_limit(q, FLEET_JSON_EPISODES_MAX);
	const char *cluster;

	json_begin_object(w);
	json_begin_array_member(w, "mismatches");
	while (fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);
		_cleanup_(people_done) struct people people = {0};
		struct mismatch_view m;
		size_t at = 0;

		if (c && people_list(c, &people) < 0)
			return -ENOMEM;
		while (c && calls_mismatch_next(c, &at, &m)) {
			if (n++ >= limit)
				continue;
			json_begin_object(w);
			json_string_member(w, "cluster_id", cluster);
			fleet_json_comm_member(w, "comm", m.comm);
			json_uint_member(w, "seq", m.seq);
			json_string_member(w, "what", mismatch_id(m.what));
			put_side(w, &people, "rank_says", m.worker, m.what, m.value);
			put_side(w, &people, "others_say", m.other, m.what, m.other_value);
			json_int_member(w, "at_ns", m.at_ns);
			json_end_object(w);
		}
	}
	json_end_array(w);
	json_uint_member(w, "total", n);
	json_end_object(w);
	return 0;
}
