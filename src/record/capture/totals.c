/* SPDX-License-Identifier: Apache-2.0 */
/* totals.c - see totals.h. Runs on the tracer's thread, once a second.
 * Invariant: for every key, all + what the kernel gained since `seen` = all calls ever counted.
 * Several keys of the kernel (the kinds of a copy) are one total; what was seen is kept for each.
 */
#include "record/capture/totals.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/idmap.h"
#include "record/capture/use.h"
#include "wire/names.h"
#include "wire/op_kind.h"

DEFINE_CLEANUP(struct totals *, totals_free)

struct total_kind *total_kind_of(struct total *v, unsigned flags, int *ret_err)
{
	unsigned kind = flags >> WIRE_AGG_KIND;

	*ret_err = 0;
	if (!kind || kind >= WIRE_KINDS)
		return NULL;
	v->kinds[kind] = v->kinds[kind] ?: calloc(1, sizeof(*v->kinds[kind]));
	if (!v->kinds[kind])
		*ret_err = -ENOMEM;
	return v->kinds[kind];
}

int total_gain(struct total *v, struct total_kind *kind, const struct sketch *gain, uint64_t bytes)
{
	if (sparse_reserve(&v->all, gain) < 0 || sparse_reserve(&v->bucket, gain) < 0 ||
		(kind && sparse_reserve(&kind->all, gain) < 0))
		return -ENOMEM;
	sparse_add(&v->all, gain);
	sparse_add(&v->bucket, gain);
	v->bytes += bytes;
	v->bucket_bytes += bytes;
	if (!kind)
		return 0;
	sparse_add(&kind->all, gain);
	kind->bytes += bytes;
	return 0;
}

void total_seen_get(const struct total_seen *seen, struct wire_agg *ret)
{
	*ret = (struct wire_agg){.count = seen->calls.count,
		.sent = seen->sent,
		.sum_ns = seen->calls.sum,
		.min_ns = seen->calls.min,
		.max_ns = seen->calls.max,
		.sum_arg0 = seen->sum_arg0};
	for (uint32_t i = 0; i < seen->calls.used; i++)
		ret->hist[seen->calls.buckets[i].bucket] = (uint32_t)seen->calls.buckets[i].count;
}

/* Counters only grow, but for a table entry that was made anew and 32 bits that wrap: so it is emptied
 * first. */
void total_seen_set(
	struct total_seen *seen, const struct wire_agg *now, const struct sketch *counts)
{
	seen->calls.used = 0;
	seen->calls.count = seen->calls.sum = seen->calls.min = seen->calls.max = 0;
	sparse_add(&seen->calls, counts);
	seen->calls.count = now->count;
	seen->calls.sum = now->sum_ns;
	seen->calls.min = now->min_ns;
	seen->calls.max = now->max_ns;
	seen->sent = now->sent;
	seen->sum_arg0 = now->sum_arg0;
}

void total_seen_clear(struct total_seen *seen)
{
	sparse_done(&seen->calls);
	*seen = (struct total_seen){0};
}

static int sparse_fold(struct sparse *to, const struct sparse *from)
{
	struct sketch more = {0};
	int r;

	sparse_merge(&more, from);
	r = sparse_reserve(to, &more);
	if (r == 0)
		sparse_add(to, &more);
	return r;
}

int total_fold(struct total *to, struct total *from)
{
	int r = sparse_fold(&to->all, &from->all);

	if (r < 0)
		return r;
	sparse_done(&from->all);
	to->bytes += from->bytes;
	from->bytes = 0;
	for (unsigned i = 1; i < WIRE_KINDS; i++) {
		struct total_kind *there, *kind = from->kinds[i];

		if (!kind)
			continue;
		there = total_kind_of(to, i << WIRE_AGG_KIND, &r);
		r = r ?: sparse_fold(&there->all, &kind->all);
		if (r < 0)
			return r;
		sparse_done(&kind->all);
		there->bytes += kind->bytes;
		kind->bytes = 0;
	}
	return 0;
}

void total_free(struct total *v)
{
	for (unsigned i = 0; i < WIRE_KINDS; i++) {
		if (!v->kinds[i])
			continue;
		sparse_done(&v->kinds[i]->all);
		sparse_done(&v->kinds[i]->seen.calls);
		free(v->kinds[i]);
	}
	sparse_done(&v->all);
	sparse_done(&v->bucket);
	sparse_done(&v->seen.calls);
	free(v);
}

#define TOTALS_MAX 65536 /* (process, op) pairs at a time; ended processes fold into one */
#define GONE_MAX   65536

struct totals {
	int map_fd;
	int cpus;
	size_t stride;
	char *values; /* one reading: a struct wire_agg per CPU */
	struct idmap by_key;
	struct idmap gone;     /* processes that ended since the last reading */
	totals_weight *weight; /* of launches; NULL: 1 */
	void *weight_arg;
	wall_time read; /* when the last reading began */
};

static uint64_t key_id(const struct wire_agg_key *k)
{
	uint64_t id;

	memcpy(&id, k, sizeof(id));
	return id;
}

void totals_free(struct totals *t)
{
	size_t cursor = 0;
	struct total *v;

	while ((v = idmap_next(&t->by_key, &cursor, NULL)))
		total_free(v);
	idmap_done(&t->by_key);
	idmap_done(&t->gone);
	free(t->values);
	free(t);
}

int totals_new(struct probe *p, struct totals **ret)
{
	_cleanup_(totals_freep) struct totals *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->by_key = IDMAP_INIT(TOTALS_MAX);
	t->gone = IDMAP_INIT(GONE_MAX);
	t->read = wall_now();
	t->map_fd = probe_map(p, "aggregates");
	t->cpus = libbpf_num_possible_cpus();
	t->stride = (sizeof(struct wire_agg) + 7) & ~(size_t)7;
	t->values = calloc((size_t)t->cpus, t->stride);
	if (!t->values)
		return -ENOMEM;
	*ret = TAKE(t);
	return 0;
}

static void sum_cpus(const struct totals *t, struct wire_agg *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (int cpu = 0; cpu < t->cpus; cpu++) {
		const struct wire_agg *a = (const void *)(t->values + (size_t)cpu * t->stride);

		if (!a->count)
			continue;
		if (!sum->count || a->min_ns < sum->min_ns)
			sum->min_ns = a->min_ns;
		sum->max_ns = MAX(sum->max_ns, a->max_ns);
		sum->count += a->count;
		sum->sent += a->sent;
		sum->sum_ns += a->sum_ns;
		sum->sum_arg0 += a->sum_arg0;
		for (int i = 0; i < BUCKET_COUNT; i++)
			sum->hist[i] += a->hist[i];
		if (a->comm[0]) /* only the CPU that made the entry has it */
			memcpy(sum->comm, a->comm, sizeof(sum->comm));
	}
}

/* The total of @key, whatever the kind in it. */
static struct total *total_of(struct totals *t, const struct wire_agg_key *key)
{
	struct wire_agg_key k = *key;
	struct total *v;

	k.flags &= WIRE_NESTED;
	v = idmap_get(&t->by_key, key_id(&k));
	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->key = k;
	v->since = t->read;
	if (idmap_put(&t->by_key, key_id(&k), v) < 0) {
		free(v);
		return NULL;
	}
	return v;
}

void totals_weigh(struct totals *t, totals_weight *weight, void *arg)
{
	t->weight = weight;
	t->weight_arg = arg;
}

static int take_gain(struct totals *t, struct total *v, struct total_kind *kind,
	struct total_seen *seen, const struct wire_agg *now)
{
	struct sketch gain = {0}, counts = {.count = now->count};
	struct wire_agg before;
	uint64_t bytes, hits;
	int r;

	for (unsigned b = 0; b < BUCKET_COUNT; b++)
		counts.hist[b] = now->hist[b];
	r = sparse_reserve(&seen->calls, &counts);
	if (r < 0)
		return r;
	total_seen_get(seen, &before);
	sketch_add_delta(&gain, now, &before);
	hits = gain.count;
	bytes = now->sum_arg0 - before.sum_arg0;
	if (t->weight && op_kind_is_governed(v->key.source, v->key.op)) {
		double weight = t->weight(t->weight_arg, v->key.pid, hits);

		sketch_scale(&gain, weight);
		bytes = (uint64_t)((double)bytes * weight);
	}
	r = total_gain(v, kind, &gain, bytes);
	if (r < 0)
		return r;
	v->hits += hits;
	v->bucket_hits += hits;
	v->bucket_stored += now->sent - before.sent;
	total_seen_set(seen, now, &counts);
	return 0;
}

static int read_key(struct totals *t, const struct wire_agg_key *k)
{
	struct total_kind *kind;
	struct total_seen *seen;
	struct wire_agg now;
	struct total *v;
	int r;

	if (!wire_op_find(k->source, k->op))
		return 0; /* not an event: the agent measuring itself */
	if (bpf_map_lookup_elem(t->map_fd, k, t->values) < 0)
		return errno == ENOENT ? 0 : -errno;
	sum_cpus(t, &now);
	if (!now.count)
		return 0; /* made before it is used */
	v = total_of(t, k);
	if (!v)
		return -ENOMEM;
	kind = total_kind_of(v, k->flags, &r);
	if (r < 0)
		return r;
	seen = kind ? &kind->seen : &v->seen;
	memcpy(v->comm, now.comm, sizeof(v->comm));
	v->comm[sizeof(v->comm) - 1] = 0;
	return now.count == seen->calls.count ? 0 : take_gain(t, v, kind, seen, &now);
}

/* Entries of ended processes leave the kernel now that they were read for the last time; what they
 * gained stays here until it is flushed. */
static void forget_gone(struct totals *t)
{
	size_t cursor = 0;
	struct total *v;

	if (!t->gone.used)
		return;
	while ((v = idmap_next(&t->by_key, &cursor, NULL)))
		if (idmap_get(&t->gone, v->key.pid)) {
			struct wire_agg_key k = v->key;

			bpf_map_delete_elem(t->map_fd, &k);
			total_seen_clear(&v->seen);
			for (unsigned i = 1; i < WIRE_KINDS; i++) {
				if (!v->kinds[i])
					continue;
				k.flags = (uint8_t)(v->key.flags | i << WIRE_AGG_KIND);
				bpf_map_delete_elem(t->map_fd, &k);
				total_seen_clear(&v->kinds[i]->seen);
			}
			v->gone = true;
		}
	idmap_done(&t->gone);
}

int totals_read(struct totals *t)
{
	wall_time now = wall_now();
	struct wire_agg_key key, next;
	int r = bpf_map_get_next_key(t->map_fd, NULL, &next);

	while (r == 0) {
		int q = read_key(t, &next);

		if (q < 0)
			return q;
		key = next;
		r = bpf_map_get_next_key(t->map_fd, &key, &next);
	}
	if (errno != ENOENT)
		return -errno;
	t->read = now;
	forget_gone(t);
	return 0;
}

int totals_more(struct totals *t, uint32_t pid, double share)
{
	size_t cursor = 0;
	struct total *v;

	while ((v = idmap_next(&t->by_key, &cursor, NULL))) {
		struct sketch more = {0};
		int r;

		if (v->key.pid != pid || !op_kind_is_governed(v->key.source, v->key.op))
			continue;
		sparse_merge(&more, &v->all);
		sketch_scale(&more, share);
		r = total_gain(v, NULL, &more, (uint64_t)((double)v->bytes * share));
		if (r < 0)
			return r;
	}
	return 0;
}

int totals_add(struct totals *t, const struct event *e)
{
	struct wire_agg_key k = {
		.pid = e->pid, .source = e->source, .op = e->op, .flags = e->flags & WIRE_NESTED};
	struct total *v = total_of(t, &k);
	struct total_kind *kind = NULL;
	struct sketch one = {0};
	int r = 0;

	if (!v)
		return -ENOMEM;
	if (copy_has_kind(e->source, e->op))
		kind = total_kind_of(
			v, (MIN((uint32_t)e->arg1, WIRE_KIND_OTHER - 1u) + 1) << WIRE_AGG_KIND, &r);
	if (r < 0)
		return r;
	memcpy(v->comm, e->comm, sizeof(v->comm));
	sketch_add(&one, e->dur_ns, 1);
	r = total_gain(v, kind, &one, e->flags & WIRE_BYTES ? e->arg0 : 0);
	v->bucket_hits += r == 0;
	v->bucket_stored += r == 0;
	return r;
}

/* Totals of ended processes live on in one total per op, under process 0. */
static int fold_ended(struct totals *t)
{
	struct total *v, *ended;
	size_t cursor = 0, room;
	int r;

	while ((v = idmap_next(&t->by_key, &cursor, NULL))) {
		struct wire_agg_key k = v->key;

		if (!v->gone || !k.pid || v->bucket.count)
			continue;
		k.pid = 0;
		room = t->by_key.capacity;
		ended = total_of(t, &k);
		if (!ended)
			return -ENOMEM;
		if (t->by_key.capacity != room) { /* a new one, for which it was laid out anew */
			cursor = 0;
			continue;
		}
		r = total_fold(ended, v);
		if (r < 0)
			return r;
		total_free(idmap_take(&t->by_key, &cursor));
	}
	return 0;
}

int totals_flush(struct totals *t, wall_time bucket, totals_sink *sink, void *arg)
{
	size_t cursor = 0;
	struct total *v;
	int refused = 0, r;

	while ((v = idmap_next(&t->by_key, &cursor, NULL))) {
		struct aggregate a = {.bucket = bucket,
			.pid = v->key.pid,
			.source = v->key.source,
			.op = v->key.op,
			.flags = v->key.flags,
			.stored = v->bucket_stored,
			.estimated = v->bucket.count - MIN(v->bucket_hits, v->bucket.count),
			.sum_arg0 = v->bucket_bytes};

		if (!v->bucket.count)
			continue;
		sparse_merge(&a.sketch, &v->bucket);
		if (!sink(arg, &a)) {
			refused++;
			continue;
		}
		v->bucket_hits = v->bucket_stored = v->bucket_bytes = 0;
		sparse_done(&v->bucket);
	}
	r = fold_ended(t);
	return r < 0 ? r : refused;
}

int totals_process_gone(struct totals *t, uint32_t pid)
{
	return idmap_put(&t->gone, pid, t);
}

void totals_busiest(struct totals *t, struct use *ret)
{
	struct idmap sums = IDMAP_INIT(TOTALS_MAX);
	struct use *u, spare = {0};
	size_t cursor = 0;
	struct total *v;

	while ((v = idmap_next(&t->by_key, &cursor, NULL))) {
		if (!op_kind_is_gpu(v->key.source))
			continue;
		u = idmap_get(&sums, v->key.pid);
		if (!u) {
			u = calloc(1, sizeof(*u));
			if (!u || idmap_put(&sums, v->key.pid, u) < 0) {
				free(u);
				use_add(&spare, v);
				continue;
			}
			u->pid = v->key.pid;
		}
		use_add(u, v);
	}
	*ret = (struct use){0};
	cursor = 0;
	while ((u = idmap_next(&sums, &cursor, NULL))) {
		if (u->launches + u->others > ret->launches + ret->others)
			*ret = *u;
		free(u);
	}
	idmap_done(&sums);
}

const struct total *totals_next(const struct totals *t, size_t *cursor)
{
	return idmap_next(&t->by_key, cursor, NULL);
}
