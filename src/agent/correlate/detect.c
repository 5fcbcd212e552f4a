/* SPDX-License-Identifier: Apache-2.0 */
/* detect.c - baselines, slow calls and the stretches they form. See detect.h.
 *
 * Baseline of (process, op): from 5 s aggregates, which hold all calls, the 25th percentile by
 * bucket of the buckets' medians: a contention that lasts for three quarters of the recording
 * leaves it alone. Without aggregates, the median of the stored rows. Those are a selection that
 * prefers slow calls, so the baseline errs upwards and slowness is missed, never invented.
 *
 * Slow: dur > max(3 x baseline, baseline + 200 us). 3 x is the published tail ratio; 200 us is
 * above what an interrupt or a page fault costs, so microsecond calls do not count as slow for
 * ordinary jitter. The first call of each op is left out, and so are calls of other threads that
 * began before it ended: they pay for the context or wait for it.
 *
 * A stretch ends where the next slow call starts more than 30 s after the last one ended. It is
 * material with at least 3 slow calls and an excess that somebody would notice:
 *   at least 1 % of the time the process was observed and 20 ms (2 s x 1 %: a recording of less
 *   than two seconds is not judged by single hiccups); or, so that a burst inside a long recording
 *   shows, at least 500 ms and 10 % of the stretch itself.
 *
 * Order of the input does not matter. O(n + slow log slow); memory is 8 bytes for each stored call
 * of ops without aggregates, plus the groups and the slow calls. */
#include "agent/correlate/detect.h"

#include <errno.h>
#include <string.h>

#include "stat/robust.h"

#define SLOW_RATIO	    3
#define SLOW_EXCESS_NS	    (200 * NS_PER_US)
#define STRETCH_PAUSE_NS    ((int64_t)(30 * NS_PER_S))
#define MATERIAL_CALLS	    3
#define MATERIAL_NS	    (20 * NS_PER_MS)
#define MATERIAL_SPAN_PARTS 100 /* 1 % of the process's time */
#define BURST_NS	    (500 * NS_PER_MS)
#define BURST_SPAN_PARTS    10 /* 10 % of the stretch */
#define CALM_QUANTILE	    0.25
#define BUCKET_CALLS	    4 /* a bucket with fewer calls has no median worth the name */
#define BUCKET_NS	    ((int64_t)(5 * NS_PER_S))

#define NO_PROCESS	    UINT32_MAX

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

static int table_grow(struct detection *d)
{
	size_t n = d->slots ? (d->slot_mask + 1) * 2 : 256;
	uint32_t *slots;

	if (n > UINT32_MAX)
		return -ENOMEM;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < d->group_count; i++) {
		size_t at = key_hash(group_key(&d->groups[i])) & (n - 1);

		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(d->slots);
	d->slots = slots;
	d->slot_mask = n - 1;
	return 0;
}

/* The array has room for half of the slots, so it grows together with the table. */
static int group_find(struct detection *d, uint32_t pid, uint8_t source, bool nested, uint16_t op,
	uint32_t *ret)
{
	uint64_t key = key_of(pid, source, nested, op);
	size_t at;

	if (!d->slots || d->group_count * 2 > d->slot_mask) {
		struct op_group *groups;

		if (table_grow(d) < 0)
			return -ENOMEM;
		groups = reallocarray(d->groups, d->slot_mask / 2 + 2, sizeof(*groups));
		if (!groups)
			return -ENOMEM;
		d->groups = groups;
	}
	for (at = key_hash(key) & d->slot_mask; d->slots[at]; at = (at + 1) & d->slot_mask)
		if (group_key(&d->groups[d->slots[at] - 1]) == key) {
			*ret = d->slots[at] - 1;
			return 0;
		}
	*ret = (uint32_t)d->group_count++;
	d->slots[at] = *ret + 1;
	d->groups[*ret] = (struct op_group){.pid = pid, .source = source, .nested = nested,
		.op = op, .process = NO_PROCESS, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	return 0;
}

static int group_of_call(struct detection *d, uint32_t pid, uint8_t source, uint16_t flags,
	uint16_t op, uint32_t *ret)
{
	bool nested = source == SOURCE_DRIVER && (flags & WIRE_NESTED);
	uint32_t process;

	if (group_find(d, pid, source, nested, op, ret) < 0)
		return -ENOMEM;
	if (d->groups[*ret].process != NO_PROCESS)
		return 0;
	if (group_find(d, pid, 0, false, 0, &process) < 0)
		return -ENOMEM;
	d->groups[*ret].process = process;
	if (source == SOURCE_CUDA)
		d->groups[process].has_runtime = true;
	return 0;
}

static bool is_call(unsigned source)
{
	return source == SOURCE_CUDA || source == SOURCE_DRIVER;
}

/* A nested driver call is part of a runtime call that is judged itself. */
static bool is_counted_elsewhere(const struct detection *d, const struct op_group *g)
{
	return g->source == 0 || (g->nested && d->groups[g->process].has_runtime);
}

static void process_widen(struct op_group *p, int64_t first_ns, int64_t last_ns)
{
	p->first_ns = MIN(p->first_ns, first_ns);
	p->last_ns = MAX(p->last_ns, last_ns);
}

uint64_t detect_span_ns(const struct detection *d, const struct op_group *g)
{
	const struct op_group *p = &d->groups[g->process];

	return p->last_ns > p->first_ns ? (uint64_t)(p->last_ns - p->first_ns) : 1;
}

static int scan_events(struct detection *d, const struct recording *rec)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		struct op_group *g;
		uint32_t at;

		if (!detect_is_sane(e)) {
			d->ignored++;
			continue;
		}
		if (!is_call(e->source))
			continue;
		if (group_of_call(d, e->pid, e->source, e->flags, e->op, &at) < 0)
			return -ENOMEM;
		g = &d->groups[at];
		if (e->start.ns < g->first_ns) {
			g->first_ns = e->start.ns;
			g->first_call_end_ns = event_end_ns(e);
		}
		g->rows++;
		g->calls += MAX(e->weight, 1U);
		process_widen(&d->groups[g->process], e->start.ns, event_end_ns(e));
	}
	return 0;
}

/* Reduces the aggregates to rows of (group, median, tail), in order of group. */
static int scan_aggregates(struct detection *d, const struct recording *rec,
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

		if (!is_call(a->source) || !a->sketch.count || a->bucket.ns < 0 ||
			a->bucket.ns > INT64_C(1) << 62)
			continue;
		if (group_of_call(d, a->pid, a->source, a->flags, a->op, &at) < 0)
			return -ENOMEM;
		g = &d->groups[at];
		if (!g->from_aggregates)
			g->calls = 0;
		g->from_aggregates = true;
		g->calls = MAX(g->calls + a->sketch.count, g->calls);
		/* Calls were somewhere in the bucket: its end and its start are safe bounds. */
		process_widen(&d->groups[g->process], a->bucket.ns + BUCKET_NS, a->bucket.ns);
		rows[n++] = (struct bucket_row){at, i, sketch_quantile(&a->sketch, 0.5),
			sketch_quantile(&a->sketch, 0.95)};
	}
	*ret_rows = TAKE(rows);
	*ret_count = n;
	return 0;
}

static int by_group(const void *a, const void *b)
{
	const struct bucket_row *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

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

static int baselines_from_aggregates(struct detection *d, const struct recording *rec)
{
	_cleanup_free_ struct bucket_row *rows = NULL;
	_cleanup_free_ uint64_t *values = NULL;
	size_t n, next;
	int r;

	r = scan_aggregates(d, rec, &rows, &n);
	if (r < 0)
		return r;
	values = calloc(n + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	qsort(rows, n, sizeof(*rows), by_group);
	for (size_t i = 0; i < n; i = next) {
		for (next = i + 1; next < n && rows[next].group == rows[i].group;)
			next++;
		baseline_from_buckets(&d->groups[rows[i].group], rec, rows + i, next - i, values);
	}
	return 0;
}

/* Sorts the durations of every group without aggregates into its own range of one array. */
static int baselines_from_rows(struct detection *d, const struct recording *rec)
{
	_cleanup_free_ uint64_t *values = NULL;
	size_t total = 0;
	uint32_t at;

	for (size_t i = 0; i < d->group_count; i++) {
		d->groups[i].durations = total;
		if (!d->groups[i].from_aggregates)
			total += d->groups[i].rows;
	}
	values = calloc(total + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!is_call(e->source) || !detect_is_sane(e))
			continue;
		if (group_of_call(d, e->pid, e->source, e->flags, e->op, &at) < 0)
			return -ENOMEM;
		if (!d->groups[at].from_aggregates)
			values[d->groups[at].durations++] = e->dur_ns;
	}
	for (size_t i = 0; i < d->group_count; i++) {
		struct op_group *g = &d->groups[i];
		uint64_t *first;

		if (g->from_aggregates || !g->rows)
			continue;
		first = values + g->durations - g->rows; /* durations is now one past its range */
		robust_sort(first, g->rows);
		g->baseline_ns = g->p50_ns = robust_median(first, g->rows);
		g->p99_ns = robust_quantile(first, g->rows, 0.99);
	}
	return 0;
}

static bool is_slow(const struct op_group *g, const struct event *e)
{
	return e->dur_ns > g->baseline_ns &&
	       e->dur_ns - g->baseline_ns > SLOW_EXCESS_NS &&
	       e->dur_ns / SLOW_RATIO >= g->baseline_ns && e->start.ns >= g->first_call_end_ns;
}

static int collect_slow(struct detection *d, const struct recording *rec)
{
	uint32_t at;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!is_call(e->source) || !detect_is_sane(e) || e->dur_ns <= SLOW_EXCESS_NS)
			continue;
		if (group_of_call(d, e->pid, e->source, e->flags, e->op, &at) < 0)
			return -ENOMEM;
		if (is_counted_elsewhere(d, &d->groups[at]) || !is_slow(&d->groups[at], e))
			continue;
		if (d->slow_count == d->slow_cap) {
			size_t cap = MAX(d->slow_cap * 2, (size_t)256);
			struct slow_call *p = reallocarray(d->slow, cap, sizeof(*p));

			if (!p)
				return -ENOMEM;
			d->slow = p;
			d->slow_cap = cap;
		}
		d->slow[d->slow_count++] = (struct slow_call){.start_ns = e->start.ns,
			.end_ns = event_end_ns(e), .event = i, .tid = e->tid, .group = at,
			.excess_ns = e->dur_ns - d->groups[at].baseline_ns};
	}
	return 0;
}

static int by_thread_outer_first(const void *a, const void *b)
{
	const struct slow_call *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static int by_group_and_time(const void *a, const void *b)
{
	const struct slow_call *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static int by_group_and_thread(const void *a, const void *b)
{
	const struct slow_call *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return by_thread_outer_first(a, b);
}

/* A thread is in one call of an op at a time: rows that say otherwise are nonsense, and would make
 * attribution count the same switches again for each of them. */
static void drop_overlapping(struct detection *d)
{
	size_t kept = 0;

	if (!d->slow_count)
		return;
	qsort(d->slow, d->slow_count, sizeof(*d->slow), by_group_and_thread);
	for (size_t i = 0; i < d->slow_count; i++) {
		const struct slow_call *c = &d->slow[i], *last = &d->slow[kept ? kept - 1 : 0];

		if (kept && last->group == c->group && last->tid == c->tid &&
			c->start_ns < last->end_ns)
			d->ignored++;
		else
			d->slow[kept++] = *c;
	}
	d->slow_count = kept;
}

/* Published files do not mark nested calls: a slow driver call that lies inside a slow runtime call
 * of its thread is that call seen again. */
static void drop_contained(struct detection *d)
{
	size_t kept = 0;
	uint32_t tid = 0;
	int64_t runtime_end = INT64_MIN;

	if (!d->slow_count)
		return;
	qsort(d->slow, d->slow_count, sizeof(*d->slow), by_thread_outer_first);
	for (size_t i = 0; i < d->slow_count; i++) {
		const struct slow_call *c = &d->slow[i];

		if (i == 0 || c->tid != tid)
			runtime_end = INT64_MIN;
		tid = c->tid;
		if (d->groups[c->group].source == SOURCE_CUDA)
			runtime_end = MAX(runtime_end, c->end_ns);
		else if (c->end_ns <= runtime_end)
			continue;
		d->slow[kept++] = *c;
	}
	d->slow_count = kept;
	qsort(d->slow, d->slow_count, sizeof(*d->slow), by_group_and_time);
}

static bool is_material(const struct detection *d, const struct stretch *s, int64_t last_ns)
{
	uint64_t whole = detect_span_ns(d, &d->groups[s->group]);
	uint64_t own = (uint64_t)(last_ns - d->slow[s->first].start_ns);

	if (s->count < MATERIAL_CALLS)
		return false;
	return (s->excess_ns >= MATERIAL_NS && s->excess_ns >= whole / MATERIAL_SPAN_PARTS) ||
	       (s->excess_ns >= BURST_NS && s->excess_ns >= own / BURST_SPAN_PARTS);
}

static int by_excess(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;

	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int collect_stretches(struct detection *d)
{
	size_t next;

	d->stretches = calloc(d->slow_count / MATERIAL_CALLS + 1, sizeof(*d->stretches));
	if (!d->stretches)
		return -ENOMEM;
	for (size_t i = 0; i < d->slow_count; i = next) {
		struct stretch s = {.first = i, .group = d->slow[i].group};
		int64_t last = d->slow[i].end_ns;

		for (next = i; next < d->slow_count && d->slow[next].group == s.group &&
			       d->slow[next].start_ns - last <= STRETCH_PAUSE_NS;
			next++) {
			uint64_t sum = s.excess_ns + d->slow[next].excess_ns;

			s.excess_ns = MAX(sum, s.excess_ns); /* 2^14 calls of 2^50 ns would wrap */
			last = MAX(last, d->slow[next].end_ns);
		}
		s.count = next - i;
		if (is_material(d, &s, last))
			d->stretches[d->stretch_count++] = s;
	}
	qsort(d->stretches, d->stretch_count, sizeof(*d->stretches), by_excess);
	return 0;
}

int detect_run(const struct recording *rec, struct detection *ret)
{
	int r;

	*ret = (struct detection){0};
	r = scan_events(ret, rec);
	if (r == 0)
		r = baselines_from_aggregates(ret, rec);
	if (r == 0)
		r = baselines_from_rows(ret, rec);
	if (r == 0)
		r = collect_slow(ret, rec);
	if (r < 0)
		return r;
	drop_overlapping(ret);
	drop_contained(ret);
	return collect_stretches(ret);
}

void detect_done(struct detection *d)
{
	free(d->groups);
	free(d->slow);
	free(d->stretches);
	free(d->slots);
	*d = (struct detection){0};
}
