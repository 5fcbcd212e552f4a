/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_read.c - loads a store of schema 0.8 to 0.11 without changing it, and the pieces of SQL
 * all loaders share.
 *
 * Foreign files are hostile until shown otherwise: only real tables are read (schema.c), columns
 * are looked up and never assumed, every value is checked before it becomes a struct, and a row
 * that fails is counted in skipped_rows. */
#include <time.h>
#include <zlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "store/lock.h"
#include "store/nodedb.h"
#include "store/read/nodedb_reader.h"

/* Recordings that travel inside the program: SQL texts are eight times smaller packed. */

#define GZIP_WINDOW (15 + 16) /* the largest, and gzip's head and end around it */
#define GZIP_LEAST  18        /* head and end */
#define TEXT_MOST   (16u << 20)

/* How long the text is: the last four bytes say so, the lowest first. */
static size_t text_size(const struct nodedb_packed *p)
{
	const unsigned char *end = p->data + p->size;

	return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 |
	       (size_t)end[-1] << 24;
}

static bool unpack(const struct nodedb_packed *p, char *text, size_t size)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)p->data,
		.avail_in = (unsigned)p->size,
		.next_out = (unsigned char *)text,
		.avail_out = (unsigned)size};
	bool is_whole;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return false;
	is_whole = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_out && !z.avail_in;
	inflateEnd(&z);
	return is_whole;
}

int nodedb_read_packed(const struct nodedb_packed *p, const struct nodedb_filter *f,
	struct nodedb_content *ret, struct errinfo *reterr)
{
	_cleanup_free_ char *text = NULL;
	size_t size = p->size < GZIP_LEAST ? 0 : text_size(p);

	if (!size || size > TEXT_MOST)
		return errinfo_set(reterr, -EBADMSG, "a recording of this program is damaged");
	text = calloc(1, size + 1);
	if (!text)
		return -ENOMEM;
	if (!unpack(p, text, size))
		return errinfo_set(reterr, -EBADMSG, "a recording of this program is damaged");
	return nodedb_read_sql(text, f, ret, reterr);
}

#define MAKING_NS     (5 * NS_PER_S) /* most that a recorder may take to make its tables */
#define MAKING_NAP_NS (20 * NS_PER_MS)

int reader_has_column(struct reader *r, const char *table, const char *name, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int res = sql_prepare(r->sql,
		"SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = ?2 LIMIT 1", &stmt, reterr);

	res = res ?: SQL_BIND(stmt, reterr, SQL_S(table), SQL_S(name));
	return res ?: sql_step(stmt, reterr);
}

int reader_select(struct reader *r, const char *table, const struct reader_column *columns,
	struct buf *sql, struct errinfo *reterr)
{
	const char *comma = "SELECT ";

	for (const struct reader_column *c = columns; c->name; c++) {
		int found = reader_has_column(r, table, c->name, reterr);

		if (found < 0)
			return found;
		if (!found && !c->otherwise)
			return errinfo_set(reterr, -EBADMSG,
				"%s is not an ingero database (table %s has no column %s)", r->path,
				table, c->name);
		buf_printf(sql, "%s%s", comma, found ? c->name : c->otherwise);
		comma = ", ";
	}
	buf_printf(sql, " FROM %s", table);
	return 0;
}

int reader_where_of(struct reader *r, const struct scope *s, const char *table,
	struct scope_columns c, struct buf *sql, struct errinfo *reterr)
{
	int res = s->node ? reader_has_column(r, table, "node", reterr) : 0;

	c.node = res > 0;
	scope_where(s, &c, sql);
	return MIN(res, 0);
}

int reader_where(struct reader *r, const char *table, struct scope_columns c, struct buf *sql,
	struct errinfo *reterr)
{
	return reader_where_of(r, &r->filter->scope, table, c, sql, reterr);
}

int reader_prepare(
	struct reader *r, const struct buf *sql, sql_stmt **ret_stmt, struct errinfo *reterr)
{
	if (sql->err == -ENOBUFS)
		return errinfo_set(reterr, -E2BIG, "too many process ids: give fewer");
	if (sql->err)
		return sql->err;
	return sql_prepare(r->sql, buf_str(sql), ret_stmt, reterr);
}

/* @limit: SIZE_MAX is none. */
static int query_limited(struct reader *r, const struct reader_query *q, size_t limit,
	sql_stmt **ret_stmt, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int res = schema_has_table(r->sql, q->table, reterr);

	if (res <= 0)
		return res;
	res = 0;
	if (q->select)
		buf_printf(&sql, "%s FROM %s%s", q->select, q->table, q->beside ? q->beside : "");
	else
		res = reader_select(r, q->table, q->columns, &sql, reterr);
	res = res
		      ?: reader_where_of(r, q->scope ? q->scope : &r->filter->scope, q->table,
				 q->by, &sql, reterr);
	buf_puts(&sql, q->rest ? q->rest : "");
	if (limit < SIZE_MAX)
		buf_printf(&sql, " LIMIT %zu", limit);
	return res < 0 ? res : reader_prepare(r, &sql, ret_stmt, reterr);
}

int reader_query(
	struct reader *r, const struct reader_query *q, sql_stmt **ret_stmt, struct errinfo *reterr)
{
	return query_limited(r, q, SIZE_MAX, ret_stmt, reterr);
}

int reader_collect(sql_stmt *stmt, const struct reader_rows *to, struct errinfo *reterr)
{
	size_t room = *to->count;
	int res = 0;

	while (stmt && (res = sql_step(stmt, reterr)) > 0) {
		if (*to->count == to->max) {
			if (!to->older)
				return 0;
			++*to->older;
			continue;
		}
		if (*to->count == room)
			res = array_grow(to->items, &room, room + 1, to->bytes, to->max);
		if (res < 0)
			return res;
		if (to->read(stmt, to->arg, *(char **)to->items + *to->count * to->bytes))
			++*to->count;
		else if (to->skipped)
			++*to->skipped;
	}
	return res;
}

int reader_load(struct reader *r, const struct reader_query *q, const struct reader_rows *to,
	struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	size_t limit = to->older ? SIZE_MAX : to->max - MIN(to->max, *to->count);
	int res = query_limited(r, q, limit, &stmt, reterr);

	return res < 0 ? res : reader_collect(stmt, to, reterr);
}

void reader_reverse(void *array, size_t count, size_t element_bytes)
{
	char *low = array, *high;

	if (count < 2)
		return;
	high = low + (count - 1) * element_bytes;
	for (; low < high; low += element_bytes, high -= element_bytes)
		for (size_t i = 0; i < element_bytes; i++) {
			char c = low[i];

			low[i] = high[i];
			high[i] = c;
		}
}

bool reader_count_at(sql_stmt *stmt, int column, uint64_t *ret)
{
	if (sql_column_type(stmt, column) != SQL_INT || sql_column_int(stmt, column) < 0)
		return false;
	*ret = (uint64_t)sql_column_int(stmt, column);
	return true;
}

bool reader_text(sql_stmt *stmt, int column, char *out, size_t size)
{
	struct sql_value v = sql_column_value(stmt, column);

	return table_copy_text(&v, out, size);
}

int reader_identify(struct reader *r, struct errinfo *reterr)
{
	int res = schema_identify(r->sql, r->path, &r->kind, r->content->schema, reterr);

	if (res < 0)
		return res;
	if (r->kind == SCHEMA_EMPTY)
		return errinfo_set(reterr, -EBADMSG,
			"%s is empty: record to it with `ingero trace`, or give another with --db",
			r->path);
	res = r->kind == SCHEMA_OURS ? schema_is_merged(r->sql, reterr) : 0;
	r->merged = res > 0;
	return MIN(res, 0);
}

/* Is it not there, or without tables? */
static bool is_unmade(const char *path)
{
	_cleanup_(sql_closep) sql_db *sql = NULL;
	enum schema_kind kind;
	int r = sql_open_read(path, true, &sql, NULL, NULL);

	r = r ?: schema_identify(sql, path, &kind, NULL, NULL);
	return r == -ENOENT || (r == 0 && kind == SCHEMA_EMPTY);
}

bool reader_came(const char *path, int err)
{
	const struct timespec nap = {.tv_nsec = MAKING_NAP_NS};
	uint64_t until = mono_now().ns + MAKING_NS;

	if ((err != -ENOENT && err != -EBADMSG) || !store_lock_holder(path))
		return false;
	while (is_unmade(path)) {
		if (mono_now().ns > until || !store_lock_holder(path))
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

static int load_names(struct reader *r, struct errinfo *reterr)
{
	return r->filter->names ? name_book_load(r, &r->content->names, reterr) : 0;
}

static int load_rows(struct reader *r, struct errinfo *reterr)
{
	static const enum node_table tables[] = {TABLE_SAMPLES, TABLE_GPU_SAMPLES,
		TABLE_COLLECTIVES, TABLE_LEDGER, TABLE_CONTAINERS};
	int res = 0;

	for (size_t i = 0; res >= 0 && i < ARRAY_SIZE(tables); i++)
		res = reader_load_rows(r, tables[i], reterr);
	return res;
}

static int load(sql_db *sql, const char *path, bool frozen, const struct nodedb_filter *f,
	struct nodedb_content *ret, struct errinfo *reterr)
{
	static int (*const loaders[])(struct reader *, struct errinfo *) = {reader_load_node,
		reader_load_aggregates, reader_load_events, load_rows, reader_load_homes,
		reader_load_chains, reader_load_books, reader_load_labels, reader_load_pruned,
		reader_load_stacks, load_names, reader_load_kernels};
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	static const struct nodedb_filter all;
	struct reader r = {.sql = sql,
		.path = path,
		.frozen = frozen,
		.filter = f ? f : &all,
		.content = &content};
	int res = reader_identify(&r, reterr);

	if (res < 0)
		return res;
	/* One transaction: all tables as of one moment, also while a writer is at work. */
	res = sql_exec(sql, "BEGIN", reterr);
	if (res < 0)
		return res;
	for (size_t i = 0; i < ARRAY_SIZE(loaders); i++) {
		res = loaders[i](&r, reterr);
		if (res < 0)
			return res;
	}
	res = sql_exec(sql, "COMMIT", reterr);
	if (res < 0)
		return res;
	*ret = content;
	content = (struct nodedb_content){0};
	return 0;
}

static int read_now(const char *path, const struct nodedb_filter *f, struct nodedb_content *ret,
	struct errinfo *reterr)
{
	struct nodedb_content content;

	for (int live = 0;; live = 1) {
		_cleanup_(sql_closep) sql_db *sql = NULL;
		struct sql_stamp stamp;
		bool changed;
		int r;

		r = sql_open_read(path, live, &sql, &stamp, reterr);
		if (r < 0)
			return r;
		r = load(sql, path, stamp.frozen, f, &content, reterr);
		changed = sql_stamp_changed(path, &stamp);
		if (r < 0 && !changed)
			return r;
		if (!changed) {
			*ret = content;
			return 0;
		}
		/* A writer came while it was read without locks: once more, with them. */
		if (r >= 0)
			nodedb_content_done(&content);
	}
}

int nodedb_read(const char *path, const struct nodedb_filter *f, struct nodedb_content *ret,
	struct errinfo *reterr)
{
	int r = read_now(path, f, ret, reterr);

	return r < 0 && reader_came(path, r) ? read_now(path, f, ret, reterr) : r;
}

int nodedb_read_sql(const char *sql, const struct nodedb_filter *f, struct nodedb_content *ret,
	struct errinfo *reterr)
{
	_cleanup_(sql_closep) sql_db *db = NULL;
	int r = sql_open_memory(&db, reterr);

	r = r ?: sql_exec(db, sql, reterr);
	return r ?: load(db, "the recording", false, f, ret, reterr);
}

void nodedb_content_done(struct nodedb_content *c)
{
	free(c->events);
	free(c->aggregates);
	free(c->samples);
	free(c->gpu_samples);
	free(c->collectives);
	free(c->ledger);
	free(c->containers);
	free(c->homes);
	free(c->chains);
	free(c->labels);
	name_book_free(c->names);
	free(c->kernels);
	intern_done(&c->kernel_names);
	for (size_t i = 0; i < c->stacks.count; i++)
		free(c->stacks.items[i]);
	free(c->stacks.items);
	*c = (struct nodedb_content){0};
}
