/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_stats.c - get_trace_stats: figures of each operation. Where the recording has aggregates they
 * are of every call; of published files they are of the rows that were stored. */
#include "agent/serve/mcp_tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answer/op_stat.h"
#include "agent/serve/mcp_clean.h"
#include "mcp/rpc.h"
#include "wire/names.h"

#define OPS_MAX 512

struct op_row {
	unsigned source, op;
	uint64_t calls, sum_ns, p50_ns, p95_ns, p99_ns, max_ns, spikes;
};

struct op_table {
	struct op_row rows[OPS_MAX];
	size_t count;
};

static int by_op(const void *a, const void *b)
{
	const struct aggregate *x = *(struct aggregate *const *)a,
			       *y = *(struct aggregate *const *)b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static int by_time(const void *a, const void *b)
{
	const struct op_row *x = a, *y = b;

	return x->sum_ns > y->sum_ns ? -1 : x->sum_ns < y->sum_ns;
}

static void add_sketch(struct op_table *t, const struct aggregate *a, const struct sketch *s)
{
	if (t->count == OPS_MAX || !s->count)
		return;
	t->rows[t->count++] = (struct op_row){.source = a->source,
		.op = a->op,
		.calls = s->count,
		.sum_ns = s->sum,
		.p50_ns = sketch_quantile(s, 0.50),
		.p95_ns = sketch_quantile(s, 0.95),
		.p99_ns = sketch_quantile(s, 0.99),
		.max_ns = s->max};
}

/* Every call, whether it was stored or not. Driver calls inside runtime calls are in their row too.
 */
static int from_aggregates(const struct nodedb_content *c, struct op_table *t)
{
	_cleanup_free_ struct aggregate **order = calloc(c->aggregate_count, sizeof(*order));
	_cleanup_free_ struct sketch *sum = calloc(1, sizeof(*sum));

	if (!order || !sum)
		return -ENOMEM;
	for (size_t i = 0; i < c->aggregate_count; i++)
		order[i] = &c->aggregates[i];
	qsort(order, c->aggregate_count, sizeof(struct aggregate *), by_op);
	for (size_t i = 0; i < c->aggregate_count; i++) {
		sketch_merge(sum, &order[i]->sketch);
		if (i + 1 < c->aggregate_count && by_op(&order[i], &order[i + 1]) == 0)
			continue;
		add_sketch(t, order[i], sum);
		memset(sum, 0, sizeof(*sum));
	}
	return 0;
}

static struct op_row *find_row(struct op_table *t, const struct op_stat *s)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].source == s->source && t->rows[i].op == s->op)
			return &t->rows[i];
	return NULL;
}

/* What has no aggregates (events of the host, published files), and slow calls of the rest. */
static int from_rows(const struct nodedb_content *c, struct op_table *t)
{
	_cleanup_free_ struct op_stat *stats = NULL;
	size_t count;
	int r = op_stat_run(c->events, c->event_count, &stats, &count);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct op_row *row = find_row(t, &stats[i]);

		if (row)
			row->spikes = stats[i].spikes;
		else if (t->count < OPS_MAX)
			t->rows[t->count++] = (struct op_row){.source = stats[i].source,
				.op = stats[i].op,
				.calls = stats[i].calls,
				.sum_ns = stats[i].sum_ns,
				.p50_ns = stats[i].p50_ns,
				.p95_ns = stats[i].p95_ns,
				.p99_ns = stats[i].p99_ns,
				.max_ns = stats[i].max_ns,
				.spikes = stats[i].spikes};
	}
	return r;
}

static json_t *us(uint64_t ns)
{
	return ns < 10 * NS_PER_US ? json_real((double)((ns + 50) / 100) / 10)
				   : json_integer((json_int_t)((ns + NS_PER_US / 2) / NS_PER_US));
}

static json_t *row_json(const struct op_row *r, double span_ns, bool compact)
{
	char scratch[32];

	json_t *row = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:f, s:I}", "operation",
		wire_op_name(r->source, r->op, scratch), "count", (json_int_t)r->calls, "p50_us",
		us(r->p50_ns), "p95_us", us(r->p95_ns), "p99_us", us(r->p99_ns), "max_us",
		us(r->max_ns), "wall_percent",
		span_ns > 0 ? 100 * (double)r->sum_ns / span_ns : 0.0, "anomaly_count",
		(json_int_t)r->spikes);

	if (compact)
		return row;
	json_object_set_new(row, "source", json_string(wire_source_name(r->source)));
	json_object_set_new(row, "avg_us", us(r->calls ? r->sum_ns / r->calls : 0));
	json_object_set_new(row, "total_us", us(r->sum_ns));
	if (wire_op_find(r->source, r->op))
		json_object_set_new(
			row, "meaning", json_string(wire_op_find(r->source, r->op)->description));
	return row;
}

static json_t *host_json(const struct nodedb_content *c)
{
	const struct host_sample *s = &c->samples[c->sample_count - 1];

	return json_pack("{s:f, s:f, s:I, s:f}", "cpu_percent", s->cpu_pct, "mem_percent",
		s->mem_pct, "swap_mb", (json_int_t)s->swap_mb, "load_avg", s->load1);
}

void mcp_trace_stats(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = {.filter = {.thin = NODEDB_THIN_LARGE}};
	_cleanup_free_ struct op_table *t = calloc(1, sizeof(*t));
	json_t *ops = json_array(), *full;
	uint64_t calls = 0;
	struct errinfo e = {0};
	int r = mcp_part_read(mcp_settings_of(c)->db, arguments, &part, &content, &e);

	if (r == 0)
		r = t ? 0 : -ENOMEM;
	if (r == 0 && content.aggregate_count)
		r = from_aggregates(&content, t);
	if (r == 0)
		r = from_rows(&content, t);
	if (r < 0) {
		json_decref(ops);
		mcp_reply_error(a, r, &e);
		return;
	}
	qsort(t->rows, t->count, sizeof(t->rows[0]), by_time);
	for (size_t i = 0; i < t->count; i++) {
		calls += t->rows[i].calls;
		json_array_append_new(
			ops, row_json(&t->rows[i], (double)(content.last_ns - content.first_ns),
				     mcp_arg_compact(arguments)));
	}
	full = json_pack("{s:I, s:o, s:I, s:I, s:o}", "count", (json_int_t)calls, "ops", ops,
		"total_events", (json_int_t)MAX(content.total_calls, (uint64_t)content.event_count),
		"stored_events", (json_int_t)(content.event_count + content.thinned_rows), "range",
		mcp_range(&content, &part));
	if (content.sample_count)
		json_object_set_new(full, "system", host_json(&content));
	mcp_reply(a, arguments, full, NULL);
}
