/* SPDX-License-Identifier: Apache-2.0 */
/* sql_build.c - see sql_build.h. Keeps the invariants of sql_table.c: cells refer to texts by
 * offset, and cells and texts together stay below bytes_max. */
#include "sql/sql_build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

int sql_build_begin(struct sql_table *t, const char *const *names, int count, size_t bytes_max)
{
	*t = (struct sql_table){
		.column_count = count,
		.bytes_max = bytes_max,
		.text = BUF_INIT(bytes_max + 64),
	};
	t->names = calloc((size_t)MAX(count, 1), sizeof(*t->names));
	if (!t->names)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		t->names[i] = t->text.len;
		buf_append(&t->text, names[i], strlen(names[i]) + 1);
	}
	return t->text.err;
}

/* Bytes that the row takes; SIZE_MAX if they cannot be counted. */
static size_t row_bytes(const struct sql_table *t, const struct sql_value *values)
{
	size_t n = (size_t)t->column_count * sizeof(*t->cells);

	for (int i = 0; i < t->column_count; i++)
		if (values[i].type == SQL_TEXT || values[i].type == SQL_BLOB)
			n = values[i].len > SIZE_MAX / 2 - n ? SIZE_MAX : n + values[i].len + 1;
	return n;
}

static int make_room(struct sql_table *t, const struct sql_value *values)
{
	size_t columns = (size_t)t->column_count, need = (t->row_count + 1) * columns;
	size_t used = t->row_count * columns * sizeof(*t->cells) + t->text.len;
	size_t row = row_bytes(t, values);

	if (used > t->bytes_max || row > t->bytes_max - used)
		return -ENOBUFS;
	return ARRAY_RESERVE(t->cells, t->capacity, need, t->bytes_max / sizeof(*t->cells));
}

int sql_build_row(struct sql_table *t, const struct sql_value *values)
{
	int r = make_room(t, values);
	struct sql_cell *c;

	if (r < 0)
		return r;
	c = t->cells + t->row_count * (size_t)t->column_count;
	for (int i = 0; i < t->column_count; i++, c++) {
		*c = (struct sql_cell){.type = values[i].type};
		switch (c->type) {
		case SQL_NULL: break;
		case SQL_INT: c->i = values[i].i; break;
		case SQL_REAL: c->d = values[i].d; break;
		case SQL_TEXT:
		case SQL_BLOB:
			c->offset = t->text.len;
			c->len = values[i].len;
			buf_append(&t->text, values[i].p, values[i].len);
			buf_append(&t->text, "", 1);
			break;
		}
	}
	if (t->text.err)
		return t->text.err;
	t->row_count++;
	return 0;
}
