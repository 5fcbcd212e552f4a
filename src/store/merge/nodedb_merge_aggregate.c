/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_aggregate.c - counts of all calls, by bucket.
 *
 * Parts of one bucket that two rolled files hold are added, sketches too. But a file that is a copy
 * of a recording in the output (it shares a session or events with it) counts the same calls again:
 * of its buckets the larger count stays. */
#include <errno.h>
#include <stdlib.h>

#include "store/merge/nodedb_merge_private.h"

enum { /* where the value of each column is */
	COL_NODE,
	COL_BUCKET,
	COL_SOURCE,
	COL_OP,
	COL_PID,
	COL_NESTED,
	COL_CALLS,
	COL_STORED,
	COL_SUM,
	COL_MIN,
	COL_MAX,
	COL_ARG0,
	COL_SKETCH,
	COL_COUNT
};

#define KEY                                                                                        \
	" WHERE node = ?1 AND bucket = ?2 AND source = ?3 AND op = ?4 AND pid = ?5 AND nested = "  \
	"?6"

struct copier {
	struct merge *m;
	struct column columns[TABLE_COLUMNS_MAX];
	sql_stmt *put, *find, *replace;
	struct sketch *sketch;
	uint8_t *blob;
};

static bool is_sound(struct copier *c, const struct sql_value *v)
{
	if (!v[COL_SOURCE].i || v[COL_MIN].i > v[COL_MAX].i || v[COL_STORED].i > v[COL_CALLS].i)
		return false;
	*c->sketch = (struct sketch){0};
	return v[COL_SKETCH].type == SQL_NULL ||
	       (sketch_decode(c->sketch, v[COL_SKETCH].p, v[COL_SKETCH].len) == 0 &&
		       c->sketch->count == (uint64_t)v[COL_CALLS].i);
}

static int64_t add(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* What stands in the output's row, added to @v. The sketch in c is @v's. */
static void add_stored(struct copier *c, struct sql_value *v)
{
	size_t len;
	const void *blob = sql_column_blob(c->find, COL_SKETCH - COL_CALLS, &len);
	int64_t calls = sql_column_int(c->find, 0), least = sql_column_int(c->find, 3);

	/* Without the distribution of one part the whole has none. */
	if (v[COL_SKETCH].type == SQL_NULL || !blob || sketch_decode(c->sketch, blob, len) < 0)
		v[COL_SKETCH] = SQL_NOTHING;
	else
		v[COL_SKETCH] = SQL_B(c->blob, sketch_encode(c->sketch, c->blob));
	if (!v[COL_CALLS].i || (calls && least < v[COL_MIN].i))
		v[COL_MIN].i = least;
	v[COL_CALLS].i = add(v[COL_CALLS].i, calls);
	v[COL_STORED].i = add(v[COL_STORED].i, sql_column_int(c->find, 1));
	v[COL_SUM].i = add(v[COL_SUM].i, sql_column_int(c->find, 2));
	v[COL_MAX].i = MAX(v[COL_MAX].i, sql_column_int(c->find, 4));
	v[COL_ARG0].i = add(v[COL_ARG0].i, sql_column_int(c->find, 5));
}

static int put_bucket(struct copier *c, struct sql_value *v, struct errinfo *reterr)
{
	struct merge_tally *t = &c->m->source.report.others;
	bool replace;
	int r = sql_put(c->put, v, COL_COUNT, reterr);

	if (r < 0)
		return r;
	if (sql_changes(c->m->out)) {
		t->copied++;
		return 0;
	}
	r = sql_bind(c->find, v, COL_CALLS, reterr);
	if (r == 0)
		r = sql_step(c->find, reterr);
	if (r <= 0)
		return r;
	if (c->m->source.is_copy) {
		t->duplicates++;
		replace = sql_column_int(c->find, 0) < v[COL_CALLS].i;
	} else {
		t->copied++;
		add_stored(c, v);
		replace = true;
	}
	sql_reset(c->find);
	return replace ? sql_put(c->replace, v, COL_COUNT, reterr) : 0;
}

static int copy_table(struct copier *c, const char *table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL;
	struct sql_value values[COL_COUNT];
	struct merge_node *node;
	int r = merge_select(c->m, table, c->columns, COL_COUNT, &get, reterr);

	if (r < 0 || !get)
		return r;
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(c->m, c->columns, COL_COUNT, get, values, &node, reterr);
		if (r <= 0)
			continue;
		if (is_sound(c, values))
			r = put_bucket(c, values, reterr);
		else
			c->m->source.report.skipped++;
	}
	return r;
}

static int merge_table(struct copier *c, const char *table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *put = NULL, *find = NULL, *replace = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(2048);
	int r = merge_insert(c->m, table, c->columns, COL_COUNT, "", 0, &put, reterr);

	buf_printf(&sql,
		"SELECT count, stored, sum_dur, min_dur, max_dur, sum_arg0, sketch FROM %s" KEY,
		table);
	if (r == 0)
		r = sql_prepare_buf(c->m->out, &sql, &find, reterr);
	buf_clear(&sql);
	buf_printf(&sql,
		"UPDATE %s SET count = ?7, stored = ?8, sum_dur = ?9, min_dur = ?10, max_dur = ?11,"
		" sum_arg0 = ?12, sketch = ?13" KEY,
		table);
	if (r == 0)
		r = sql_prepare_buf(c->m->out, &sql, &replace, reterr);
	c->put = put;
	c->find = find;
	c->replace = replace;
	return r < 0 ? r : copy_table(c, table, reterr);
}

int merge_aggregates(struct merge *m, struct errinfo *reterr)
{
	_cleanup_free_ struct sketch *sketch = malloc(sizeof(*sketch));
	_cleanup_free_ uint8_t *blob = malloc(SKETCH_BLOB_MAX);
	struct copier c = {.m = m, .sketch = sketch, .blob = blob};
	int r;

	if (!sketch || !blob)
		return -ENOMEM;
	merge_columns(&node_tables[TABLE_COARSE], c.columns);
	r = merge_table(&c, "event_aggregates", reterr);
	return r < 0 ? r : merge_table(&c, "event_aggregates_5s", reterr);
}
