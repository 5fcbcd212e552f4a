/* SPDX-License-Identifier: Apache-2.0 */
/* op_stat.c - see op_stat.h. Pure; n log n in time, 16 bytes a row, 8 an aggregate. */
#include "answer/op_stat.h"

#include <errno.h>
#include <stdlib.h>

#include "base/capped.h"
#include "base/macros.h"

#define CALLS_MAX (UINT64_MAX / 128) /* so that a rank can be computed */

struct sample {
	uint64_t dur_ns;
	uint32_t op; /* source, op and nested */
	uint32_t weight;
};

static int by_op_and_duration(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return x->dur_ns < y->dur_ns ? -1 : x->dur_ns > y->dur_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct op_stat *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return (int)x->nested - (int)y->nested;
}

void op_stat_sort(struct op_stat *stats, size_t count)
{
	if (count)
		qsort(stats, count, sizeof(*stats), by_time);
}

static uint64_t time_of(const struct sample *s)
{
	return capped_product(s->dur_ns, s->weight);
}

/* ceil(percent / 100 * calls) without rounding. */
static uint64_t rank_of(uint64_t calls, unsigned percent)
{
	return calls - calls * (100 - percent) / 100;
}

/* @n samples of one op, by duration. */
static struct op_stat stats_of(const struct sample *s, size_t n)
{
	struct op_stat t = {.source = (uint8_t)(s->op >> 24),
		.op = (uint16_t)(s->op >> 8),
		.nested = s->op & 1,
		.rows = n,
		.min_ns = s[0].dur_ns,
		.max_ns = s[n - 1].dur_ns};
	uint64_t seen = 0;

	for (size_t i = 0; i < n; i++) {
		t.calls = MIN(t.calls + s[i].weight, CALLS_MAX);
		t.sum_ns = capped_sum(t.sum_ns, time_of(&s[i]));
	}
	t.p50_ns = t.p95_ns = t.p99_ns = t.max_ns;
	for (size_t i = n; i-- > 0;) { /* downwards: the least duration that reaches a rank stays */
		uint64_t up_to = t.calls - MIN(seen, t.calls);

		t.p50_ns = up_to >= rank_of(t.calls, 50) ? s[i].dur_ns : t.p50_ns;
		t.p95_ns = up_to >= rank_of(t.calls, 95) ? s[i].dur_ns : t.p95_ns;
		t.p99_ns = up_to >= rank_of(t.calls, 99) ? s[i].dur_ns : t.p99_ns;
		seen += s[i].weight;
	}
	for (size_t i = n; i-- > 0 && t.p50_ns && s[i].dur_ns / OP_STAT_SPIKE >= t.p50_ns;)
		if (s[i].dur_ns > OP_STAT_SPIKE * t.p50_ns)
			t.spikes = MIN(t.spikes + s[i].weight, CALLS_MAX);
	return t;
}

int op_stat_run(const struct event *events, size_t count, struct op_stat **ret, size_t *ret_count)
{
	_cleanup_free_ struct sample *samples = calloc(MAX(count, (size_t)1), sizeof(*samples));
	_cleanup_free_ struct op_stat *stats = NULL;
	size_t ops = 0;

	if (!samples)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		samples[i] = (struct sample){.dur_ns = events[i].dur_ns,
			.op = (uint32_t)events[i].source << 24 | (uint32_t)events[i].op << 8 |
			      !!(events[i].flags & WIRE_NESTED),
			.weight = MAX(events[i].weight, 1u)};
	qsort(samples, count, sizeof(*samples), by_op_and_duration);
	for (size_t i = 0; i < count; i++)
		ops += i == 0 || samples[i].op != samples[i - 1].op;
	stats = calloc(MAX(ops, (size_t)1), sizeof(*stats));
	if (!stats)
		return -ENOMEM;
	ops = 0;
	for (size_t i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count && samples[i + n].op == samples[i].op;)
			n++;
		stats[ops++] = stats_of(&samples[i], n);
	}
	op_stat_sort(stats, ops);
	*ret = TAKE(stats);
	*ret_count = ops;
	return 0;
}

static uint64_t slower_than(const struct sketch *s, uint64_t ns)
{
	uint64_t n = 0;

	for (unsigned i = BUCKET_COUNT; i-- > 0 && bucket_low(i) > ns;)
		n = MIN(n + s->hist[i], CALLS_MAX);
	return n;
}

struct op_stat op_stat_of_sketch(
	uint8_t source, uint16_t op, bool nested, uint64_t rows, const struct sketch *s)
{
	struct op_stat t = {.source = source,
		.op = op,
		.nested = nested,
		.rows = rows,
		.calls = MIN(s->count, CALLS_MAX),
		.sum_ns = s->sum,
		.min_ns = s->min,
		.max_ns = s->max,
		.p50_ns = sketch_quantile(s, 0.50),
		.p95_ns = sketch_quantile(s, 0.95),
		.p99_ns = sketch_quantile(s, 0.99)};

	if (t.p50_ns && t.p50_ns < UINT64_MAX / OP_STAT_SPIKE)
		t.spikes = slower_than(s, OP_STAT_SPIKE * t.p50_ns);
	return t;
}
