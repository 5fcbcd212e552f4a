/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_row.c - rows of sources as checked values. Types are asked before texts: asking for
 * a text may change the type. */
#include <ctype.h>
#include <math.h>

#include "base/text.h"
#include "store/merge/nodedb_merge_private.h"

#define TEXT_MOST (1 << 20) /* bytes: a longer text cannot be meant */

size_t merge_columns(const struct table *t, struct column ret[TABLE_COLUMNS_MAX])
{
	size_t count = 1;

	ret[0] = (struct column){.name = "node", .otherwise = "NULL", .kind = COLUMN_NODE};
	for_each_column (c, t)
		if (c->kind != COLUMN_NODE)
			ret[count++] = *c;
	return count;
}

int merge_select(struct merge *m, const char *table, const struct column *columns, size_t count,
	sql_stmt **ret_stmt, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct reader *r = &m->source.reader;
	int res = schema_has_table(r->sql, table, reterr);

	*ret_stmt = NULL;
	if (res > 0)
		res = reader_select_of(r, table, columns, count, NULL, &sql, reterr);
	return res < 0 || !sql.len ? res : reader_prepare(r, &sql, ret_stmt, reterr);
}

int merge_insert(struct merge *m, const char *table, const struct column *columns, size_t count,
	const char *extra, int extras, sql_stmt **ret_stmt, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);

	buf_printf(&sql, "INSERT OR IGNORE INTO %s (", table);
	for (size_t i = 0; i < count; i++)
		buf_printf(&sql, "%s%s", i ? ", " : "", columns[i].name);
	buf_printf(&sql, "%s) VALUES (?", extra);
	for (size_t i = 1; i < count + (size_t)extras; i++)
		buf_puts(&sql, ",?");
	buf_putc(&sql, ')');
	return sql.err ? sql.err : sql_prepare(m->out, buf_str(&sql), ret_stmt, reterr);
}

/* Whose row it is: the column, else the source's only node. */
static int row_node(
	struct merge *m, sql_stmt *stmt, struct merge_node **ret, struct errinfo *reterr)
{
	enum sql_type type = sql_column_type(stmt, 0);
	const char *name = "";
	size_t len = 0;
	int r;

	if (m->options->force_node) {
		*ret = m->source.only;
		return 1;
	}
	if (type == SQL_TEXT)
		name = sql_column_text(stmt, 0, &len);
	else if (type != SQL_NULL)
		return 0;
	len = strnlen(name, len);
	if (!len && m->source.only) {
		*ret = m->source.only;
		return 1;
	}
	m->source.report.unplaced += !len;
	if (len >= MERGE_NODE_LEN)
		return 0;
	r = merge_node(m, name, len, ret, reterr);
	return r < 0 ? r : 1;
}

static bool id_value(sql_stmt *stmt, int i, struct sql_value *v)
{
	const char *text, *colon;
	char *end;
	size_t len;

	*v = SQL_I(0); /* a number of its own will be found */
	switch (sql_column_type(stmt, i)) {
	case SQL_INT: v->i = MAX(sql_column_int(stmt, i), INT64_C(0)); return true;
	case SQL_TEXT: break;
	default: return false;
	}
	text = sql_column_text(stmt, i, &len);
	colon = strrchr(text, ':');
	if (colon && colon[1] >= '0' && colon[1] <= '9') {
		errno = 0;
		v->i = strtoll(colon + 1, &end, 10);
		if (errno || *end)
			v->i = 0;
	}
	return true;
}

static bool text_value(const struct column *c, sql_stmt *stmt, int i, struct sql_value *v)
{
	size_t len;
	const char *text;

	if (sql_column_type(stmt, i) != SQL_TEXT)
		return false;
	text = sql_column_text(stmt, i, &len);
	if (len > TEXT_MOST || (c->kind == COLUMN_JSON && len > (size_t)c->max))
		return false;
	len = text_cut(text, strnlen(text, len), (size_t)c->max);
	*v = (struct sql_value){.type = SQL_TEXT, .p = text, .len = len};
	return true;
}

static bool time_value(const struct merge_node *n, bool or_0, struct sql_value *v)
{
	int64_t moved = v->i + n->undo_ns + n->align_ns;

	if (or_0 && v->i == 0)
		return true;
	if (v->i < 1 || v->i > WALL_NS_MAX || moved < 1 || moved > WALL_NS_MAX)
		return false;
	v->i = moved;
	return true;
}

static bool number_value(const struct column *c, const struct merge_node *n, sql_stmt *stmt, int i,
	struct sql_value *v)
{
	if (!sql_column_is_int(stmt, i, &v->i))
		return false;
	v->type = SQL_INT;
	switch (c->kind) {
	case COLUMN_COUNT: return v->i >= 0 && (!c->max || v->i <= c->max);
	case COLUMN_TIME: return time_value(n, false, v);
	case COLUMN_TIME_OR_0: return time_value(n, true, v);
	default: return true;
	}
}

static bool value_at(struct merge *m, const struct column *c, const struct merge_node *n,
	sql_stmt *stmt, int i, struct sql_value *v)
{
	enum sql_type type;

	switch (c->kind) {
	case COLUMN_NODE:
		*v = (struct sql_value){.type = SQL_TEXT, .p = n->name, .len = n->len};
		return true;
	case COLUMN_ID: return id_value(stmt, i, v);
	case COLUMN_SESSION:
		v->type = SQL_INT;
		return sql_column_is_int(stmt, i, &v->i) && merge_session_id(m, v->i, &v->i) == 0;
	case COLUMN_REAL:
		type = sql_column_type(stmt, i);
		*v = SQL_R(sql_column_real(stmt, i));
		return (type == SQL_REAL || type == SQL_INT) && isfinite(v->d);
	case COLUMN_TEXT:
	case COLUMN_JSON: return text_value(c, stmt, i, v);
	case COLUMN_BLOB:
		type = sql_column_type(stmt, i);
		*v = (struct sql_value){.type = SQL_BLOB};
		v->p = sql_column_blob(stmt, i, &v->len);
		return type == SQL_BLOB && v->len <= (size_t)c->max;
	default: return number_value(c, n, stmt, i, v);
	}
}

int merge_row(struct merge *m, const struct column *columns, size_t count, sql_stmt *stmt,
	struct sql_value *values, struct merge_node **ret_node, struct errinfo *reterr)
{
	struct merge_node *node;
	int r = row_node(m, stmt, &node, reterr);

	for (size_t i = 0; r > 0 && i < count; i++) {
		if (value_at(m, &columns[i], node, stmt, (int)i, &values[i]))
			continue;
		if (columns[i].may_lack)
			values[i] = SQL_NOTHING;
		else
			r = 0;
	}
	if (r == 0)
		m->source.report.skipped++;
	if (r > 0)
		*ret_node = node;
	return r;
}

/* the tables that are copied row by row, each by its description. A row
 * whose key is there already is a duplicate; `settle` says what the output's row gains from it. */

#define SQL_MAX 4096

struct copier {
	const struct table *table;
	struct column columns[TABLE_COLUMNS_MAX];
	size_t count;
	sql_stmt *put, *settle;
};

static int copy_row(
	struct merge *m, struct copier *c, const struct sql_value *values, struct errinfo *reterr)
{
	struct merge_tally *tally = &m->source.report.others;
	size_t first = c->table->is_of_all;
	int r = sql_put(c->put, values + first, c->count - first, reterr);

	if (r < 0)
		return r;
	if (sql_changes(m->out)) {
		tally->copied++;
		return 0;
	}
	tally->duplicates++;
	return c->settle ? sql_put(c->settle, values, (size_t)sql_parameters(c->settle), reterr)
			 : 0;
}

/* $column is the parameter of its value. */
static int prepare_settle(
	struct merge *m, const struct copier *c, sql_stmt **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_MAX);

	for (const char *s = c->table->settle; *s;) {
		size_t len = 1;

		if (*s != '$') {
			buf_putc(&sql, *s++);
			continue;
		}
		while (isalnum((unsigned char)s[len]) || s[len] == '_')
			len++;
		for (size_t i = 0; i < c->count; i++)
			if (!strncmp(c->columns[i].name, s + 1, len - 1) &&
				!c->columns[i].name[len - 1])
				buf_printf(&sql, "?%zu", i + 1);
		s += len;
	}
	return sql_prepare_buf(m->out, &sql, ret, reterr);
}

static int copy_table(struct merge *m, enum node_table table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL, *put = NULL, *settle = NULL;
	struct copier c = {.table = &node_tables[table]};
	const struct table *t = c.table;
	struct sql_value values[TABLE_COLUMNS_MAX];
	uint64_t unplaced = m->source.report.unplaced;
	struct merge_node *node;
	int r;

	c.count = merge_columns(t, c.columns);
	r = merge_select(m, t->name, c.columns, c.count, &get, reterr);
	if (r < 0 || !get)
		return r;
	r = merge_insert(
		m, t->name, c.columns + t->is_of_all, c.count - t->is_of_all, "", 0, &put, reterr);
	if (r == 0 && t->settle)
		r = prepare_settle(m, &c, &settle, reterr);
	c.put = put;
	c.settle = settle;
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(m, c.columns, c.count, get, values, &node, reterr);
		if (r > 0)
			r = copy_row(m, &c, values, reterr);
	}
	if (t->is_of_all)
		m->source.report.unplaced = unplaced;
	return r;
}

int merge_collectives(struct merge *m, struct errinfo *reterr)
{
	return copy_table(m, TABLE_COLLECTIVES, reterr);
}

int merge_other_tables(struct merge *m, struct errinfo *reterr)
{
	static const enum node_table tables[] = {TABLE_SAMPLES, TABLE_GPU_SAMPLES, TABLE_CONTAINERS,
		TABLE_LEDGER, TABLE_OVERHEAD, TABLE_PROCESS_NAMES, TABLE_PROCESSES, TABLE_COVERAGE,
		TABLE_CALL_GAPS, TABLE_GROUPS, TABLE_SCHEDSTAT, TABLE_ANNOTATIONS, TABLE_KERNELS,
		TABLE_NAMES, TABLE_LOSSES, TABLE_CPU_LOSSES, TABLE_ACCOUNTING, TABLE_PRUNED};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(tables); i++)
		r = copy_table(m, tables[i], reterr);
	return r;
}

/* counts of all calls, by bucket.
 * 
 * Parts of one bucket that two rolled files hold are added, sketches too. But a file that is a copy
 * of a recording in the output (it shares a session or events with it) counts the same calls again:
 * of its buckets the larger count stays. */

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

struct aggregate_copier {
	struct merge *m;
	struct column columns[TABLE_COLUMNS_MAX];
	sql_stmt *put, *find, *replace;
	struct sketch *sketch;
	uint8_t *blob;
};

static bool is_sound(struct aggregate_copier *c, const struct sql_value *v)
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
static void add_stored(struct aggregate_copier *c, struct sql_value *v)
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

static int put_bucket(struct aggregate_copier *c, struct sql_value *v, struct errinfo *reterr)
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
	r = r ?: sql_step(c->find, reterr);
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

static int aggregate_copy_table(
	struct aggregate_copier *c, const char *table, struct errinfo *reterr)
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

static int merge_table(struct aggregate_copier *c, const char *table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *put = NULL, *find = NULL, *replace = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(2048);
	int r = merge_insert(c->m, table, c->columns, COL_COUNT, "", 0, &put, reterr);

	buf_printf(&sql,
		"SELECT count, stored, sum_dur, min_dur, max_dur, sum_arg0, sketch FROM %s" KEY,
		table);
	r = r ?: sql_prepare_buf(c->m->out, &sql, &find, reterr);
	buf_clear(&sql);
	buf_printf(&sql,
		"UPDATE %s SET count = ?7, stored = ?8, sum_dur = ?9, min_dur = ?10, max_dur = ?11,"
		" sum_arg0 = ?12, sketch = ?13" KEY,
		table);
	r = r ?: sql_prepare_buf(c->m->out, &sql, &replace, reterr);
	c->put = put;
	c->find = find;
	c->replace = replace;
	return r < 0 ? r : aggregate_copy_table(c, table, reterr);
}

int merge_aggregates(struct merge *m, struct errinfo *reterr)
{
	_cleanup_free_ struct sketch *sketch = malloc(sizeof(*sketch));
	_cleanup_free_ uint8_t *blob = malloc(SKETCH_BLOB_MAX);
	struct aggregate_copier c = {.m = m, .sketch = sketch, .blob = blob};
	int r;

	if (!sketch || !blob)
		return -ENOMEM;
	merge_columns(&node_tables[TABLE_COARSE], c.columns);
	r = merge_table(&c, "event_aggregates", reterr);
	return r < 0 ? r : merge_table(&c, "event_aggregates_5s", reterr);
}
