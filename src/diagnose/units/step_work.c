/* SPDX-License-Identifier: Apache-2.0 */
/* step_work.c - see step_work.h. Launches and copied bytes of the buckets that lie wholly before or
 * after the change, per step. A longer sequence in the same number of kernels is not seen. */
#include "diagnose/units/step_work.h"

#include "diagnose/calls/baseline.h"
#include "wire/op_kind.h"

#define BUCKET_NS  ((int64_t)(5 * NS_PER_S))
#define MORE_SHARE 0.5

struct work_rate { /* in whole buckets */
	double launches, bytes;
	int64_t first_ns, last_ns; /* their starts */
};

static void rate_add(struct work_rate *r, const struct aggregate *a)
{
	r->first_ns = r->first_ns ? MIN(r->first_ns, a->bucket.ns) : a->bucket.ns;
	r->last_ns = MAX(r->last_ns, a->bucket.ns);
	if (op_kind_is_launch(a->source, a->op))
		r->launches += (double)a->sketch.count;
	else
		r->bytes += (double)a->sum_arg0;
}

static double per_step(double sum, const struct work_rate *r, uint64_t step_ns)
{
	return r->last_ns ? sum * (double)step_ns / (double)(r->last_ns - r->first_ns + BUCKET_NS)
			  : 0;
}

struct step_work step_work_compare(const struct recording *rec, const struct step_list *l,
	int64_t since_ns, uint64_t before_ns, uint64_t after_ns)
{
	int64_t from = l->items[0].start_ns, to = l->items[l->count - 1].end_ns;
	double needed =
		1 + MORE_SHARE * ((double)after_ns / (double)MAX(before_ns, UINT64_C(1)) - 1);
	struct work_rate before = {0}, after = {0};
	struct step_work w;

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];
		bool is_work = op_kind_is_cuda(a->source) && !(a->flags & WIRE_NESTED) &&
			       a->pid == l->pid && a->sum_arg0 < UINT64_C(1) << 50;

		if (!is_work || a->bucket.ns < from || a->bucket.ns + BUCKET_NS > to)
			continue;
		if (a->bucket.ns + BUCKET_NS <= since_ns)
			rate_add(&before, a);
		else if (a->bucket.ns >= since_ns)
			rate_add(&after, a);
	}
	w = (struct step_work){.launches_before = per_step(before.launches, &before, before_ns),
		.launches_after = per_step(after.launches, &after, after_ns),
		.bytes_before = per_step(before.bytes, &before, before_ns),
		.bytes_after = per_step(after.bytes, &after, after_ns)};
	w.is_more = (w.launches_before > 0 && w.launches_after >= needed * w.launches_before) ||
		    (w.bytes_before > 0 && w.bytes_after >= needed * w.bytes_before);
	return w;
}
