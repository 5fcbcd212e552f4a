/* SPDX-License-Identifier: Apache-2.0 */
/* sql_table.c - see sql_table.h. Texts lie in one buffer and cells refer to them by offset, because
 * the buffer moves as it grows. Cells and texts together stay below bytes_max. */
#include "sql/sql_table.h"

#include <sqlite3.h>

#include "base/array.h"

int sql_table_open(struct sql_table *t, int column_count, size_t bytes_max)
{
	*t = (struct sql_table){
		.column_count = column_count,
		.bytes_max = bytes_max,
		.text = BUF_INIT(bytes_max + 64),
	};
	t->names = calloc((size_t)MAX(t->column_count, 1), sizeof(*t->names));
	return t->names ? 0 : -ENOMEM;
}

int sql_table_set_name(struct sql_table *t, int column, const char *name)
{
	t->names[column] = t->text.len;
	buf_append(&t->text, name ? name : "", strlen(name ? name : "") + 1);
	return t->text.err;
}

int sql_table_begin(struct sql_table *t, sql_stmt *stmt, size_t bytes_max)
{
	int r = sql_table_open(t, sqlite3_column_count(stmt), bytes_max);

	for (int i = 0; r == 0 && i < t->column_count; i++)
		r = sql_table_set_name(t, i, sqlite3_column_name(stmt, i));
	return r;
}

static int make_room(struct sql_table *t)
{
	size_t need = (t->row_count + 1) * (size_t)t->column_count;

	if (need * sizeof(*t->cells) + t->text.len > t->bytes_max)
		return -ENOBUFS;
	return ARRAY_RESERVE(t->cells, t->capacity, need, t->bytes_max / sizeof(*t->cells));
}

static int add_bytes(struct sql_table *t, struct sql_cell *c, const void *data, size_t len)
{
	/* those of this row too: make_room() has counted them */
	size_t cells = (t->row_count + 1) * (size_t)t->column_count * sizeof(*t->cells);

	c->offset = t->text.len;
	c->len = len;
	if (len >= t->bytes_max - MIN(t->bytes_max, cells + t->text.len))
		return -ENOBUFS;
	buf_append(&t->text, data ? data : "", len);
	buf_append(&t->text, "", 1);
	return t->text.err;
}

static int add_cell(struct sql_table *t, const struct sql_value *v, struct sql_cell *c)
{
	*c = (struct sql_cell){.type = v->type};
	switch (v->type) {
	case SQL_INT: c->i = v->i; return 0;
	case SQL_REAL: c->d = v->d; return 0;
	case SQL_TEXT:
	case SQL_BLOB: return add_bytes(t, c, v->p, v->len);
	case SQL_NULL: break;
	}
	return 0;
}

int sql_table_put(struct sql_table *t, const struct sql_value *row)
{
	size_t first = t->row_count * (size_t)t->column_count, before = t->text.len;
	int r = make_room(t);

	for (int i = 0; r == 0 && i < t->column_count; i++)
		r = add_cell(t, &row[i], &t->cells[first + (size_t)i]);
	if (r == 0)
		t->row_count++;
	else
		t->text.len = before;
	return r;
}

int sql_table_add(struct sql_table *t, sql_stmt *stmt)
{
	size_t first = t->row_count * (size_t)t->column_count, before = t->text.len;
	int r = make_room(t);

	for (int i = 0; r == 0 && i < t->column_count; i++) {
		struct sql_value v = sql_column_value(stmt, i);

		r = add_cell(t, &v, &t->cells[first + (size_t)i]);
	}
	if (r == 0)
		t->row_count++;
	else
		t->text.len = before;
	return r;
}

void sql_table_done(struct sql_table *t)
{
	free(t->names);
	free(t->cells);
	buf_done(&t->text);
	*t = (struct sql_table){0};
}

int sql_build_begin(struct sql_table *t, const char *const *names, int count, size_t bytes_max)
{
	int r = sql_table_open(t, count, bytes_max);

	for (int i = 0; r == 0 && i < count; i++)
		r = sql_table_set_name(t, i, names[i]);
	return r;
}
