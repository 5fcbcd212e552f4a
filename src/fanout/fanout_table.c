/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_table.c - see fanout_private.h.
 *
 * A reply is read twice: keys of an object have no order, and rows can only be checked once the
 * columns are known. No tree is built, so memory is what the kept rows take. */
#include "fanout/fanout_private.h"

#include <strings.h>

#include "json/reader.h"

#define COLUMNS_MAX      2000      /* SQLite's own limit */
#define COLUMNS_NAMED    5         /* of a difference, each way */
#define COLUMNS_COMPARED 200       /* with each other; of more it is only said that they differ */
#define VALUE_MAX        (4 << 20) /* bytes of a text; the guard of a node allows 1 MB, twice in hex */

void fanout_rows_done(struct fanout_rows *r)
{
	sql_table_done(&r->table);
	*r = (struct fanout_rows){0};
}

struct columns {
	char *names[COLUMNS_MAX];
	int count;
	bool there;
};

static void columns_done(struct columns *c)
{
	for (int i = 0; i < c->count; i++)
		free(c->names[i]);
}

static int bad(const struct json_reader *r, struct errinfo *reterr)
{
	if (r->err == -E2BIG)
		return errinfo_set(reterr, -EPROTO, "its answer is nested too deeply");
	if (r->err == -ENOBUFS)
		return errinfo_set(reterr, -EPROTO, "its answer contains a string over 4 MiB");
	if (r->err == -ENOMEM)
		return errinfo_set(reterr, -ENOMEM, "not enough memory for its answer");
	return errinfo_set(reterr, -EPROTO, "its answer is not valid JSON (byte %zu)",
		(size_t)(r->p - r->start));
}

static int read_columns(struct json_reader *r, struct columns *c, struct errinfo *reterr)
{
	enum json_read t = json_read(r);

	if (c->there || t != JSON_READ_ARRAY)
		return errinfo_set(reterr, -EPROTO, "its answer has no single list of columns");
	c->there = true;
	while ((t = json_read(r)) == JSON_READ_STRING) {
		if (c->count == COLUMNS_MAX)
			return errinfo_set(
				reterr, -EPROTO, "its answer has over %d columns", COLUMNS_MAX);
		c->names[c->count] = strdup(buf_str(&r->text));
		if (!c->names[c->count])
			return -ENOMEM;
		c->count++;
	}
	if (t == JSON_READ_BAD)
		return bad(r, reterr);
	if (t != JSON_READ_ARRAY_END)
		return errinfo_set(reterr, -EPROTO, "a column name in its answer is not a string");
	return 0;
}

/* What stands beside the rows. */
static int read_frame(struct json_reader *r, struct columns *c, struct fanout_rows *out,
	bool *ret_said, struct errinfo *reterr)
{
	enum json_read t = json_read(r);

	if (t != JSON_READ_OBJECT)
		return t == JSON_READ_BAD
			       ? bad(r, reterr)
			       : errinfo_set(reterr, -EPROTO, "its answer is not {columns, rows}");
	while ((t = json_read(r)) == JSON_READ_KEY) {
		bool columns = json_read_is(r, "columns"), node = json_read_is(r, "node"),
		     truncated = json_read_is(r, "truncated");
		int err = columns ? read_columns(r, c, reterr) : 0;

		if (err < 0)
			return err;
		if (columns)
			continue;
		t = json_read(r);
		if (node && t == JSON_READ_STRING)
			snprintf(out->name, sizeof(out->name), "%s", buf_str(&r->text));
		if (truncated && t == JSON_READ_BOOL) {
			out->truncated = r->b;
			*ret_said = true;
		}
		if (!json_skip(r, t))
			return bad(r, reterr);
	}
	if (t != JSON_READ_OBJECT_END || json_read(r) != JSON_READ_END)
		return bad(r, reterr);
	if (!c->there)
		return errinfo_set(reterr, -EPROTO, "its answer has no columns");
	return 0;
}

static int set_value(const struct json_reader *r, enum json_read t, struct buf *text,
	struct sql_value *v, struct errinfo *reterr)
{
	switch (t) {
	case JSON_READ_NULL: *v = SQL_NOTHING; return 0;
	case JSON_READ_BOOL: *v = SQL_I(r->b); return 0;
	case JSON_READ_INT: *v = SQL_I(r->i); return 0;
	case JSON_READ_REAL: *v = SQL_R(r->d); return 0;
	case JSON_READ_STRING: /* an offset for now: text moves while it grows */
		*v = (struct sql_value){
			.type = SQL_TEXT, .i = (int64_t)text->len, .len = r->text.len};
		buf_append(text, buf_str(&r->text), r->text.len);
		return text->err ? errinfo_set(reterr, -EPROTO, "one of its rows is over 16 MiB")
				 : 0;
	case JSON_READ_BAD: return bad(r, reterr);
	default:
		return errinfo_set(reterr, -EPROTO,
			"one of its rows contains values other than numbers, strings and null");
	}
}

/* One row, behind its opening bracket. */
static int read_row(struct json_reader *r, struct sql_value *values, int count, struct buf *text,
	struct errinfo *reterr)
{
	int n = 0, err = 0;

	buf_clear(text);
	for (;;) {
		enum json_read t = json_read(r);

		if (t == JSON_READ_ARRAY_END)
			break;
		if (n == count)
			return t == JSON_READ_BAD
				       ? bad(r, reterr)
				       : errinfo_set(reterr, -EPROTO,
						 "one of its rows has more values than columns");
		err = set_value(r, t, text, &values[n++], reterr);
		if (err < 0)
			return err;
	}
	if (n < count)
		return errinfo_set(
			reterr, -EPROTO, "one of its rows has fewer values than columns");
	for (int i = 0; i < count; i++)
		if (values[i].type == SQL_TEXT)
			values[i].p = buf_str(text) + values[i].i;
	return 0;
}

/* The array of rows. What does not fit is still read, because it must be rows too. */
static int read_rows(
	struct json_reader *r, size_t limit, struct fanout_rows *out, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(16 << 20);
	_cleanup_free_ struct sql_value *values =
		calloc((size_t)MAX(out->table.column_count, 1), sizeof(*values));
	enum json_read t = json_read(r);
	int err = values ? 0 : -ENOMEM;

	if (t == JSON_READ_NULL) /* how some servers write an empty list */
		return err;
	if (t != JSON_READ_ARRAY)
		return errinfo_set(reterr, -EPROTO, "its answer has no list of rows");
	while (err == 0 && (t = json_read(r)) == JSON_READ_ARRAY) {
		err = read_row(r, values, out->table.column_count, &text, reterr);
		if (err == 0 && out->table.row_count < limit && !out->table.truncated)
			err = sql_table_put(&out->table, values);
		else if (err == 0)
			out->table.truncated = true;
		if (err == -ENOBUFS) {
			out->table.truncated = true;
			err = 0;
		}
	}
	if (err == 0 && t != JSON_READ_ARRAY_END)
		return t == JSON_READ_BAD
			       ? bad(r, reterr)
			       : errinfo_set(reterr, -EPROTO, "its rows are not lists of values");
	return err;
}

/* Finds the rows once the rest of @body is known to be right. */
static int read_body(
	struct json_reader *r, size_t limit, struct fanout_rows *out, struct errinfo *reterr)
{
	bool there = false;
	int err = 0;

	json_read(r); /* the object */
	while (err == 0 && json_read(r) == JSON_READ_KEY) {
		if (json_read_is(r, "rows")) {
			if (there)
				return errinfo_set(reterr, -EPROTO,
					"its answer has two lists of "
					"rows");
			there = true;
			err = read_rows(r, limit, out, reterr);
		} else if (!json_skip(r, json_read(r))) {
			return bad(r, reterr);
		}
	}
	if (err == 0 && !there)
		return errinfo_set(reterr, -EPROTO, "its answer has no rows");
	return err;
}

int fanout_table_read(const char *body, size_t len, size_t limit, size_t bytes_max,
	struct fanout_rows *ret, struct errinfo *reterr)
{
	_cleanup_(json_reader_done) struct json_reader r;
	_cleanup_(fanout_rows_done) struct fanout_rows rows = {0};
	_cleanup_(columns_done) struct columns c = {0};
	bool said = false;
	int err;

	json_reader_init(&r, body, len, VALUE_MAX);
	err = read_frame(&r, &c, &rows, &said, reterr);
	if (err < 0)
		return err;
	err = sql_build_begin(
		&rows.table, (const char *const *)c.names, c.count, MAX(bytes_max, (size_t)4096));
	if (err == -ENOBUFS)
		return errinfo_set(reterr, -EPROTO, "the names of its columns are too long");
	if (err < 0)
		return err;
	json_reader_done(&r);
	json_reader_init(&r, body, len, VALUE_MAX);
	err = read_body(&r, limit, &rows, reterr);
	if (err < 0)
		return err;
	rows.maybe_more = !said && rows.table.row_count == limit;
	rows.truncated |= rows.table.truncated;
	rows.there = true;
	*ret = rows;
	rows = (struct fanout_rows){0};
	return 0;
}

/* ---- merging ---- */

static bool has_same_columns(const struct sql_table *a, const struct sql_table *b)
{
	if (a->column_count != b->column_count)
		return false;
	return !EXISTS(i, a->column_count, strcmp(sql_table_name(a, i), sql_table_name(b, i)) != 0);
}

/* The node whose columns most have; of equals the first. @count if there is none, or if there are
 * several and each has its own. */
static size_t find_model(const struct fanout_rows *nodes, size_t count)
{
	size_t best = count, most = 0, there = 0;

	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		there += nodes[i].there;
		for (size_t k = 0; nodes[i].there && k < count; k++)
			same += nodes[k].there &&
				has_same_columns(&nodes[i].table, &nodes[k].table);
		if (same > most) {
			most = same;
			best = i;
		}
	}
	return there > 1 && most == 1 ? count : best;
}

/* "it has a, b, c and 4 more"; nothing if @other has all of @t's. */
static void put_more(
	struct buf *b, const char *verb, const struct sql_table *t, const struct sql_table *other)
{
	size_t n = 0;

	for (int i = 0; i < t->column_count; i++) {
		const char *name = sql_table_name(t, i);

		if (EXISTS(k, other->column_count, strcmp(sql_table_name(other, k), name) == 0))
			continue;
		if (n == 0)
			buf_printf(b, "%sit %s ", b->len ? "; " : "", verb);
		if (n < COLUMNS_NAMED)
			buf_printf(b, "%s%.24s", n ? ", " : "", name);
		n++;
	}
	if (n > COLUMNS_NAMED)
		buf_printf(b, " and %zu more", n - COLUMNS_NAMED);
}

static void print_difference(struct fanout_rows *rows, const struct sql_table *model)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	if (MAX(rows->table.column_count, model->column_count) > COLUMNS_COMPARED) {
		buf_printf(&b, "it has %d of them, they have %d", rows->table.column_count,
			model->column_count);
	} else {
		put_more(&b, "has", &rows->table, model);
		put_more(&b, "lacks", model, &rows->table);
	}
	snprintf(rows->difference, sizeof(rows->difference), "%s",
		b.len && !b.err ? buf_str(&b) : "the same in another order");
}

static int find_node_column(const struct sql_table *t)
{
	for (int i = 0; i < t->column_count; i++)
		if (strcasecmp(sql_table_name(t, i), "node") == 0)
			return i;
	return -1;
}

static int begin_merged(struct sql_table *ret, const struct sql_table *model, bool prepend)
{
	_cleanup_free_ const char **names = calloc((size_t)model->column_count + 1, sizeof(*names));
	int n = 0;

	if (!names)
		return -ENOMEM;
	if (prepend)
		names[n++] = "node";
	for (int i = 0; i < model->column_count; i++)
		names[n++] = sql_table_name(model, i);
	return sql_build_begin(ret, names, n, SIZE_MAX / 2); /* each part has its own ceiling */
}

static struct sql_value value_of(const struct sql_table *t, const struct sql_cell *c)
{
	struct sql_value v = {.type = c->type, .len = c->len};

	if (c->type == SQL_INT)
		v.i = c->i;
	else if (c->type == SQL_REAL)
		v.d = c->d;
	else if (c->type != SQL_NULL)
		v.p = sql_table_bytes(t, c);
	return v;
}

static int append(struct sql_table *ret, const struct sql_table *t, const char *name, int own)
{
	_cleanup_free_ struct sql_value *values =
		calloc((size_t)MAX(ret->column_count, 1), sizeof(*values));
	int r = values ? 0 : -ENOMEM;

	for (size_t row = 0; r == 0 && row < t->row_count; row++) {
		int n = 0;

		if (own < 0)
			values[n++] = SQL_S(name);
		for (int i = 0; i < t->column_count; i++, n++) {
			const struct sql_cell *c = sql_table_cell(t, row, i);
			bool empty = c->type == SQL_NULL || (c->type == SQL_TEXT && !c->len);

			values[n] = i == own && empty ? SQL_S(name) : value_of(t, c);
		}
		r = sql_table_put(ret, values);
	}
	return r;
}

int fanout_table_merge(
	struct fanout_rows *nodes, const char *const *names, size_t count, struct sql_table *ret)
{
	_cleanup_(sql_table_done) struct sql_table merged = {0};
	size_t first = find_model(nodes, count);
	int own, r;

	if (first == count) {
		for (size_t i = 0; i < count; i++) {
			nodes[i].odd = nodes[i].there;
			sql_table_done(&nodes[i].table);
		}
		*ret = (struct sql_table){0};
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		nodes[i].odd =
			nodes[i].there && !has_same_columns(&nodes[i].table, &nodes[first].table);
		if (nodes[i].odd)
			print_difference(&nodes[i], &nodes[first].table);
	}
	own = find_node_column(&nodes[first].table);
	r = begin_merged(&merged, &nodes[first].table, own < 0);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (nodes[i].there && !nodes[i].odd)
			r = append(&merged, &nodes[i].table, names[i], own);
		sql_table_done(&nodes[i].table);
	}
	if (r < 0)
		return r;
	*ret = merged;
	merged = (struct sql_table){0};
	return 0;
}
