/* SPDX-License-Identifier: Apache-2.0 */
/* duck_append.c - rows into a table by chunks of vectors, DuckDB's fastest way. See duck.h. */

#include "base/buf.h"
#include "base/text.h"
#include "duck/duck.h"
#include "duck/duck_api.h"

struct duck_appender {
	duck_handle handle, chunk;
	int column_count;
	uint64_t row, row_max;
	const enum duck_type *types; /* copied behind this struct */
	void **data;                 /* of each column's vector, of the chunk as it is now */
	uint64_t **valid;
};

static int type_id(enum duck_type t)
{
	switch (t) {
	case DUCK_DOUBLE: return DUCK_ID_DOUBLE;
	case DUCK_VARCHAR: return DUCK_ID_VARCHAR;
	case DUCK_INTEGER: return DUCK_ID_INTEGER;
	case DUCK_BIGINT: break;
	}
	return DUCK_ID_BIGINT;
}

static void find_vectors(struct duck_appender *a)
{
	for (int i = 0; i < a->column_count; i++) {
		duck_handle v = duck_api.data_chunk_get_vector(a->chunk, (uint64_t)i);

		duck_api.vector_ensure_validity_writable(v);
		a->data[i] = duck_api.vector_get_data(v);
		a->valid[i] = duck_api.vector_get_validity(v);
	}
}

static int make_chunk(struct duck_appender *a)
{
	_cleanup_free_ duck_handle *types = calloc((size_t)a->column_count, sizeof(*types));

	if (!types)
		return -ENOMEM;
	for (int i = 0; i < a->column_count; i++)
		types[i] = duck_api.create_logical_type(type_id(a->types[i]));
	a->chunk = duck_api.create_data_chunk(types, (uint64_t)a->column_count);
	for (int i = 0; i < a->column_count; i++)
		duck_api.destroy_logical_type(&types[i]);
	return a->chunk ? 0 : -ENOMEM;
}

int duck_appender_new(struct duck_connection *c, const char *catalog, const char *table,
	const enum duck_type *types, int column_count, struct duck_appender **ret,
	struct errinfo *reterr)
{
	size_t n = (size_t)column_count;
	_cleanup_(duck_appender_freep) struct duck_appender *a =
		calloc(1, sizeof(*a) + n * (sizeof(*a->data) + sizeof(*a->valid) + sizeof(*types)));
	enum duck_type *copied;
	int r;

	if (!a)
		return -ENOMEM;
	a->data = (void **)(a + 1);
	a->valid = (uint64_t **)(a->data + n);
	copied = (enum duck_type *)(a->valid + n);
	memcpy(copied, types, n * sizeof(*types));
	a->types = copied;
	a->column_count = column_count;
	a->row_max = duck_api.vector_size();
	if (duck_api.appender_create_ext(c->handle, catalog, NULL, table, &a->handle))
		return duck_error(duck_api.appender_error(a->handle), reterr);
	r = make_chunk(a);
	if (r < 0)
		return r;
	find_vectors(a);
	*ret = TAKE(a);
	return 0;
}

void duck_appender_free(struct duck_appender *a)
{
	if (a->chunk)
		duck_api.destroy_data_chunk(&a->chunk);
	if (a->handle) {
		duck_api.appender_clear(a->handle); /* else destroying flushes */
		duck_api.appender_destroy(&a->handle);
	}
	free(a);
}

static int send_chunk(struct duck_appender *a, struct errinfo *reterr)
{
	if (a->row == 0)
		return 0;
	duck_api.data_chunk_set_size(a->chunk, a->row);
	if (duck_api.append_data_chunk(a->handle, a->chunk))
		return duck_error(duck_api.appender_error(a->handle), reterr);
	duck_api.data_chunk_reset(a->chunk);
	find_vectors(a);
	a->row = 0;
	return 0;
}

static bool cell_fits(enum duck_type t, const struct sql_value *v)
{
	switch (t) {
	case DUCK_BIGINT: return v->type == SQL_INT;
	case DUCK_INTEGER: return v->type == SQL_INT && v->i >= INT32_MIN && v->i <= INT32_MAX;
	case DUCK_DOUBLE: return v->type == SQL_REAL || v->type == SQL_INT;
	case DUCK_VARCHAR: return v->type == SQL_TEXT;
	}
	return false;
}

/* How much of a text is UTF-8. */
static size_t utf8_len(const char *text, size_t len)
{
	size_t at = 0;
	uint64_t word;
	uint32_t cp;
	int n = 1;

	while (at < len && n > 0) {
		for (; len - at >= sizeof(word); at += sizeof(word)) {
			memcpy(&word, text + at, sizeof(word));
			if (word & 0x8080808080808080)
				break;
		}
		if (at < len)
			n = text_utf8_next(text + at, len - at, &cp);
		at += at < len && n > 0 ? (size_t)n : 0;
	}
	return at;
}

static void put_bytes(
	struct duck_appender *a, int column, uint64_t row, const char *text, size_t len)
{
	duck_api.unsafe_vector_assign_string_element_len(
		duck_api.data_chunk_get_vector(a->chunk, (uint64_t)column), row, text, len);
}

static int put_text(struct duck_appender *a, int column, const char *text, size_t len)
{
	_cleanup_buf_ struct buf clean = BUF_INIT(3 * len + 1);
	size_t good = utf8_len(text, len);

	if (good == len) {
		put_bytes(a, column, a->row, text, len);
		return 0;
	}
	for (; len; good = utf8_len(text, len)) {
		buf_append(&clean, text, good);
		text += good;
		len -= good;
		if (!len)
			break;
		buf_puts(&clean, "\xef\xbf\xbd");
		text++;
		len--;
	}
	put_bytes(a, column, a->row, buf_str(&clean), clean.len);
	return clean.err;
}

static int put_cell(struct duck_appender *a, int column, const struct sql_value *v)
{
	uint64_t row = a->row;

	if (v->type == SQL_NULL) {
		a->valid[column][row / 64] &= ~(UINT64_C(1) << row % 64);
		return 0;
	}
	a->valid[column][row / 64] |= UINT64_C(1) << row % 64; /* of a row that failed before */
	switch (a->types[column]) {
	case DUCK_BIGINT: ((int64_t *)a->data[column])[row] = v->i; break;
	case DUCK_INTEGER: ((int32_t *)a->data[column])[row] = (int32_t)v->i; break;
	case DUCK_DOUBLE:
		((double *)a->data[column])[row] = v->type == SQL_REAL ? v->d : (double)v->i;
		break;
	case DUCK_VARCHAR: return put_text(a, column, v->p, v->len);
	}
	return 0;
}

int duck_append(struct duck_appender *a, const struct sql_value *row, struct errinfo *reterr)
{
	int r = a->row == a->row_max ? send_chunk(a, reterr) : 0;

	for (int i = 0; r == 0 && i < a->column_count; i++)
		if (row[i].type != SQL_NULL && !cell_fits(a->types[i], &row[i]))
			r = errinfo_set(reterr, -EINVAL, "a value does not fit into column %d", i);
	for (int i = 0; r == 0 && i < a->column_count; i++)
		r = put_cell(a, i, &row[i]);
	a->row += r == 0;
	return r;
}

int duck_append_flush(struct duck_appender *a, struct errinfo *reterr)
{
	int r = send_chunk(a, reterr);

	if (r == 0 && duck_api.appender_flush(a->handle))
		r = duck_error(duck_api.appender_error(a->handle), reterr);
	return r;
}
