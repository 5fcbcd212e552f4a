/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - figures of each operation over a time, of all calls: by the aggregates' sketches, in
 * files of the published agent by rows, and if these are too many by its aggregates, which know no
 * percentiles. */
#include <errno.h>
#include <stdlib.h>

#include "agent/answer/op_stat.h"
#include "agent/answer/answer.h"
#include "agent/answer/answer_private.h"

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

static int by_time(const void *a, const void *b)
{
	const struct op_sum *x = a, *y = b;

	return x->sketch.sum < y->sketch.sum ? 1 : x->sketch.sum > y->sketch.sum ? -1 : 0;
}

static void begin_op(struct json_writer *w, unsigned source, unsigned op, bool nested)
{
	char scratch[32];

	json_begin_object(w);
	json_string_member(w, "operation", wire_op_name(source, op, scratch));
	json_string_member(w, "source", wire_source_name(source));
	put_bool(w, "nested", nested);
}

static void put_sums(struct json_writer *w, uint64_t calls, double sum, double min, double max)
{
	put_us(w, "avg_us", calls ? sum / (double)calls : 0);
	put_us(w, "min_us", min);
	put_us(w, "max_us", max);
	put_us(w, "total_us", sum);
}

static uint64_t put_sketches(struct op_sums *o, struct json_writer *w)
{
	uint64_t calls = 0;

	if (o->count)
		qsort(o->rows, o->count, sizeof(*o->rows), by_time);
	for (size_t i = 0; i < o->count; i++) {
		const struct op_sum *p = &o->rows[i];
		const struct sketch *s = &p->sketch;

		begin_op(w, p->source, p->op, p->nested);
		json_uint_member(w, "count", s->count);
		json_uint_member(w, "stored", p->stored);
		put_us(w, "p50_us", (double)sketch_quantile(s, 0.5));
		put_us(w, "p95_us", (double)sketch_quantile(s, 0.95));
		put_us(w, "p99_us", (double)sketch_quantile(s, 0.99));
		put_sums(w, s->count, (double)s->sum, (double)s->min, (double)s->max);
		json_end_object(w);
		calls += p->nested ? 0 : s->count;
	}
	return calls;
}

struct figures {
	const char *mode;
	uint64_t calls;
	bool truncated;
};

static int put_ours(
	const struct question *t, struct json_writer *w, struct figures *f, struct errinfo *reterr)
{
	struct op_sums o = {0};
	int r = nodedb_snapshot_aggregates(t->snapshot, &t->scope, add, &o, &f->truncated, reterr);

	if (r == 0) {
		f->calls = put_sketches(&o, w);
		f->mode = o.count ? "percentile" : "empty";
	}
	free(o.rows);
	return r;
}

static int put_rows(
	const struct question *t, struct json_writer *w, struct figures *f, struct errinfo *reterr)
{
	struct nodedb_filter filter = {.scope = t->scope};
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	_cleanup_free_ struct op_stat *stats = NULL;
	size_t count = 0;
	int r = nodedb_read(nodedb_snapshot_path(t->snapshot), &filter, &c, reterr);

	if (r == 0)
		r = op_stat_run(c.events, c.event_count, &stats, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		const struct op_stat *s = &stats[i];

		begin_op(w, s->source, s->op, false);
		json_uint_member(w, "count", s->calls);
		json_uint_member(w, "stored", s->rows);
		put_us(w, "p50_us", (double)s->p50_ns);
		put_us(w, "p95_us", (double)s->p95_ns);
		put_us(w, "p99_us", (double)s->p99_ns);
		put_sums(w, s->calls, (double)s->sum_ns, (double)s->min_ns, (double)s->max_ns);
		json_end_object(w);
	}
	f->mode = count ? "percentile" : "empty";
	f->calls = c.event_count;
	return 0;
}

static int put_aggregates(
	const struct question *t, struct json_writer *w, struct figures *f, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table sums = {0};
	int r = nodedb_snapshot_list(t->snapshot, NODEDB_OP_SUMS, &t->scope, 0, &sums, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sums.row_count; i++) {
		uint64_t calls = (uint64_t)table_int(&sums, i, 2);

		begin_op(w, (unsigned)table_int(&sums, i, 0), (unsigned)table_int(&sums, i, 1),
			false);
		json_uint_member(w, "count", calls);
		json_int_member(w, "stored", table_int(&sums, i, 6));
		put_sums(w, calls, table_real(&sums, i, 3), table_real(&sums, i, 4),
			table_real(&sums, i, 5));
		json_end_object(w);
		f->calls += calls;
	}
	f->mode = sums.row_count ? "aggregate" : "empty";
	f->truncated = sums.truncated;
	return 0;
}

static int put_published(
	const struct question *t, struct json_writer *w, struct figures *f, struct errinfo *reterr)
{
	uint64_t rows = 0;
	int r = nodedb_snapshot_count(t->snapshot, &t->scope, ROWS_MAX, &rows, reterr);

	if (r < 0)
		return r;
	return rows <= ROWS_MAX ? put_rows(t, w, f, reterr) : put_aggregates(t, w, f, reterr);
}

int answer_ops(const struct question *t, struct json_writer *w, struct errinfo *reterr)
{
	struct figures f = {.mode = "empty"};
	int r;

	json_begin_object(w);
	json_key(w, "ops");
	json_begin_array(w);
	r = nodedb_snapshot_is_ours(t->snapshot) ? put_ours(t, w, &f, reterr)
						 : put_published(t, w, &f, reterr);
	json_end_array(w);
	if (r == 0)
		r = put_system(t, w, reterr);
	json_string_member(w, "mode", f.mode);
	json_uint_member(w, "total_calls", f.calls);
	put_bool(w, "truncated", f.truncated);
	put_window(t, w);
	json_end_object(w);
	return r;
}
