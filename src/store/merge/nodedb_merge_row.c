/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_row.c - rows of sources as checked values. Types are asked before texts: asking for
 * a text may change the type. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "store/merge/nodedb_merge_private.h"

#define SQL_TEXT_MAX (16 << 10)
#define TEXT_MOST    (1 << 20) /* bytes: a longer text cannot be meant */

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
	struct reader_column names[TABLE_COLUMNS_MAX];
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct reader *r = &m->source.reader;
	int res = schema_has_table(r->sql, table, reterr);

	*ret_stmt = NULL;
	if (res <= 0)
		return res;
	for (size_t i = 0; i < count; i++)
		names[i] = (struct reader_column){columns[i].name, columns[i].otherwise};
	res = reader_select(r, table, names, count, &sql, reterr);
	return res < 0 ? res : reader_prepare(r, &sql, ret_stmt, reterr);
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
	len = strnlen(text, len);
	if (len > (size_t)c->max) {
		len = (size_t)c->max;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
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
