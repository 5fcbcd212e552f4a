/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_stack.c - call stacks, each hash once. A hash whose content differs (names were
 * found on one node and not on the other) keeps the one with more names. Python frames of published
 * files get the place that ours have. */
#include <errno.h>
#include <stdlib.h>

#include "store/merge/nodedb_merge_private.h"

enum { COL_NODE, COL_HASH, COL_IPS, COL_FRAMES, COL_STOP, COL_COUNT };

STATIC_ASSERT(STACK_JSON_MAX == 64 << 10); /* as in tables.c */

struct copier {
	struct merge *m;
	sql_stmt *put, *find, *replace;
	struct buf frames, stop;
};

static struct stack_row row_of(const struct sql_value *v)
{
	return (struct stack_row){.hash = (uint64_t)v[COL_HASH].i,
		.ips = v[COL_IPS].p,
		.ips_len = v[COL_IPS].len,
		.frames = v[COL_FRAMES].p,
		.frames_len = v[COL_FRAMES].len,
		.stop = v[COL_STOP].p,
		.stop_len = v[COL_STOP].len};
}

/* Checks the stack; of a published file puts its frames in order. 1, 0 if it makes no sense. */
static int settle(struct copier *c, struct sql_value *v)
{
	struct stack_row row = row_of(v);
	_cleanup_free_ struct stack *s = NULL;
	int r = stack_json_read(&row, &s);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (c->m->source.reader.kind != SCHEMA_PUBLISHED || v[COL_FRAMES].len == 0)
		return 1;
	reader_stack_order(s);
	buf_clear(&c->frames);
	buf_clear(&c->stop);
	stack_json_frames(s, &c->frames, &c->stop);
	if (c->frames.err || c->stop.err)
		return c->frames.err ? c->frames.err : c->stop.err;
	v[COL_FRAMES] = SQL_S(buf_str(&c->frames));
	v[COL_STOP] = SQL_S(buf_str(&c->stop));
	return 1;
}

/* How many frames have names. */
static int names_in(const struct stack_row *row, size_t *ret)
{
	_cleanup_free_ struct stack *s = NULL;
	int r = stack_json_read(row, &s);

	*ret = 0;
	for (size_t i = 0; r == 0 && i < s->count; i++)
		*ret += s->frames[i].symbol || s->frames[i].py_func;
	return r == -ENOMEM ? r : 0;
}

static bool is_equal(sql_stmt *stmt, int column, const struct sql_value *v)
{
	size_t len;
	const char *text = sql_column_text(stmt, column, &len);

	return len == v->len && !memcmp(text, v->p, len);
}

/* The hash is there: the same stack, or one of the two is better. */
static int compare(struct copier *c, const struct sql_value *v, struct errinfo *reterr)
{
	struct stack_row here = {0}, mine = row_of(v);
	size_t old_names, names;
	int r = sql_bind(c->find, &v[COL_HASH], 1, reterr);

	c->m->source.report.stacks.duplicates++;
	if (r == 0)
		r = sql_step(c->find, reterr);
	if (r <= 0)
		return r;
	if (is_equal(c->find, 0, &v[COL_IPS]) && is_equal(c->find, 1, &v[COL_FRAMES])) {
		sql_reset(c->find);
		return 0;
	}
	c->m->source.report.differing_stacks++;
	here.hash = mine.hash;
	here.ips = sql_column_text(c->find, 0, &here.ips_len);
	here.frames = sql_column_text(c->find, 1, &here.frames_len);
	here.stop = sql_column_text(c->find, 2, &here.stop_len);
	r = names_in(&here, &old_names);
	if (r == 0)
		r = names_in(&mine, &names);
	sql_reset(c->find);
	return r < 0 || names <= old_names ? r : sql_put(c->replace, v + COL_HASH, 4, reterr);
}

static int put_stack(struct copier *c, struct sql_value *v, struct errinfo *reterr)
{
	int r = settle(c, v);

	if (r == 0)
		c->m->source.report.skipped++;
	if (r <= 0)
		return r;
	r = sql_put(c->put, v + COL_HASH, 4, reterr);
	if (r < 0)
		return r;
	if (!sql_changes(c->m->out))
		return compare(c, v, reterr);
	c->m->source.report.stacks.copied++;
	return 0;
}

static int prepare(struct copier *c, sql_db *out, struct errinfo *reterr)
{
	int r = sql_prepare(out,
		"INSERT OR IGNORE INTO stack_traces (hash, ips, frames, stop) VALUES (?1,?2,?3,?4)",
		&c->put, reterr);

	if (r == 0)
		r = sql_prepare(out, "SELECT ips, frames, stop FROM stack_traces WHERE hash = ?1",
			&c->find, reterr);
	if (r == 0)
		r = sql_prepare(out,
			"UPDATE stack_traces SET ips = ?2, frames = ?3, stop = ?4 WHERE hash = ?1",
			&c->replace, reterr);
	return r;
}

static void copier_done(struct copier *c)
{
	sql_finalize(c->put);
	sql_finalize(c->find);
	sql_finalize(c->replace);
	buf_done(&c->frames);
	buf_done(&c->stop);
}

int merge_stacks(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(copier_done) struct copier c = {
		.m = m, .frames = BUF_INIT(STACK_JSON_MAX), .stop = BUF_INIT(4096)};
	_cleanup_(sql_finalizep) sql_stmt *get = NULL;
	struct sql_value values[COL_COUNT];
	struct column columns[TABLE_COLUMNS_MAX];
	size_t count = merge_columns(&node_tables[TABLE_STACKS], columns);
	uint64_t unplaced = m->source.report.unplaced;
	struct merge_node *node;
	int r = merge_select(m, "stack_traces", columns, count, &get, reterr);

	if (r < 0 || !get)
		return r;
	r = prepare(&c, m->out, reterr);
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(m, columns, count, get, values, &node, reterr);
		if (r > 0)
			r = put_stack(&c, values, reterr);
	}
	m->source.report.unplaced = unplaced; /* a stack is nobody's */
	return r;
}
