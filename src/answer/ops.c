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

#include <errno.h>
#include <stdlib.h>

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
	if (r == 0)
		r = op_stat_run(c.events, c.event_count, &a->rows, &a->count);
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
