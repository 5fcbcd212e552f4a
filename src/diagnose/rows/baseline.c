/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.c - groups the calls of a recording by (process, op) and finds their ordinary duration.
 *
 * From 5 s aggregates, which hold all calls: the 25th percentile by bucket of the buckets' medians,
 * so a contention that lasts for three quarters of the recording leaves it alone. Without
 * aggregates: the median of the stored rows. Those are a selection that prefers slow calls, so the
 * baseline errs upwards and slowness is missed, never invented.
 *
 * Driver calls made inside runtime calls are groups of their own. O(n + buckets log buckets);
 * memory is 8 bytes for each stored call of ops without aggregates, plus the groups. */
#include "diagnose/rows/baseline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "stat/robust.h"
#include "wire/op_kind.h"

#define CALM_QUANTILE 0.25
#define BUCKET_CALLS  4 /* a bucket with fewer calls has no median worth the name */
#define BUCKET_NS     ((int64_t)(5 * NS_PER_S))
#define CONTEXT_NS    ((int64_t)(10 * NS_PER_S)) /* a first call beyond that is a hang */
#define NO_PROCESS    UINT32_MAX

struct bucket_row { /* one aggregate, reduced */
	uint32_t group;
	size_t index;
	uint64_t median, tail;
};

static uint64_t key_of(uint32_t pid, uint8_t source, bool nested, uint16_t op)
{
	return (uint64_t)pid << 32 | (uint64_t)source << 24 | (uint64_t)nested << 16 | op;
}

static size_t key_hash(uint64_t k)
{
	k ^= k >> 33;
	k *= UINT64_C(0xff51afd7ed558ccd);
	k ^= k >> 33;
	k *= UINT64_C(0xc4ceb9fe1a85ec53);
	return (size_t)(k ^ k >> 33);
}

static uint64_t group_key(const struct op_group *g)
{
	return key_of(g->pid, g->source, g->nested, g->op);
}

static int table_grow(struct op_table *t)
{
	size_t n = t->slots ? (t->slot_mask + 1) * 2 : 256;
	uint32_t *slots;

	if (n > UINT32_MAX)
		return -ENOMEM;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->count; i++) {
		size_t at = key_hash(group_key(&t->groups[i])) & (n - 1);

		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->slot_mask = n - 1;
	return 0;
}

/* The array has room for half of the slots, so it grows together with the table. */
static int group_find(
	struct op_table *t, uint32_t pid, uint8_t source, bool nested, uint16_t op, uint32_t *ret)
{
	uint64_t key = key_of(pid, source, nested, op);
	size_t at;

	if (!t->slots || t->count * 2 > t->slot_mask) {
		struct op_group *groups;

		if (table_grow(t) < 0)
			return -ENOMEM;
		groups = reallocarray(t->groups, t->slot_mask / 2 + 2, sizeof(*groups));
		if (!groups)
			return -ENOMEM;
		t->groups = groups;
	}
	for (at = key_hash(key) & t->slot_mask; t->slots[at]; at = (at + 1) & t->slot_mask)
		if (group_key(&t->groups[t->slots[at] - 1]) == key) {
			*ret = t->slots[at] - 1;
			return 0;
		}
	*ret = (uint32_t)t->count++;
	t->slots[at] = *ret + 1;
	t->groups[*ret] = (struct op_group){.pid = pid,
		.source = source,
		.nested = nested,
		.op = op,
		.process = NO_PROCESS,
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN};
	return 0;
}

/* The group a call belongs to, made if need be. 0 or -ENOMEM. */
static int group_get(struct op_table *t, uint32_t pid, uint8_t source, uint16_t flags, uint16_t op,
	uint32_t *ret)
{
	bool nested = source == SOURCE_DRIVER && (flags & WIRE_NESTED);
	uint32_t process;

	if (group_find(t, pid, source, nested, op, ret) < 0)
		return -ENOMEM;
	if (t->groups[*ret].process != NO_PROCESS)
		return 0;
	if (group_find(t, pid, 0, false, 0, &process) < 0)
		return -ENOMEM;
	t->groups[*ret].process = process;
	if (source == SOURCE_CUDA)
		t->groups[process].has_runtime = true;
	return 0;
}

bool baseline_lookup(const struct op_table *t, uint32_t pid, uint8_t source, uint16_t flags,
	uint16_t op, uint32_t *ret)
{
	uint64_t key = key_of(pid, source, source == SOURCE_DRIVER && (flags & WIRE_NESTED), op);
	size_t at;

	if (!t->slots)
		return false;
	for (at = key_hash(key) & t->slot_mask; t->slots[at]; at = (at + 1) & t->slot_mask)
		if (group_key(&t->groups[t->slots[at] - 1]) == key) {
			*ret = t->slots[at] - 1;
			return true;
		}
	return false;
}

static void process_widen(struct op_group *p, int64_t first_ns, int64_t last_ns)
{
	p->first_ns = MIN(p->first_ns, first_ns);
	p->last_ns = MAX(p->last_ns, last_ns);
}

static int scan_events(struct op_table *t, const struct recording *rec)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		struct op_group *g;
		uint32_t at;

		if (!baseline_is_sane(e)) {
			t->ignored++;
			continue;
		}
		if (!op_kind_is_cuda(e->source))
			continue;
		if (group_get(t, e->pid, e->source, e->flags, e->op, &at) < 0)
			return -ENOMEM;
		g = &t->groups[at];
		if (e->start.ns < g->first_ns) {
			g->first_ns = e->start.ns;
			g->warm_ns = e->start.ns + MIN((int64_t)e->dur_ns, CONTEXT_NS);
		}
		g->rows++;
		g->calls += MAX(e->weight, 1U);
		process_widen(&t->groups[g->process], e->start.ns, event_end_ns(e));
	}
	return 0;
}

/* Reduces the aggregates to rows of (group, median, tail), in order of group. */
static int scan_aggregates(struct op_table *t, const struct recording *rec,
	struct bucket_row **ret_rows, size_t *ret_count)
{
	_cleanup_free_ struct bucket_row *rows = calloc(rec->aggregate_count + 1, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];
		struct op_group *g;
		uint32_t at;

		if (!op_kind_is_cuda(a->source) || !a->sketch.count || a->bucket.ns < 0 ||
			a->bucket.ns > INT64_C(1) << 62)
			continue;
		if (group_get(t, a->pid, a->source, a->flags, a->op, &at) < 0)
			return -ENOMEM;
		g = &t->groups[at];
		if (!g->from_aggregates)
			g->calls = 0;
		g->from_aggregates = true;
		g->calls = MAX(g->calls + a->sketch.count, g->calls);
		/* Calls were somewhere in the bucket: its end and its start are safe bounds. */
		process_widen(&t->groups[g->process], a->bucket.ns + BUCKET_NS, a->bucket.ns);
		rows[n++] = (struct bucket_row){
			at, i, sketch_quantile(&a->sketch, 0.5), sketch_quantile(&a->sketch, 0.95)};
	}
	*ret_rows = TAKE(rows);
	*ret_count = n;
	return 0;
}

ORDER(by_group, struct bucket_row, ASCENDING(group) ?: ASCENDING(index))

/* The calm quartile of one group's buckets; @values has room for @n. */
static void baseline_from_buckets(struct op_group *g, const struct recording *rec,
	const struct bucket_row *rows, size_t n, uint64_t *values)
{
	struct sketch all = {0};
	size_t used = 0, least = BUCKET_CALLS;

	for (size_t i = 0; i < n; i++) {
		const struct sketch *s = &rec->aggregates[rows[i].index].sketch;

		sketch_merge(&all, s);
		used += s->count >= least;
	}
	if (!used)
		least = 0;
	for (int tail = 0; tail < 2; tail++) {
		uint64_t *ret = tail ? &g->calm_tail_ns : &g->baseline_ns;

		used = 0;
		for (size_t i = 0; i < n; i++)
			if (rec->aggregates[rows[i].index].sketch.count >= least)
				values[used++] = tail ? rows[i].tail : rows[i].median;
		robust_sort(values, used);
		*ret = robust_quantile(values, used, CALM_QUANTILE);
	}
	g->p50_ns = sketch_quantile(&all, 0.5);
	g->p99_ns = sketch_quantile(&all, 0.99);
}

static int baselines_from_aggregates(struct op_table *t, const struct recording *rec)
{
	_cleanup_free_ struct bucket_row *rows = NULL;
	_cleanup_free_ uint64_t *values = NULL;
	size_t n, next;
	int r;

	r = scan_aggregates(t, rec, &rows, &n);
	if (r < 0)
		return r;
	values = calloc(n + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	qsort(rows, n, sizeof(*rows), by_group);
	for (size_t i = 0; i < n; i = next) {
		for (next = i + 1; next < n && rows[next].group == rows[i].group;)
			next++;
		baseline_from_buckets(&t->groups[rows[i].group], rec, rows + i, next - i, values);
	}
	return 0;
}

/* Sorts the durations of every group without aggregates into its own range of one array. */
static int baselines_from_rows(struct op_table *t, const struct recording *rec)
{
	_cleanup_free_ uint64_t *values = NULL;
	size_t total = 0;
	uint32_t at;

	for (size_t i = 0; i < t->count; i++) {
		t->groups[i].durations = total;
		if (!t->groups[i].from_aggregates)
			total += t->groups[i].rows;
	}
	values = calloc(total + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!op_kind_is_cuda(e->source) || !baseline_is_sane(e))
			continue;
		if (group_get(t, e->pid, e->source, e->flags, e->op, &at) < 0)
			return -ENOMEM;
		if (!t->groups[at].from_aggregates)
			values[t->groups[at].durations++] = e->dur_ns;
	}
	for (size_t i = 0; i < t->count; i++) {
		struct op_group *g = &t->groups[i];
		uint64_t *first;

		if (g->from_aggregates || !g->rows)
			continue;
		first = values + g->durations - g->rows; /* durations is now one past its range */
		g->baseline_ns = g->p50_ns = robust_median_of(first, g->rows);
		g->p99_ns = robust_quantile(first, g->rows, 0.99);
	}
	return 0;
}

int baseline_run(const struct recording *rec, struct op_table *ret)
{
	int r;

	*ret = (struct op_table){0};
	r = scan_events(ret, rec);
	if (r == 0)
		r = baselines_from_aggregates(ret, rec);
	if (r == 0)
		r = baselines_from_rows(ret, rec);
	return r;
}

void baseline_done(struct op_table *t)
{
	free(t->groups);
	free(t->slots);
	*t = (struct op_table){0};
}
