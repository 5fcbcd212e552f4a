/* SPDX-License-Identifier: Apache-2.0 */
/* sql_pages.c - see sql_pages.h.
 *
 * Input: bytes of a file that may be hostile. Invariants: nothing outside a page is read, whatever
 * the page says; the work is bounded by the number of pages times the depth (LEVELS_MAX), also where
 * pages name each other in a circle. The file is read through SQLite's own descriptor (sql_open.c,
 * invariant 2) and never mapped: a file that gets shorter must not end in SIGBUS. */
#include "sql/sql_pages.h"

#include <endian.h>
#include <sqlite3.h>
#include <strings.h>

#include "base/array.h"

#define HEADER_BYTES 100        /* of the file */
#define READ_BYTES   (64 << 10) /* at once; neighbours are mostly wanted, too */
#define LEAF         0x0d
#define INTERIOR     0x05
#define LEAF_HEADER  8
#define LEVELS_MAX   20
#define OVERFLOW     35 /* a row of more than the page without these goes on elsewhere */
#define UTF8         1
#define SHAPES       512
#define NOT_PLAIN    (-ENOTSUP)

/* What the rows of a table look like: they have few shapes, so that one is hardly ever read twice. */
struct shape {
	uint8_t types[2 * SQL_PAGES_COLUMNS]; /* a row's list of types, as the file has it */
	uint32_t types_bytes;                 /* 0: none */
	uint32_t body_bytes;
	struct sql_place places[SQL_PAGES_COLUMNS]; /* of the columns that are asked for */
};

struct sql_pages {
	sqlite3_file *file;
	int64_t file_bytes;
	uint32_t page_bytes, usable_bytes, page_count, root;
	size_t stored, asked;          /* columns of a row, and of the caller */
	uint8_t at[SQL_PAGES_COLUMNS]; /* which of the row's each of the caller's is */
	int rowid_at;                  /* which of the row's is its number; -1: none */
	struct shape shapes[SHAPES];   /* by a hash of their types */
	uint8_t *block;
	uint32_t block_bytes;
	int64_t block_start; /* -1: nothing is read yet */
};

struct page_list {
	uint32_t *items;
	size_t count, room;
};

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) << 16 | get16(p + 2);
}

/* The bytes after a number of 1 to 9 bytes; NULL if it does not end before @end. */
static const uint8_t *get_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;

	if (p < end && *p < 0x80) {
		*ret = *p;
		return p + 1;
	}
	for (int i = 0; i < 8; i++, p++) {
		if (p >= end)
			return NULL;
		v = v << 7 | (*p & 0x7f);
		if (*p < 0x80) {
			*ret = v;
			return p + 1;
		}
	}
	if (p >= end)
		return NULL;
	*ret = v << 8 | *p;
	return p + 1;
}

/* Valid until the next call. */
static const uint8_t *get_page(struct sql_pages *p, uint32_t number)
{
	int64_t at = (int64_t)(number - 1) * p->page_bytes;
	int64_t start = at - at % p->block_bytes;

	if (number < 2 || number > p->page_count) /* the first one is the schema's */
		return NULL;
	if (start != p->block_start) {
		int bytes = (int)MIN((int64_t)p->block_bytes, p->file_bytes - start);

		p->block_start = -1;
		if (p->file->pMethods->xRead(p->file, p->block, bytes, start) != SQLITE_OK)
			return NULL;
		p->block_start = start;
	}
	return p->block + (at - start);
}

/* ---- opening ---- */

static int read_header(sql_db *db, struct sql_pages *p)
{
	uint8_t h[HEADER_BYTES];
	sqlite3_int64 bytes;

	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &p->file) != SQLITE_OK ||
		!p->file || !p->file->pMethods ||
		p->file->pMethods->xFileSize(p->file, &bytes) != SQLITE_OK ||
		bytes < HEADER_BYTES ||
		p->file->pMethods->xRead(p->file, h, HEADER_BYTES, 0) != SQLITE_OK)
		return NOT_PLAIN;
	p->page_bytes = get16(h + 16) == 1 ? 65536 : get16(h + 16);
	if (p->page_bytes < 512 || (p->page_bytes & (p->page_bytes - 1)) ||
		h[20] > p->page_bytes - 480 || get32(h + 56) != UTF8)
		return NOT_PLAIN;
	p->usable_bytes = p->page_bytes - h[20];
	p->file_bytes = bytes;
	p->page_count = (uint32_t)MIN(bytes / p->page_bytes, (int64_t)UINT32_MAX);
	p->block_bytes = READ_BYTES; /* a multiple of every page's size */
	p->block_start = -1;
	p->block = malloc(p->block_bytes + sizeof(uint64_t)); /* stored_int() */
	return p->block ? 0 : -ENOMEM;
}

/* What @columns are in a stored row. A column that is computed on reading is not in it, and the one
 * that is the row's number is empty there. */
static int find_columns(sql_db *db, const char *table, const char *const *columns, size_t count,
	struct sql_pages *p)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	size_t found = 0;
	int r = sql_prepare(db,
		"SELECT name, type, hidden, pk, sum(pk > 0) OVER () FROM pragma_table_xinfo(?1)",
		&stmt, NULL);

	r = r ?: SQL_BIND(stmt, NULL, SQL_S(table));
	p->asked = count;
	p->rowid_at = -1;
	while (r >= 0 && (r = sql_step(stmt, NULL)) > 0) {
		const char *name = sql_column_text(stmt, 0, NULL);
		const char *type = sql_column_text(stmt, 1, NULL);
		bool is_stored = sql_column_int(stmt, 2) == 0;

		for (size_t i = 0; i < count; i++)
			if (!strcmp(name, columns[i])) {
				if (!is_stored || !(!strcasecmp(type, "INTEGER") ||
							  !strcasecmp(type, "TEXT")))
					return NOT_PLAIN;
				p->at[i] = (uint8_t)p->stored;
				found++;
			}
		if (sql_column_int(stmt, 3) == 1 && sql_column_int(stmt, 4) == 1 &&
			!strcasecmp(type, "INTEGER"))
			p->rowid_at = (int)p->stored;
		p->stored += sql_column_int(stmt, 2) != 2; /* 2: computed on reading */
		if (p->stored > SQL_PAGES_COLUMNS)
			return NOT_PLAIN;
	}
	return r == 0 && found == count ? 0 : NOT_PLAIN;
}

static int find_root(sql_db *db, const char *table, struct sql_pages *p)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int64_t root;
	int r = sql_prepare(db,
		"SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?1", &stmt,
		NULL);

	r = r ?: SQL_BIND(stmt, NULL, SQL_S(table));
	r = r ?: sql_step(stmt, NULL);
	if (r <= 0 || !sql_column_is_int(stmt, 0, &root) || root < 2 || root > p->page_count)
		return NOT_PLAIN;
	p->root = (uint32_t)root;
	return 0;
}

int sql_pages_open(sql_db *db, const char *table, const char *const *columns, size_t count,
	struct sql_pages **ret)
{
	_cleanup_(sql_pages_closep) struct sql_pages *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = count <= SQL_PAGES_COLUMNS ? read_header(db, p) : NOT_PLAIN;
	r = r ?: find_columns(db, table, columns, count, p);
	r = r ?: find_root(db, table, p);
	if (r == 0)
		*ret = TAKE(p);
	return r;
}

void sql_pages_close(struct sql_pages *p)
{
	if (p)
		free(p->block);
	free(p);
}

/* ---- which pages ---- */

/* The pages below an interior one that may hold rows of low … high, in their order. */
static int add_children(
	struct sql_pages *p, uint32_t number, int64_t low, int64_t high, struct page_list *out)
{
	const uint8_t *page = get_page(p, number);
	uint32_t cells = page && page[0] == INTERIOR ? get16(page + 3) : 0;
	uint64_t key = 0;
	int r;

	if (!page || page[0] != INTERIOR || 12 + 2 * cells > p->usable_bytes)
		return NOT_PLAIN;
	r = ARRAY_RESERVE(out->items, out->room, out->count + cells + 1, p->page_count);
	if (r < 0)
		return r == -ENOBUFS ? NOT_PLAIN : r;
	for (uint32_t i = 0; i < cells; i++) {
		uint32_t at = get16(page + 12 + 2 * i);
		bool is_low = i == 0 || (int64_t)key < high;

		if (at + 4 > p->usable_bytes ||
			!get_varint(page + at + 4, page + p->usable_bytes, &key))
			return NOT_PLAIN;
		if (is_low && (int64_t)key >= low) /* it ends with key */
			out->items[out->count++] = get32(page + at);
	}
	if (!cells || (int64_t)key < high)
		out->items[out->count++] = get32(page + 8);
	return 0;
}

/* Level by level from the root: all leaves are on the same one. */
static int find_leaves(struct sql_pages *p, int64_t low, int64_t high, struct page_list *list)
{
	int r = ARRAY_RESERVE(list->items, list->room, (size_t)1, (size_t)1);

	if (r < 0)
		return r;
	list->items[0] = p->root;
	list->count = 1;
	for (int level = 0; r == 0 && list->count; level++) {
		const uint8_t *page = get_page(p, list->items[0]);
		struct page_list next = {0};

		if (!page || level == LEVELS_MAX)
			return NOT_PLAIN;
		if (page[0] == LEAF)
			return 0;
		for (size_t i = 0; r == 0 && i < list->count; i++)
			r = add_children(p, list->items[i], low, high, &next);
		free(list->items);
		*list = next;
	}
	return r;
}

/* ---- rows ---- */

/* The bytes of a number, by its type. */
static const uint8_t number_bytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
#define TYPE_REAL  7 /* those before it, but 0, are integers of so many bytes */
#define TYPE_ONE   9
#define TYPE_BYTES 12         /* the first that is a blob (even) or a text (odd) */
#define TYPE_ROW   UINT16_MAX /* ours: the row's number */

/* Reads a row's types. */
static int shape_read(
	const struct sql_pages *p, const uint8_t *types, uint32_t bytes, struct shape *ret)
{
	struct sql_place stored[SQL_PAGES_COLUMNS];
	const uint8_t *end = types + bytes;
	size_t n = 0;

	memcpy(ret->types, types, bytes);
	ret->types_bytes = bytes;
	ret->body_bytes = 0;
	for (; types < end; n++) {
		uint64_t type;

		types = get_varint(types, end, &type);
		if (!types || type >= TYPE_ROW || ret->body_bytes > UINT16_MAX || n == p->stored)
			return NOT_PLAIN;
		stored[n] = (struct sql_place){(uint16_t)ret->body_bytes, (uint16_t)type,
			type && type < TYPE_REAL ? (uint8_t)(64 - 8 * number_bytes[type]) : 0};
		ret->body_bytes +=
			type < TYPE_BYTES ? number_bytes[type] : (uint32_t)(type - TYPE_BYTES) / 2;
	}
	if (n != p->stored)
		return NOT_PLAIN;
	if (p->rowid_at >= 0) {
		if (stored[p->rowid_at].type != 0)
			return NOT_PLAIN;
		stored[p->rowid_at].type = TYPE_ROW;
	}
	for (size_t i = 0; i < p->asked; i++)
		ret->places[i] = stored[p->at[i]];
	return 0;
}

/* The shape that @types say; NULL if they make none. */
static const struct shape *shape_get(struct sql_pages *p, const uint8_t *types, uint32_t bytes)
{
	uint64_t hash = bytes, word;
	struct shape *s;
	uint32_t i = 0;

	for (; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, types + i, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	}
	for (; i < bytes; i++)
		hash = (hash ^ types[i]) * UINT64_C(0x9e3779b97f4a7c15);
	s = &p->shapes[hash >> 32 & (SHAPES - 1)];
	if (s->types_bytes == bytes && !memcmp(s->types, types, bytes))
		return s;
	if (bytes <= sizeof(s->types) && shape_read(p, types, bytes, s) == 0)
		return s;
	s->types_bytes = 0;
	return NULL;
}

/* The row at @cell, which is inside the page. */
static int read_cell(
	struct sql_pages *p, const uint8_t *cell, const uint8_t *page_end, struct sql_record *ret)
{
	uint64_t bytes, row, header_bytes;
	const struct shape *shape;
	const uint8_t *types;

	cell = get_varint(cell, page_end, &bytes);
	if (cell)
		cell = get_varint(cell, page_end, &row);
	if (!cell || bytes > p->usable_bytes - OVERFLOW || bytes > (uint64_t)(page_end - cell))
		return NOT_PLAIN;
	types = get_varint(cell, cell + bytes, &header_bytes);
	if (!types || header_bytes > bytes || cell + header_bytes <= types)
		return NOT_PLAIN;
	shape = shape_get(p, types, (uint32_t)(cell + header_bytes - types));
	if (!shape || shape->body_bytes > bytes - header_bytes)
		return NOT_PLAIN;
	*ret = (struct sql_record){(int64_t)row, cell + header_bytes, shape->places};
	return 0;
}

static int read_leaf(struct sql_pages *p, uint32_t number, int64_t low, int64_t high,
	sql_pages_fn *fn, void *arg)
{
	const uint8_t *page = get_page(p, number);
	uint32_t cells = page && page[0] == LEAF ? get16(page + 3) : 0;
	struct sql_record record;
	int r = 0;

	if (!page || page[0] != LEAF || LEAF_HEADER + 2 * cells > p->usable_bytes)
		return NOT_PLAIN;
	for (uint32_t i = cells; r == 0 && i-- > 0;) {
		uint32_t at = get16(page + LEAF_HEADER + 2 * i);

		if (at >= p->usable_bytes)
			return NOT_PLAIN;
		r = read_cell(p, page + at, page + p->usable_bytes, &record);
		if (r == 0 && record.row >= low && record.row <= high)
			r = fn(arg, &record);
	}
	return r;
}

int sql_pages_read(struct sql_pages *p, int64_t low, int64_t high, sql_pages_fn *fn, void *arg)
{
	struct page_list leaves = {0};
	int r = find_leaves(p, low, high, &leaves);

	for (size_t i = leaves.count; r == 0 && i-- > 0;)
		r = read_leaf(p, leaves.items[i], low, high, fn, arg);
	free(leaves.items);
	return r;
}

static bool is_int(uint32_t type)
{
	return type != 0 && type != TYPE_REAL && type <= TYPE_ONE;
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* Whether it is a number of so many bytes in the row; not one that its type alone says. */
static bool is_stored_int(const struct sql_place *at)
{
	return at->type - 1u < TYPE_REAL - 1;
}

/* Eight bytes are read: the block has room behind its last page. */
static int64_t stored_int(const uint8_t *body, const struct sql_place *at)
{
	return (int64_t)be64toh(word_at(body + at->offset)) >> at->shift;
}

bool sql_record_ints(const struct sql_record *r, size_t first, size_t count, int64_t *ret)
{
	const struct sql_place *at = &r->places[first];
	bool all = true;

	for (const struct sql_place *end = at + count; at < end; at++, ret++) {
		if (is_stored_int(at)) {
			*ret = stored_int(r->body, at);
			continue;
		}
		*ret = at->type == TYPE_ROW ? r->row : at->type == TYPE_ONE;
		all = all && (at->type == TYPE_ROW || is_int(at->type));
	}
	return all;
}

static struct sql_value value_of(const struct sql_record *r, const struct sql_place *at)
{
	const uint8_t *p = r->body + at->offset;

	if (is_stored_int(at))
		return SQL_I(stored_int(r->body, at));
	if (is_int(at->type) || at->type == TYPE_ROW)
		return SQL_I(at->type == TYPE_ROW ? r->row : at->type == TYPE_ONE);
	if (at->type >= TYPE_BYTES)
		return (struct sql_value){.type = at->type % 2 ? SQL_TEXT : SQL_BLOB,
			.p = p,
			.len = (size_t)(at->type - TYPE_BYTES) / 2};
	if (at->type == TYPE_REAL) {
		uint64_t bits = be64toh(word_at(p));
		double d;

		memcpy(&d, &bits, sizeof(d));
		return SQL_R(d);
	}
	return SQL_NOTHING;
}

void sql_record_values(
	const struct sql_record *r, size_t first, size_t count, struct sql_value *ret)
{
	for (size_t i = 0; i < count; i++)
		ret[i] = value_of(r, &r->places[first + i]);
}
