/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - calls, median and 99th percentile of each operation, bucket by bucket: what a
 * sparkline draws. Only of our own files: others have no sketches.
 *
 * Buckets come newest first, so one set of sketches, emptied at each border, is enough. */
#include <errno.h>
#include <stdlib.h>

#include "answer/answer_private.h"
#include "answer/ops.h"

#define POINTS     60
#define POINTS_MAX 1000
#define SERIES     24
#define SERIES_MAX 200

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

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->sum_ns < y->sum_ns ? 1 : x->sum_ns > y->sum_ns ? -1 : 0;
}

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
	char scratch[32];

	json_begin_object(w);
	json_string_member(w, "operation", wire_op_name(l->source, l->op, scratch));
	json_string_member(w, "source", wire_source_name(l->source));
	json_bool_member(w, "nested", l->nested);
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
	size_t request = answer_limit(q->request->points, POINTS, POINTS_MAX);
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
	if (s.line_count)
		qsort(s.lines, s.line_count, sizeof(*s.lines), by_time);
	json_begin_object(w);
	json_int_member(w, "bucket_ns", s.step_ns);
	json_int_member(w, "first_bucket_ns", s.first_ns);
	json_uint_member(w, "points", s.points);
	json_begin_array_member(w, "series");
	for (size_t i = 0; i < MIN(s.line_count, limit); i++)
		put_line(w, &s, &s.lines[i]);
	json_end_array(w);
	return answer_end(q, w, truncated || s.line_count > limit);
}
