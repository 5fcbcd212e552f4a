/* SPDX-License-Identifier: Apache-2.0 */
/* total.c - see total.h. */
#include "record/capture/total.h"

#include <errno.h>
#include <stdlib.h>

struct total_kind *total_kind_of(struct total *v, unsigned flags, int *ret_err)
{
	unsigned kind = flags >> WIRE_AGG_KIND;

	*ret_err = 0;
	if (!kind || kind >= WIRE_KINDS)
		return NULL;
	if (!v->kinds[kind])
		v->kinds[kind] = calloc(1, sizeof(*v->kinds[kind]));
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
		if (r == 0)
			r = sparse_fold(&there->all, &kind->all);
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
