/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - see ops.h.
 *
 * Where the file has aggregates they speak for all calls: rows are a selection, and an operation
 * that has no aggregate has no duration either. Files of the published agent have none with a
 * distribution: their rows are taken, and if these are too many the sums of their minutes.
 *
 * A call inside another (a driver call in a runtime call) is part of it. It has a row of its own,
 * marked nested, and is in no total: its time would count twice. */
#include "answer/ops.h"

#include "base/search.h"
#include "base/text.h"
#include "diagnose/chains/kernel_type.h"

#define ROWS_MAX 200000 /* of a published file: 40 MB */
#define OPS_MAX  512

int op_sums_find(struct op_sums *o, const struct aggregate *a, struct op_sum **ret)
{
	bool nested = a->flags & WIRE_NESTED;
	struct op_sum *p;

	for (size_t i = 0; i < o->count; i++)
		if (o->rows[i].source == a->source && o->rows[i].op == a->op &&
			o->rows[i].nested == nested) {
			*ret = &o->rows[i];
			return 0;
		}
	if (o->count == OPS_MAX)
		return -ENOBUFS;
	p = reallocarray(o->rows, o->count + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	o->rows = p;
	p[o->count] = (struct op_sum){.source = a->source, .op = a->op, .nested = nested};
	*ret = &p[o->count++];
	return 0;
}

static int add(void *arg, const struct aggregate *a)
{
	struct op_sums *o = arg;
	struct op_sum *row;
	int r = op_sums_find(o, a, &row);

	if (r < 0)
		return r == -ENOBUFS ? 0 : r; /* there are not so many operations */
	sketch_merge(&row->sketch, &a->sketch);
	row->stored += a->stored;
	return 0;
}

static int from_sketches(const struct question *q, struct ops_answer *a, struct errinfo *reterr)
{
	struct op_sums o = {0};
	int r = nodedb_snapshot_aggregates(q->snapshot, &q->scope, add, &o, &a->truncated, reterr);

	if (r == 0 && o.count) {
		a->rows = calloc(o.count, sizeof(*a->rows));
		r = a->rows ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < o.count; i++) {
		const struct op_sum *s = &o.rows[i];

		if (s->sketch.count)
			a->rows[a->count++] = op_stat_of_sketch(
				s->source, s->op, s->nested, s->stored, &s->sketch);
	}
	free(o.rows);
	a->origin = a->count ? OPS_SKETCHES : OPS_NOTHING;
	return r;
}

static int from_rows(const struct question *q, struct ops_answer *a, struct errinfo *reterr)
{
	struct nodedb_filter filter = {.scope = q->scope, .last = q->request->last};
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	int r;

	if (!filter.scope.op)
		filter.scope.source = 0; /* rows are selected by an operation or not at all */
	r = nodedb_read(nodedb_snapshot_path(q->snapshot), &filter, &c, reterr);
	r = r ?: op_stat_run(c.events, c.event_count, &a->rows, &a->count);
	if (r < 0)
		return r;
	a->damaged_rows = c.skipped_rows;
	a->older_rows = c.older_events;
	a->origin = a->count ? OPS_ROWS : OPS_NOTHING;
	return 0;
}

static int from_minutes(const struct question *q, struct ops_answer *a, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table sums = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_OP_SUMS, &q->scope, 0, &sums, reterr);

	if (r < 0 || !sums.row_count)
		return r;
	a->rows = calloc(sums.row_count, sizeof(*a->rows));
	if (!a->rows)
		return -ENOMEM;
	for (size_t i = 0; i < sums.row_count; i++)
		a->rows[a->count++] = (struct op_stat){.source = (uint8_t)table_int(&sums, i, 0),
			.op = (uint16_t)table_int(&sums, i, 1),
			.calls = (uint64_t)table_int(&sums, i, 2),
			.sum_ns = (uint64_t)table_real(&sums, i, 3),
			.min_ns = (uint64_t)table_real(&sums, i, 4),
			.max_ns = (uint64_t)table_real(&sums, i, 5),
			.rows = (uint64_t)table_int(&sums, i, 6)};
	a->origin = OPS_MINUTES;
	a->truncated = sums.truncated;
	return 0;
}

/* A source without an op is met by what comes of aggregates already. */
static void keep_source(const struct question *q, struct ops_answer *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->count; i++)
		if (!q->scope.source || a->rows[i].source == q->scope.source)
			a->rows[n++] = a->rows[i];
	a->count = n;
}

static int find_rows(const struct question *q, struct ops_answer *a, struct errinfo *reterr)
{
	uint64_t rows = 0;
	int r = 0;

	if (q->request->last)
		return from_rows(q, a, reterr);
	if (nodedb_snapshot_is_ours(q->snapshot))
		r = from_sketches(q, a, reterr);
	if (r < 0 || a->count)
		return r;
	r = nodedb_snapshot_count(q->snapshot, &q->scope, ROWS_MAX, &rows, reterr);
	if (r < 0)
		return r;
	return rows <= ROWS_MAX ? from_rows(q, a, reterr) : from_minutes(q, a, reterr);
}

/* Published files lose counts of late calls: there are at least as many as rows. */
static int count_minutes(const struct question *q, uint64_t *calls, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table sums = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_OP_SUMS, &q->scope, 0, &sums, reterr);
	uint64_t n = 0;

	for (size_t i = 0; i < sums.row_count; i++)
		n += (uint64_t)table_int(&sums, i, 2);
	*calls = MAX(*calls, n);
	return r;
}

ORDER(by_time, struct op_stat,
	DESCENDING(sum_ns) ?: ASCENDING(source) ?: ASCENDING(op) ?: ASCENDING(nested))

/* Most time first, then by ids. */
static void op_stat_sort(struct op_stat *stats, size_t count)
{
	SORT(stats, count, by_time);
}

void ops_sum_up(struct ops_answer *a)
{
	op_stat_sort(a->rows, a->count);
	a->calls = 0;
	for (size_t i = 0; i < a->count; i++) {
		struct op_stat *s = &a->rows[i];

		s->avg_ns = s->calls ? (double)s->sum_ns / (double)s->calls : 0;
		s->share = a->wall_ns ? (double)s->sum_ns / (double)a->wall_ns : 0;
		a->calls += s->nested ? 0 : s->calls;
	}
	a->all_calls = a->calls;
}

int answer_ops(const struct question *q, struct ops_answer *ret, struct errinfo *reterr)
{
	_cleanup_(ops_answer_done) struct ops_answer a = {
		.wall_ns = (uint64_t)MAX(q->scope.to_ns - q->scope.from_ns, INT64_C(0))};
	int r = find_rows(q, &a, reterr);

	if (r < 0)
		return r;
	keep_source(q, &a);
	ops_sum_up(&a);
	if (a.origin == OPS_ROWS && !q->request->last)
		r = count_minutes(q, &a.all_calls, reterr);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct ops_answer){0};
	return 0;
}

void ops_answer_done(struct ops_answer *a)
{
	free(a->rows);
	a->rows = NULL;
}

/* ---- Pure; n log n in time, 16 bytes a row, 8 an aggregate ---- */

#define CALLS_MAX (UINT64_MAX / 128) /* so that a rank can be computed */

struct sample {
	uint64_t dur_ns;
	uint32_t op; /* source, op and nested */
	uint32_t weight;
};

ORDER(by_op_and_duration, struct sample, ASCENDING(op) ?: ASCENDING(dur_ns))

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
		t.sum_ns = capped_sum(t.sum_ns, capped_product(s[i].dur_ns, s[i].weight));
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
	SORT(samples, count, by_op_and_duration);
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

#define NAME_COLUMNS 100

int answer_kernels(
	const struct question *q, size_t limit, struct sql_table *ret, struct errinfo *reterr)
{
	return nodedb_snapshot_list(q->snapshot, NODEDB_KERNELS, &q->scope, limit, ret, reterr);
}

void kernels_text(struct buf *b, const struct sql_table *k)
{
	for (size_t i = 0; i < k->row_count; i++) {
		const char *name = table_text(k, i, table_column(k, "name"));
		bool known = strcmp(table_text(k, i, table_column(k, "origin")), "unknown") != 0;
		char count[TEXT_MAX], cut[NAME_COLUMNS + 4];

		if (i == 0)
			buf_puts(b, "\n  Kernels, by launches (estimated from 1 in 16)\n");
		text_format_count(count, (uint64_t)table_int(k, i, table_column(k, "launches")));
		buf_printf(b, "   %12s  ", count);
		if (!known)
			buf_puts(b, name[0] ? "unknown kernel at " : "unknown kernel, in no file");
		snprintf(cut, sizeof(cut), "%.*s%s", NAME_COLUMNS, name,
			strlen(name) > NAME_COLUMNS ? "…" : "");
		text_escape_terminal(b, cut);
		buf_putc(b, '\n');
	}
}

static const char *find_name(void *arg, uint32_t pid, uint64_t function)
{
	const struct nodedb_content *c = arg;
	const struct kernel_use *k =
		kernel_use_find(c->kernels, c->kernel_count, pid, function, INT64_MAX);

	return k ? k->name : NULL;
}

void kernel_names_put(struct nodedb_content *c, struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		kernel_sentence_put(&e->incidents[i], find_name, c);
}

/* ---- CUDA graphs ---- */

static int add_graph(void *arg, const struct aggregate *a)
{
	struct graphs_answer *c = arg;

	if (a->source == SOURCE_GRAPH && a->op < WIRE_OP_MAX && !(a->flags & WIRE_NESTED)) {
		c->calls[a->op] += a->sketch.count;
		c->ns[a->op] += (double)a->sketch.sum;
		c->total += a->sketch.count;
	}
	return 0;
}

int answer_graphs(const struct question *q, struct graphs_answer *c, struct errinfo *reterr)
{
	struct scope scope = q->scope;
	bool truncated;

	*c = (struct graphs_answer){
		.seconds = (double)(scope.to_ns - scope.from_ns) / (double)NS_PER_S};
	if (!nodedb_snapshot_is_ours(q->snapshot)) {
		_cleanup_(sql_table_done) struct sql_table e = {0};
		int r = nodedb_snapshot_list(
			q->snapshot, NODEDB_GRAPH_EVENTS, &q->scope, 0, &e, reterr);

		for (size_t i = 0; r == 0 && i < e.row_count; i++) {
			int64_t op = table_int(&e, i, table_column(&e, "op"));

			if (op < 0 || op >= WIRE_OP_MAX)
				continue;
			c->calls[op]++;
			c->ns[op] += table_real(&e, i, table_column(&e, "duration"));
			c->total++;
		}
		return r;
	}
	scope.source = SOURCE_GRAPH;
	scope.op = 0;
	return nodedb_snapshot_aggregates(q->snapshot, &scope, add_graph, c, &truncated, reterr);
}

int answer_graph_events(
	const struct question *q, size_t limit, struct sql_table *ret, struct errinfo *reterr)
{
	struct graphs_answer counts = {0};
	int r = 0;

	/* Rows have no index by source: where the aggregates know of none, none is looked for. */
	if (nodedb_snapshot_is_ours(q->snapshot))
		r = answer_graphs(q, &counts, reterr);
	if (r < 0 || (nodedb_snapshot_is_ours(q->snapshot) && !counts.total))
		return r;
	return nodedb_snapshot_list(
		q->snapshot, NODEDB_GRAPH_EVENTS, &q->scope, limit, ret, reterr);
}

struct graph_handles graph_handles_of(const struct sql_table *e, size_t row)
{
	uint64_t arg0 = (uint64_t)table_int(e, row, table_column(e, "arg0"));
	uint64_t arg1 = (uint64_t)table_int(e, row, table_column(e, "arg1"));
	struct graph_handles h = {.capture_mode = -1};

	switch (table_int(e, row, table_column(e, "op"))) {
	case GRAPH_BEGIN_CAPTURE:
		h.stream = arg0;
		h.capture_mode = (int64_t)arg1;
		break;
	case GRAPH_END_CAPTURE:
		h.stream = arg0;
		h.graph = arg1;
		break;
	case GRAPH_INSTANTIATE:
	case GRAPH_EXEC_UPDATE:
		h.graph = arg0;
		h.exec = arg1;
		break;
	case GRAPH_LAUNCH:
		h.exec = arg0;
		h.stream = (uint64_t)table_int(e, row, table_column(e, "stream"));
		break;
	case GRAPH_UPLOAD:
		h.exec = arg0;
		h.stream = (uint64_t)table_int(e, row, table_column(e, "stream"));
		break;
	case GRAPH_NODE_SET_PARAMS: h.exec = arg1; break;
	case GRAPH_EXEC_DESTROY: h.exec = arg0; break;
	case GRAPH_DESTROY: h.graph = arg0; break;
	}
	return h;
}
