/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - samples of the host over a time. Where there are more than are asked for, the
 * worst of each step stands for it: a peak must not vanish because the page is narrow. */

#include "base/search.h"
#include "answer/answer.h"
#include "answer/ops.h"

#define POINTS     600
#define POINTS_MAX 5000

static void put_sample(struct json_writer *w, const struct sql_table *s, size_t row)
{
	for (int c = 0; c < s->column_count; c++) {
		const char *key = sql_table_name(s, c);
		enum sql_type type = sql_table_cell(s, row, c)->type;

		if (type == SQL_NULL || (!strcmp(key, "node") && !table_text(s, row, c)[0]))
			continue;
		json_key(w, key);
		table_cell(w, s, row, c);
	}
}

int answer_host(const struct question *q, struct host_answer *ret, struct errinfo *reterr)
{
	struct scope scope = {.to_ns = q->scope.to_ns, .node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SNAPSHOTS, &scope, 1, &s, reterr);

	if (r < 0)
		return r;
	*ret = (struct host_answer){.known = s.row_count > 0};
	if (!s.row_count)
		return 0;
	ret->cpu_pct = table_real(&s, 0, table_column(&s, "cpu_percent"));
	ret->mem_pct = table_real(&s, 0, table_column(&s, "mem_percent"));
	ret->load1 = table_real(&s, 0, table_column(&s, "load_avg"));
	ret->swap_mb = table_int(&s, 0, table_column(&s, "swap_mb"));
	return 0;
}

int put_system(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct scope scope = {.to_ns = q->scope.to_ns, .node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SNAPSHOTS, &scope, 1, &s, reterr);

	if (r < 0 || !s.row_count)
		return r;
	json_begin_object_member(w, "system");
	put_sample(w, &s, 0);
	json_end_object(w);
	return 0;
}

/* Row @from becomes part of what row @to stands for. */
static void fold(struct sql_table *s, size_t to, size_t from)
{
	int lowest = table_column(s, "mem_avail_mb"), node = table_column(s, "node");

	for (int c = 1; c < s->column_count; c++) { /* after the time */
		double old = table_real(s, to, c), new = table_real(s, from, c);
		struct sql_cell *cell = &s->cells[to * (size_t)s->column_count + (size_t)c];

		if (c == node || sql_table_cell(s, from, c)->type == SQL_NULL)
			continue;
		if (cell->type == SQL_NULL || (c == lowest ? new < old : new > old))
			*cell = *sql_table_cell(s, from, c);
	}
}

/* Newest first in; what is left stands at the front, oldest first. */
static void thin(struct sql_table *s, int64_t first_ns, int64_t step_ns)
{
	size_t columns = (size_t)s->column_count, kept = 0;
	int node = table_column(s, "node");

	for (size_t i = 0; i < s->row_count / 2; i++)
		for (size_t c = 0; c < columns; c++) {
			struct sql_cell *a = &s->cells[i * columns + c];
			struct sql_cell *b = &s->cells[(s->row_count - 1 - i) * columns + c];
			struct sql_cell swap = *a;

			*a = *b;
			*b = swap;
		}
	for (size_t i = 0; i < s->row_count; i++) {
		int64_t step = (table_int(s, i, 0) - first_ns) / step_ns;
		size_t k = kept;

		while (k > 0 && (table_int(s, k - 1, 0) - first_ns) / step_ns == step &&
			strcmp(table_text(s, k - 1, node), table_text(s, i, node)) != 0)
			k--;
		if (k > 0 && (table_int(s, k - 1, 0) - first_ns) / step_ns == step) {
			fold(s, k - 1, i);
			continue;
		}
		memmove(&s->cells[kept * columns], &s->cells[i * columns],
			columns * sizeof(*s->cells));
		kept++;
	}
	s->row_count = kept;
}

int64_t answer_step(const struct question *q, size_t points)
{
	int64_t span = q->scope.to_ns - q->scope.from_ns, second = (int64_t)NS_PER_S;
	int64_t step = span / (int64_t)points + 1;

	return MAX((step + second - 1) / second, INT64_C(1)) * second;
}

int snapshots_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t points = answer_limit(q->request->points, POINTS, POINTS_MAX);
	int64_t step = answer_step(q, points);
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SNAPSHOTS, &q->scope, 0, &s, reterr);

	if (r < 0)
		return r;
	if (s.row_count)
		thin(&s, q->scope.from_ns, step);
	json_begin_object(w);
	json_int_member(w, "step_ns", step);
	json_begin_array_member(w, "snapshots");
	for (size_t i = 0; i < s.row_count; i++) {
		json_begin_object(w);
		put_sample(w, &s, i);
		json_end_object(w);
	}
	json_end_array(w);
	return answer_end(q, w, s.truncated);
}

/* ---- what tracing itself cost, as the agent recorded it ---- */

#define OVERHEAD_POINTS 300

/* All that a row says but its node; without its time, if it stands for the whole. */
static void put_overhead(
	struct json_writer *w, const struct sql_table *t, size_t row, bool is_whole)
{
	for (int c = 0; c < t->column_count; c++) {
		const char *key = sql_table_name(t, c);

		if (!strcmp(key, "node") || (is_whole && !strcmp(key, "timestamp")))
			continue;
		json_key(w, key);
		table_cell(w, t, row, c);
	}
}

int overhead_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t points = answer_limit(q->request->points, OVERHEAD_POINTS, POINTS_MAX), every;
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_OVERHEAD, &q->scope, 0, &s, reterr);

	if (r < 0)
		return r;
	every = s.row_count / points + 1;
	json_begin_object(w);
	json_bool_member(w, "recorded", s.row_count > 0);
	if (s.row_count)
		put_overhead(w, &s, 0, true);
	json_begin_array_member(w, "samples");
	for (size_t i = s.row_count; i-- > 0;) {
		if (i % every)
			continue;
		json_begin_object(w);
		put_overhead(w, &s, i, false);
		json_end_object(w);
	}
	json_end_array(w);
	return answer_end(q, w, s.truncated);
}

/* calls, median and 99th percentile of each operation, bucket by bucket: what a
 * sparkline draws. Only of our own files: others have no sketches.
 * 
 * Buckets come newest first, so one set of sketches, emptied at each border, is enough. */

#define SERIES_POINTS     60
#define SERIES_POINTS_MAX 1000
#define SERIES            24
#define SERIES_MAX        200

struct point {
	uint64_t count, p50_ns, p99_ns;
};

struct line { /* of one operation */
	uint8_t source;
	uint16_t op;
	bool nested;
	uint64_t sum_ns;
	struct point *points; /* of the whole time */
};

struct series {
	struct op_sums ops; /* of the step that is being summed up */
	struct line *lines; /* in the order of ops.rows */
	size_t line_count;
	int64_t first_ns, step_ns; /* start of the first step */
	size_t points, current;
};

static void series_done(struct series *s)
{
	for (size_t i = 0; i < s->line_count; i++)
		free(s->lines[i].points);
	free(s->lines);
	free(s->ops.rows);
}

static void close_step(struct series *s)
{
	for (size_t i = 0; i < s->ops.count; i++) {
		struct op_sum *op = &s->ops.rows[i];

		if (!op->sketch.count)
			continue;
		s->lines[i].points[s->current] = (struct point){op->sketch.count,
			sketch_quantile(&op->sketch, 0.5), sketch_quantile(&op->sketch, 0.99)};
		s->lines[i].sum_ns += op->sketch.sum;
		op->sketch = (struct sketch){0};
	}
}

static int add_line(struct series *s, const struct op_sum *op)
{
	struct line *p = reallocarray(s->lines, s->line_count + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	s->lines = p;
	p[s->line_count] = (struct line){.source = op->source,
		.op = op->op,
		.nested = op->nested,
		.points = calloc(s->points, sizeof(*p->points))};
	return p[s->line_count++].points ? 0 : -ENOMEM;
}

static int add(void *arg, const struct aggregate *a)
{
	struct series *s = arg;
	int64_t step = (a->bucket.ns - s->first_ns) / s->step_ns;
	struct op_sum *op;
	int r;

	if (a->bucket.ns < s->first_ns || step >= (int64_t)s->points)
		return 0;
	if ((size_t)step != s->current)
		close_step(s);
	s->current = (size_t)step;
	r = op_sums_find(&s->ops, a, &op);
	if (r == 0 && s->ops.count > s->line_count)
		r = add_line(s, op);
	if (r == 0)
		sketch_merge(&op->sketch, &a->sketch);
	return r == -ENOBUFS ? 0 : r;
}

ORDER(by_time, struct line, DESCENDING(sum_ns))

static void put_quantiles(struct json_writer *w, const char *key, const struct series *s,
	const struct line *l, bool p99)
{
	json_begin_array_member(w, key);
	for (size_t i = 0; i < s->points; i++)
		if (l->points[i].count)
			json_put_double(w,
				(double)(p99 ? l->points[i].p99_ns : l->points[i].p50_ns) / 1000);
		else
			json_put_null(w);
	json_end_array(w);
}

static void put_line(struct json_writer *w, const struct series *s, const struct line *l)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("operation", WIRE_OP_NAME(l->source, l->op)),
		JSON_S("source", wire_source_name(l->source)), JSON_B("nested", l->nested));
	json_begin_array_member(w, "count");
	for (size_t i = 0; i < s->points; i++)
		json_put_uint(w, l->points[i].count);
	json_end_array(w);
	put_quantiles(w, "p50_us", s, l, false);
	put_quantiles(w, "p99_us", s, l, true);
	json_end_object(w);
}

/* The steps are whole buckets, as many as it takes to have no more than the points asked for. */
static void plan(const struct question *q, struct series *s)
{
	size_t request = answer_limit(q->request->points, SERIES_POINTS, SERIES_POINTS_MAX);
	int64_t width = scope_bucket_ns(&q->scope);
	int64_t first = q->scope.from_ns / width * width, span = q->scope.to_ns - first;
	int64_t buckets = span < 0 ? 1 : span / width + 1;
	int64_t each = (buckets + (int64_t)request - 1) / (int64_t)request;

	s->first_ns = first;
	s->step_ns = MAX(each, INT64_C(1)) * width;
	s->points = (size_t)((buckets + each - 1) / MAX(each, INT64_C(1)));
}

int series_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t limit = answer_limit(q->request->limit, SERIES, SERIES_MAX);
	_cleanup_(series_done) struct series s = {0};
	bool truncated;
	int r;

	plan(q, &s);
	r = nodedb_snapshot_aggregates(q->snapshot, &q->scope, add, &s, &truncated, reterr);

	if (r < 0)
		return r;
	close_step(&s);
	SORT(s.lines, s.line_count, by_time);
	json_begin_object(w);
	JSON_PUT(w, JSON_I("bucket_ns", s.step_ns), JSON_I("first_bucket_ns", s.first_ns),
		JSON_U("points", s.points));
	json_begin_array_member(w, "series");
	for (size_t i = 0; i < MIN(s.line_count, limit); i++)
		put_line(w, &s, &s.lines[i]);
	json_end_array(w);
	return answer_end(q, w, truncated || s.line_count > limit);
}
