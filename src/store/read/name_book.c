/* SPDX-License-Identifier: Apache-2.0 */
/* name_book.c - see name_book.h. Two sorted lists; texts are interned, because a kernel has one name in
 * all ranks. */
#include "store/read/name_book.h"

#include "base/search.h"
#include "base/array.h"
#include "base/hash.h"
#include "wire/op_kind.h"

#define SQL_TEXT_MAX 4096

struct book_row {
	uint64_t node; /* hash of it; of texts 0 */
	uint64_t key;  /* the function, or the hash of a text */
	uint32_t pid;
	int64_t since;
	const char *name;
};

struct book_list {
	struct book_row *rows;
	size_t count, room;
};

struct name_book {
	struct intern texts;
	struct book_list kernels, ranges;
};

void name_book_free(struct name_book *b)
{
	if (!b)
		return;
	intern_done(&b->texts);
	free(b->kernels.rows);
	free(b->ranges.rows);
	free(b);
}

ORDER(by_key, struct book_row, ASCENDING(key) ?: ASCENDING(pid) ?: ASCENDING(since))

/* Columns: node, key, pid, since, name, whether the name is known. */
static int load_list(struct reader *r, struct name_book *b, const char *table, const char *select,
	struct book_list *list, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int res = schema_has_table(r->sql, table, reterr);

	if (res <= 0)
		return res;
	buf_printf(&sql, "%s FROM %s LIMIT %d", select, table, NAME_BOOK_ROWS);
	res = reader_prepare(r, &sql, &stmt, reterr);
	while (res >= 0 && (res = sql_step(stmt, reterr)) > 0) {
		char text[2048 + 32], where[2048];
		size_t len;
		const char *node = sql_column_text(stmt, 0, &len);
		struct book_row row = {.node = node && len ? hash_bytes(node, len) : 0,
			.key = (uint64_t)sql_column_int(stmt, 1),
			.pid = (uint32_t)sql_column_int(stmt, 2),
			.since = sql_column_int(stmt, 3)};
		bool known = sql_column_int(stmt, 5);

		if (!reader_text(stmt, 4, where, sizeof(where)) || !where[0])
			continue;
		snprintf(text, sizeof(text), "%s%s", known ? "" : "unknown kernel at ", where);
		row.name = intern(&b->texts, text);
		if (!row.name)
			break;
		res = ARRAY_RESERVE(list->rows, list->room, list->count + 1, NAME_BOOK_ROWS);
		if (res == 0)
			list->rows[list->count++] = row;
	}
	if (list->count)
		qsort(list->rows, list->count, sizeof(*list->rows), by_key);
	return res < 0 ? res : 0;
}

int name_book_load(struct reader *r, struct name_book **ret, struct errinfo *reterr)
{
	_cleanup_(name_book_freep) struct name_book *b = calloc(1, sizeof(*b));
	int res;

	if (!b)
		return -ENOMEM;
	b->texts = INTERN_INIT(NAME_BOOK_BYTES);
	res = load_list(r, b, "kernels",
		"SELECT node, function, pid, since, name, origin <> 'unknown'", &b->kernels,
		reterr);
	if (res == 0)
		res = load_list(
			r, b, "names", "SELECT '', hash, 0, 0, name, 1", &b->ranges, reterr);
	if (res < 0)
		return res;
	*ret = TAKE(b);
	return 0;
}

/* The last row of @key and @pid that holds at @at; if none does yet, the first. */
static const char *find(
	const struct book_list *list, uint64_t node, uint64_t key, uint32_t pid, int64_t at)
{
	size_t low = 0, high = list->count;
	const char *name = NULL;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct book_row *r = &list->rows[middle];

		if (r->key < key || (r->key == key && r->pid < pid))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < list->count; low++) {
		const struct book_row *r = &list->rows[low];

		if (r->key != key || r->pid != pid || (name && r->since > at))
			break;
		if (!node || !r->node || r->node == node)
			name = r->name;
	}
	return name;
}

const char *name_book_kind(const struct event *e)
{
	if (op_kind_is_launch(e->source, e->op))
		return "kernel";
	return e->source == SOURCE_NVTX ? "range" : NULL;
}

const char *name_book_find(
	const struct name_book *b, const struct event *e, const char *node, size_t node_len)
{
	if (!b)
		return NULL;
	if (e->source == SOURCE_NVTX)
		return find(&b->ranges, 0, e->arg1, 0, 0);
	if (!op_kind_is_launch(e->source, e->op))
		return NULL;
	return find(&b->kernels, node && node_len ? hash_bytes(node, node_len) : 0, e->arg0, e->pid,
		e->start.ns);
}
