/* SPDX-License-Identifier: Apache-2.0 */
/* totals.c - see totals.h. Runs on the tracer's thread, once a second.
 * Invariant: for every key, all + what the kernel gained since `seen` = all calls ever counted. */
#include "agent/capture/totals.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/idmap.h"
#include "wire/names.h"

#define TOTALS_MAX 65536 /* (process, op) pairs at a time; ended processes fold into one */
#define GONE_MAX   65536

struct totals {
	int map_fd;
	int cpus;
	size_t stride;
	char *values; /* one reading: a struct wire_agg per CPU */
	struct idmap by_key;
	struct idmap gone; /* processes that ended since the last reading */
	double weight;     /* of launches */
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
	void *v;

	while ((v = idmap_next(&t->by_key, &cursor, NULL)))
		free(v);
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
	t->weight = 1;
	t->map_fd = probe_map_aggregates(p);
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
		memcpy(sum->comm, a->comm, sizeof(sum->comm));
	}
}

static struct total *total_of(struct totals *t, const struct wire_agg_key *k)
{
	struct total *v = idmap_get(&t->by_key, key_id(k));

	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->key = *k;
	v->bucket = (struct aggregate){
		.pid = k->pid, .source = k->source, .op = k->op, .flags = k->flags};
	if (idmap_put(&t->by_key, key_id(k), v) < 0) {
		free(v);
		return NULL;
	}
	return v;
}

bool totals_is_launch(unsigned source, unsigned op)
{
	if (source == SOURCE_CUDA)
		return op == CUDA_LAUNCH || op == CUDA_LAUNCH_EXC || op == CUDA_LAUNCH_COOP;
	return source == SOURCE_DRIVER &&
	       (op == DRIVER_LAUNCH || op == DRIVER_LAUNCH_EX || op == DRIVER_LAUNCH_COOP);
}

void totals_weigh(struct totals *t, double weight)
{
	t->weight = weight;
}

static int read_key(struct totals *t, const struct wire_agg_key *k)
{
	struct sketch gain = {0};
	struct wire_agg now;
	struct total *v;

	if (!wire_op_find(k->source, k->op))
		return 0; /* not an event: the agent measuring itself */
	if (bpf_map_lookup_elem(t->map_fd, k, t->values) < 0)
		return errno == ENOENT ? 0 : -errno;
	v = total_of(t, k);
	if (!v)
		return -ENOMEM;
	sum_cpus(t, &now);
	memcpy(v->comm, now.comm, sizeof(v->comm));
	v->comm[sizeof(v->comm) - 1] = 0;
	if (now.count == v->seen.count)
		return 0;
	sketch_add_delta(&gain, &now, &v->seen);
	if (totals_is_launch(k->source, k->op))
		sketch_scale(&gain, t->weight);
	sketch_merge(&v->all, &gain);
	sketch_merge(&v->bucket.sketch, &gain);
	v->bucket.stored += now.sent - v->seen.sent;
	v->bucket.sum_arg0 += now.sum_arg0 - v->seen.sum_arg0;
	v->seen = now;
	return 0;
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
			bpf_map_delete_elem(t->map_fd, &v->key);
			memset(&v->seen, 0, sizeof(v->seen));
			v->gone = true;
		}
	idmap_done(&t->gone);
}

int totals_read(struct totals *t)
{
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
	forget_gone(t);
	return 0;
}

int totals_add(struct totals *t, const struct event *e)
{
	struct wire_agg_key k = {
		.pid = e->pid, .source = e->source, .op = e->op, .flags = e->flags & WIRE_NESTED};
	struct total *v = total_of(t, &k);

	if (!v)
		return -ENOMEM;
	memcpy(v->comm, e->comm, sizeof(v->comm));
	sketch_add(&v->all, e->dur_ns, 1);
	sketch_add(&v->bucket.sketch, e->dur_ns, 1);
	v->bucket.stored++;
	if (e->flags & WIRE_BYTES)
		v->bucket.sum_arg0 += e->arg0;
	return 0;
}

/* Totals of ended processes live on in one total per op, under process 0. */
static int fold_ended(struct totals *t)
{
	struct total *v, *ended;
	size_t cursor = 0;
	uint64_t id;

	while ((v = idmap_next(&t->by_key, &cursor, &id))) {
		struct wire_agg_key k = v->key;

		if (!v->gone || !k.pid || v->bucket.sketch.count)
			continue;
		k.pid = 0;
		ended = total_of(t, &k);
		if (!ended)
			return -ENOMEM;
		sketch_merge(&ended->all, &v->all);
		free(idmap_remove(&t->by_key, id));
		cursor = 0;
	}
	return 0;
}

int totals_flush(struct totals *t, wall_time bucket, totals_sink *sink, void *arg)
{
	size_t cursor = 0;
	struct total *v;
	int refused = 0, r;

	while ((v = idmap_next(&t->by_key, &cursor, NULL))) {
		if (!v->bucket.sketch.count)
			continue;
		v->bucket.bucket = bucket;
		if (!sink(arg, &v->bucket)) {
			refused++;
			continue;
		}
		v->bucket.stored = 0;
		v->bucket.sum_arg0 = 0;
		memset(&v->bucket.sketch, 0, sizeof(v->bucket.sketch));
	}
	r = fold_ended(t);
	return r < 0 ? r : refused;
}

int totals_process_gone(struct totals *t, uint32_t pid)
{
	return idmap_put(&t->gone, pid, t);
}

void totals_busiest(struct totals *t, uint64_t *ret_launches, uint64_t *ret_others)
{
	struct idmap sums = IDMAP_INIT(TOTALS_MAX);
	struct process_hits {
		uint64_t launches, others;
	} *best = NULL, *h;
	size_t cursor = 0;
	struct total *v;

	while ((v = idmap_next(&t->by_key, &cursor, NULL))) {
		uint64_t gain = v->seen.count - MIN(v->hits_taken, v->seen.count);

		v->hits_taken = v->seen.count;
		if (v->key.source != SOURCE_CUDA && v->key.source != SOURCE_DRIVER &&
			v->key.source != SOURCE_GRAPH && v->key.source != SOURCE_NCCL)
			continue;
		h = idmap_get(&sums, v->key.pid);
		if (!h) {
			h = calloc(1, sizeof(*h));
			if (!h || idmap_put(&sums, v->key.pid, h) < 0) {
				free(h);
				continue;
			}
		}
		*(totals_is_launch(v->key.source, v->key.op) ? &h->launches : &h->others) += gain;
	}
	*ret_launches = *ret_others = 0;
	cursor = 0;
	while ((h = idmap_next(&sums, &cursor, NULL)))
		if (!best || h->launches + h->others > best->launches + best->others)
			best = h;
	if (best) {
		*ret_launches = best->launches;
		*ret_others = best->others;
	}
	cursor = 0;
	while ((h = idmap_next(&sums, &cursor, NULL)))
		free(h);
	idmap_done(&sums);
}

const struct total *totals_next(const struct totals *t, size_t *cursor)
{
	return idmap_next(&t->by_key, cursor, NULL);
}
