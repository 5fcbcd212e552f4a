/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_tsv.c - see store_clickhouse_private.h. The first line names the columns, the second their types; a
 * tab, line feed or backslash in a text is written with a backslash, NULL is \N. */
#include "cluster/store/store_clickhouse_private.h"

#include <math.h>

#define COLUMNS_MAX 2000

struct reader {
	const char *at, *end;
	int column_count;
	enum sql_type *types;
	struct sql_value *row;
	struct buf text; /* of the row's values, each with a NUL behind it */
};

static void reader_done(struct reader *r)
{
	free(r->types);
	free(r->row);
	buf_done(&r->text);
}

static char unescaped(char c)
{
	switch (c) {
	case 'b': return '\b';
	case 'f': return '\f';
	case 'r': return '\r';
	case 'n': return '\n';
	case 't': return '\t';
	case '0': return '\0';
	default: return c;
	}
}

/* The next field, appended to text; the character behind it is left. False: it is NULL. */
static bool take_field(struct reader *r)
{
	const char *begin = r->at;
	bool is_null;

	while (r->at < r->end && *r->at != '\t' && *r->at != '\n') {
		const char *plain = r->at;

		while (r->at < r->end && *r->at != '\t' && *r->at != '\n' && *r->at != '\\')
			r->at++;
		buf_append(&r->text, plain, (size_t)(r->at - plain));
		if (r->at + 1 < r->end && *r->at == '\\') {
			buf_putc(&r->text, unescaped(r->at[1]));
			r->at += 2;
		} else if (r->at < r->end && *r->at == '\\') {
			r->at++;
		}
	}
	is_null = r->at - begin == 2 && !memcmp(begin, "\\N", 2);
	buf_append(&r->text, "", 1);
	return !is_null;
}

/* True if @separator comes next, which is passed. */
static bool take_separator(struct reader *r, char separator)
{
	if (r->at >= r->end || *r->at != separator)
		return false;
	r->at++;
	return true;
}

static enum sql_type type_of(const char *name)
{
	static const char *const around[] = {"Nullable(", "LowCardinality("};

	for (size_t i = 0; i < ARRAY_SIZE(around);) {
		size_t n = strlen(around[i]);

		if (!strncmp(name, around[i], n)) {
			name += n;
			i = 0;
		} else {
			i++;
		}
	}
	if (!strncmp(name, "Int", 3) || !strncmp(name, "UInt", 4))
		return strncmp(name, "Interval", 8) != 0 ? SQL_INT : SQL_TEXT;
	if (!strncmp(name, "Float", 5) || !strncmp(name, "Decimal", 7))
		return SQL_REAL;
	return !strncmp(name, "Nothing", 7) ? SQL_NULL : SQL_TEXT;
}

static struct sql_value real_value(const char *text)
{
	double d = strtod(text, NULL);

	return isfinite(d) ? SQL_R(d) : SQL_NOTHING;
}

static struct sql_value value_of(enum sql_type type, const char *text, size_t len)
{
	int64_t i;

	switch (type) {
	case SQL_NULL: return SQL_NOTHING;
	case SQL_REAL: return real_value(text);
	case SQL_INT:
		errno = 0;
		i = strtoll(text, NULL, 10);
		return errno == ERANGE ? real_value(text) : SQL_I(i);
	default: return (struct sql_value){.type = SQL_TEXT, .p = text, .len = len};
	}
}

static int count_columns(struct reader *r)
{
	const char *line = memchr(r->at, '\n', (size_t)(r->end - r->at));
	int n = 1;

	for (const char *p = r->at; line && p < line; p++)
		n += *p == '\t';
	if (!line || n > COLUMNS_MAX)
		return -EBADMSG;
	r->column_count = n;
	r->types = calloc((size_t)n, sizeof(*r->types));
	r->row = calloc((size_t)n, sizeof(*r->row));
	return r->types && r->row ? 0 : -ENOMEM;
}

static int read_head(struct reader *r, struct sql_table *t)
{
	int err = 0;

	for (int i = 0; err == 0 && i < r->column_count; i++) {
		buf_clear(&r->text);
		take_field(r);
		err = sql_table_set_name(t, i, buf_str(&r->text));
		if (!take_separator(r, i + 1 < r->column_count ? '\t' : '\n'))
			return -EBADMSG;
	}
	for (int i = 0; err == 0 && i < r->column_count; i++) {
		buf_clear(&r->text);
		take_field(r);
		r->types[i] = type_of(buf_str(&r->text));
		if (!take_separator(r, i + 1 < r->column_count ? '\t' : '\n'))
			return -EBADMSG;
	}
	return err;
}

/* Values are told apart after the whole row is there: its text may move while it grows. */
static int read_row(struct reader *r)
{
	size_t offset = 0;

	buf_clear(&r->text);
	for (int i = 0; i < r->column_count; i++) {
		size_t before = r->text.len;
		bool is_there = take_field(r);

		if (r->text.err)
			return r->text.err;
		r->row[i] = (struct sql_value){
			.type = is_there ? r->types[i] : SQL_NULL, .len = r->text.len - before - 1};
		if (!take_separator(r, i + 1 < r->column_count ? '\t' : '\n'))
			return -EBADMSG;
	}
	for (int i = 0; i < r->column_count; i++) {
		size_t len = r->row[i].len;

		r->row[i] = value_of(r->row[i].type, r->text.data + offset, len);
		offset += len + 1;
	}
	return 0;
}

static int read_table(struct reader *r, const struct store_limits *limits, struct sql_table *t)
{
	int err = read_head(r, t);

	while (err == 0 && r->at < r->end) {
		if (t->row_count >= limits->rows_max) {
			t->truncated = true;
			break;
		}
		err = read_row(r);
		err = err ?: sql_table_put(t, r->row);
		if (err == -ENOBUFS) {
			t->truncated = true;
			err = 0;
			break;
		}
	}
	return err;
}

int clickhouse_tsv_read(const char *text, size_t len, const struct store_limits *limits,
	struct sql_table *ret, struct errinfo *reterr)
{
	_cleanup_(reader_done) struct reader r = {
		.at = text, .end = text + len, .text = BUF_INIT(len + COLUMNS_MAX)};
	struct sql_table t = {0};
	int err = count_columns(&r);

	err = err ?: sql_table_open(&t, r.column_count, limits->bytes_max);
	err = err ?: read_table(&r, limits, &t);
	if (err < 0) {
		sql_table_done(&t);
		return err == -EBADMSG
			       ? errinfo_set(reterr, err,
					 "ClickHouse's answer is not a table: leave FORMAT out of the statement")
			       : errinfo_set(
					 reterr, err, "there is not enough memory for the answer");
	}
	*ret = t;
	return 0;
}
