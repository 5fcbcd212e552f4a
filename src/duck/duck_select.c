/* SPDX-License-Identifier: Apache-2.0 */
/* duck_select.c - a statement's rows, chunk by chunk, as a table. See duck.h.
 *
 * Columns of types that are not read here are cast to text by DuckDB: the statement is prepared, and if it
 * has such a column, prepared again inside of another that casts. */
#include <math.h>

#include "duck/duck.h"
#include "duck/duck_api.h"

#define COLUMNS_MAX 1000
#define WRAPPED_MAX (256u << 10)

struct column {
	int type;     /* enum duck_type_id */
	int internal; /* of decimals: the type of its integer */
	double scale; /* by which that is divided */
};

/* ---- preparing ---- */

static bool is_read_here(int type)
{
	return (type >= DUCK_ID_BOOLEAN && type <= DUCK_ID_DOUBLE) || type == DUCK_ID_HUGEINT ||
	       type == DUCK_ID_VARCHAR || type == DUCK_ID_DECIMAL;
}

static int prepare(
	struct duck_connection *c, const char *text, duck_handle *ret, struct errinfo *reterr)
{
	duck_handle extracted = NULL, statement = NULL;
	uint64_t n = duck_api.extract_statements(c->handle, text, &extracted);
	int r = 0;

	if (n == 0) {
		const char *why = duck_api.extract_statements_error(extracted);

		r = why && *why ? duck_error(why, reterr)
				: errinfo_set(reterr, -EINVAL, "no SQL statement was given");
	} else if (n > 1) {
		r = errinfo_set(
			reterr, -EINVAL, "only one statement is allowed: found %u", (unsigned)n);
	} else if (duck_api.prepare_extracted_statement(c->handle, extracted, 0, &statement)) {
		r = duck_error(duck_api.prepare_error(statement), reterr);
	}
	duck_api.destroy_extracted(&extracted);
	if (r == 0)
		*ret = statement;
	else if (statement)
		duck_api.destroy_prepare(&statement);
	return r;
}

static void put_quoted(struct buf *b, char quote, const char *text)
{
	buf_append(b, &quote, 1);
	for (; *text; text++) {
		if (*text == quote)
			buf_append(b, &quote, 1);
		buf_append(b, text, 1);
	}
	buf_append(b, &quote, 1);
}

/* Appends a statement that selects the same with its unread columns as texts; false: there are none. The
 * statement goes into it as a literal: whatever it holds, it stays one. */
static bool put_casts(struct buf *b, duck_handle statement, const char *text)
{
	uint64_t n = duck_api.prepared_statement_column_count(statement);
	bool any = false;

	buf_puts(b, "SELECT ");
	for (uint64_t i = 0; i < n; i++) {
		const char *name = duck_api.prepared_statement_column_name(statement, i);
		bool cast = !is_read_here(duck_api.prepared_statement_column_type(statement, i));

		any = any || cast;
		buf_printf(b, cast ? "%sCAST(c%u AS VARCHAR) AS " : "%sc%u AS ", i ? ", " : "",
			(unsigned)i);
		put_quoted(b, '"', name ? name : "");
		duck_api.free((void *)name);
	}
	buf_puts(b, " FROM query(");
	put_quoted(b, '\'', text);
	buf_puts(b, ") AS t(");
	for (uint64_t i = 0; i < n; i++)
		buf_printf(b, "%sc%u", i ? ", " : "", (unsigned)i);
	buf_puts(b, ")");
	return any;
}

static int prepare_readable(struct duck_connection *c, const char *text, bool only_query,
	duck_handle *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf wrapped = BUF_INIT(WRAPPED_MAX);
	duck_handle statement;
	int type, r = prepare(c, text, &statement, reterr);

	if (r < 0)
		return r;
	type = duck_api.prepared_statement_type(statement);
	if (only_query && type != DUCK_STATEMENT_SELECT && type != DUCK_STATEMENT_EXPLAIN)
		r = errinfo_set(
			reterr, -EINVAL, "only a query can be run: SELECT, WITH, FROM or EXPLAIN");
	else if (duck_api.prepared_statement_column_count(statement) > COLUMNS_MAX)
		r = errinfo_set(reterr, -E2BIG, "more than %d columns", COLUMNS_MAX);
	if (r < 0 || type != DUCK_STATEMENT_SELECT || !put_casts(&wrapped, statement, text)) {
		if (r == 0)
			*ret = statement;
		else
			duck_api.destroy_prepare(&statement);
		return r;
	}
	duck_api.destroy_prepare(&statement);
	return wrapped.err ? errinfo_set(reterr, -E2BIG, "the statement is too long")
			   : prepare(c, buf_str(&wrapped), ret, reterr);
}

/* ---- reading ---- */

static double huge_double(const void *data, uint64_t row)
{
	const uint64_t *v = (const uint64_t *)data + 2 * row;

	return (double)(int64_t)v[1] * 18446744073709551616.0 + (double)v[0];
}

static struct sql_value real_value(double d)
{
	return isfinite(d) ? (struct sql_value){.type = SQL_REAL, .d = d}
			   : (struct sql_value){.type = SQL_NULL};
}

static struct sql_value int_value(int64_t i)
{
	return (struct sql_value){.type = SQL_INT, .i = i};
}

static struct sql_value huge_value(const void *data, uint64_t row)
{
	const uint64_t *v = (const uint64_t *)data + 2 * row;

	if ((int64_t)v[1] == (int64_t)v[0] >> 63)
		return int_value((int64_t)v[0]);
	return real_value(huge_double(data, row));
}

static struct sql_value simple_value(int type, const void *data, uint64_t row)
{
	switch (type) {
	case DUCK_ID_BOOLEAN: return int_value(((const uint8_t *)data)[row] != 0);
	case DUCK_ID_TINYINT: return int_value(((const int8_t *)data)[row]);
	case DUCK_ID_SMALLINT: return int_value(((const int16_t *)data)[row]);
	case DUCK_ID_INTEGER: return int_value(((const int32_t *)data)[row]);
	case DUCK_ID_BIGINT: return int_value(((const int64_t *)data)[row]);
	case DUCK_ID_UTINYINT: return int_value(((const uint8_t *)data)[row]);
	case DUCK_ID_USMALLINT: return int_value(((const uint16_t *)data)[row]);
	case DUCK_ID_UINTEGER: return int_value(((const uint32_t *)data)[row]);
	case DUCK_ID_UBIGINT: {
		uint64_t v = ((const uint64_t *)data)[row];

		return v <= INT64_MAX ? int_value((int64_t)v) : real_value((double)v);
	}
	case DUCK_ID_FLOAT: return real_value((double)((const float *)data)[row]);
	case DUCK_ID_DOUBLE: return real_value(((const double *)data)[row]);
	case DUCK_ID_HUGEINT: return huge_value(data, row);
	default: return (struct sql_value){.type = SQL_NULL};
	}
}

static struct sql_value value_at(const struct column *c, const void *data, uint64_t row)
{
	if (c->type == DUCK_ID_VARCHAR) {
		const union duck_string *s = (const union duck_string *)data + row;

		return (struct sql_value){.type = SQL_TEXT,
			.p = s->len <= DUCK_STRING_INLINED ? s->inlined : s->data,
			.len = s->len};
	}
	if (c->type == DUCK_ID_DECIMAL) {
		struct sql_value v = simple_value(c->internal, data, row);

		return real_value((v.type == SQL_INT ? (double)v.i : v.d) / c->scale);
	}
	return simple_value(c->type, data, row);
}

static int put_chunk(duck_handle chunk, const struct column *columns,
	const struct duck_limits *limits, struct sql_value *row, struct sql_table *t)
{
	uint64_t n = duck_api.data_chunk_get_size(chunk);
	int r = 0;

	for (uint64_t k = 0; r == 0 && k < n; k++) {
		if (t->row_count == limits->rows_max)
			return -ENOBUFS;
		for (int i = 0; i < t->column_count; i++) {
			duck_handle v = duck_api.data_chunk_get_vector(chunk, (uint64_t)i);
			const uint64_t *valid = duck_api.vector_get_validity(v);

			row[i] = valid && !(valid[k / 64] >> k % 64 & 1)
					 ? (struct sql_value){.type = SQL_NULL}
					 : value_at(&columns[i], duck_api.vector_get_data(v), k);
		}
		r = sql_table_put(t, row);
	}
	return r;
}

static struct column column_of(struct duck_result *result, uint64_t i)
{
	duck_handle type = duck_api.column_logical_type(result, i);
	struct column c = {.type = duck_api.get_type_id(type), .scale = 1};

	if (c.type == DUCK_ID_DECIMAL) {
		c.internal = duck_api.decimal_internal_type(type);
		c.scale = pow(10, duck_api.decimal_scale(type));
	}
	duck_api.destroy_logical_type(&type);
	return c;
}

static int read_rows(struct duck_result *result, const struct duck_limits *limits,
	struct sql_table *t, struct errinfo *reterr)
{
	uint64_t n = duck_api.column_count(result);
	_cleanup_free_ struct column *columns = calloc(n + 1, sizeof(*columns));
	_cleanup_free_ struct sql_value *row = calloc(n + 1, sizeof(*row));
	const char *why;
	int r = columns && row ? sql_table_open(t, (int)n, limits->bytes_max) : -ENOMEM;

	for (uint64_t i = 0; r == 0 && i < n; i++) {
		columns[i] = column_of(result, i);
		r = sql_table_set_name(t, (int)i, duck_api.column_name(result, i));
	}
	while (r == 0) {
		duck_handle chunk = duck_api.fetch_chunk(*result);

		if (!chunk)
			break;
		r = put_chunk(chunk, columns, limits, row, t);
		duck_api.destroy_data_chunk(&chunk);
	}
	t->truncated = r == -ENOBUFS;
	why = duck_api.result_error(result);
	if (r == 0 && why && *why)
		r = duck_error(why, reterr);
	return r == -ENOBUFS ? 0 : r;
}

static int run(struct duck_connection *c, const char *text, bool only_query,
	const struct duck_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	struct duck_result result = {0};
	duck_handle statement = NULL;
	int r = prepare_readable(c, text, only_query, &statement, reterr);

	*ret = (struct sql_table){0};
	if (r < 0)
		return r;
	if (duck_api.execute_prepared_streaming(statement, &result))
		r = duck_error(duck_api.result_error(&result), reterr);
	else
		r = read_rows(&result, limits, ret, reterr);
	duck_api.destroy_result(&result);
	duck_api.destroy_prepare(&statement);
	if (r < 0)
		sql_table_done(ret);
	return r;
}

int duck_select(struct duck_connection *c, const char *text, const struct duck_limits *limits,
	struct sql_table *ret, struct errinfo *reterr)
{
	return run(c, text, false, limits, ret, reterr);
}

int duck_select_stranger(struct duck_connection *c, const char *text,
	const struct duck_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	return run(c, text, true, limits, ret, reterr);
}
