/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_stack.c - loads call stacks: all, or those that the loaded events and ledger rows
 * refer to.
 *
 * The ones with most time come first, so that a ceiling leaves out what matters least. A stack that
 * cannot be understood is counted and left out.
 *
 * The published agent does not know where Python frames belong and puts them in front of the native
 * ones, as if they were called by them; here they are moved behind, so that innermost is first.
 * Where it did know (a native frame of the interpreter follows), they stay. */
#include "base/array.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/search.h"
#include "store/read/nodedb_reader.h"
#include "wire/op_kind.h"

enum { COL_HASH, COL_IPS, COL_FRAMES, COL_STOP };

static const struct reader_column columns[] = {
	{"hash", NULL}, {"ips", "''"}, {"frames", "''"}, {"stop", "''"}, {NULL, NULL}};
const struct reader_query reader_stack = {
	.table = "stack_traces", .columns = columns, .rest = " AND hash = ?1"};

struct usage {
	uint64_t hash, ns;
};

ORDER(by_hash, struct usage, ASCENDING(hash))

ORDER(by_time, struct usage, DESCENDING(ns) ?: by_hash(x, y))

struct usage_list {
	struct usage *items;
	size_t count, room;
	struct idmap by_hash; /* to 1 + the place in items */
};

static void usage_list_done(struct usage_list *l)
{
	free(l->items);
	idmap_done(&l->by_hash);
}

static int usage_add(struct usage_list *l, uint64_t hash, uint64_t ns)
{
	uintptr_t at = hash ? (uintptr_t)idmap_get(&l->by_hash, hash) : 0;

	if (at)
		l->items[at - 1].ns += ns;
	if (at || !hash)
		return 0;
	if (ARRAY_RESERVE(l->items, l->room, l->count + 1, l->by_hash.max) < 0)
		return -ENOMEM;
	l->items[l->count++] = (struct usage){hash, ns};
	return idmap_put(&l->by_hash, hash, (void *)(uintptr_t)l->count);
}

/* The stacks that the events and the ledger refer to, most time first; *ret is the caller's. */
static int used_stacks(const struct nodedb_content *c, struct usage **ret, size_t *ret_count)
{
	_cleanup_(usage_list_done) struct usage_list l = {
		.by_hash = IDMAP_INIT(c->event_count + c->ledger_count)};
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->event_count; i++)
		r = usage_add(&l, c->events[i].stack_hash, c->events[i].dur_ns);
	for (size_t i = 0; r == 0 && i < c->ledger_count; i++) {
		const struct ledger_row *row = &c->ledger[i];

		/* a call that is a mark closes the time since the last one */
		r = usage_add(
			&l, row->stack_hash, row->mark == MARK_STAY ? row->stay_ns : row->dur_ns);
	}
	if (r < 0)
		return r;
	SORT(l.items, l.count, by_time);
	*ret = TAKE(l.items);
	*ret_count = l.count;
	return 0;
}

void reader_stack_order(struct stack *s)
{
	struct stack_frame *frames = (struct stack_frame *)s->frames;
	size_t python = 0;

	while (python < s->count && stack_frame_is_python(&frames[python]))
		python++;
	if (!python || python == s->count ||
		(frames[python].file && (strstr(frames[python].file, "libpython") ||
						strstr(frames[python].file, "python3."))))
		return;
	for (size_t i = python; i < s->count; i++)
		if (stack_frame_is_python(&frames[i]))
			return;
	reader_reverse(frames, python, sizeof(*frames));
	reader_reverse(frames + python, s->count - python, sizeof(*frames));
	reader_reverse(frames, s->count, sizeof(*frames));
}

/* Types are asked before texts: asking for a text may change the type. */
static bool read_row(sql_stmt *stmt, struct stack_row *ret)
{
	if (sql_column_type(stmt, COL_HASH) != SQL_INT ||
		sql_column_type(stmt, COL_IPS) != SQL_TEXT ||
		sql_column_type(stmt, COL_FRAMES) != SQL_TEXT ||
		sql_column_type(stmt, COL_STOP) != SQL_TEXT)
		return false;
	ret->hash = (uint64_t)sql_column_int(stmt, COL_HASH);
	ret->ips = sql_column_text(stmt, COL_IPS, &ret->ips_len);
	ret->frames = sql_column_text(stmt, COL_FRAMES, &ret->frames_len);
	ret->stop = sql_column_text(stmt, COL_STOP, &ret->stop_len);
	return true;
}

/* What it takes in memory: demangled names may be longer than the row. */
static size_t stack_bytes(const struct stack *s, const struct stack_row *row)
{
	size_t bytes = sizeof(*s) + s->count * sizeof(*s->frames) + row->frames_len;

	for (size_t i = 0; i < s->count; i++)
		bytes += s->frames[i].symbol ? strlen(s->frames[i].symbol) : 0;
	return bytes;
}

/* The stack in the row that @stmt stands on, of hash, ips, frames and stop; the
 * caller frees it. -ENOMEM, or another error if it makes no sense. */
static int reader_stack_row(
	enum schema_kind kind, sql_stmt *stmt, struct stack **ret, size_t *ret_bytes)
{
	struct stack_row row;
	struct stack *s = NULL;
	int res = read_row(stmt, &row) ? stack_json_read(&row, &s) : -EBADMSG;

	if (res < 0)
		return res;
	if (kind == SCHEMA_PUBLISHED)
		reader_stack_order(s);
	*ret_bytes = stack_bytes(s, &row);
	*ret = s;
	return 0;
}

struct loader {
	struct reader *reader;
	size_t capacity, bytes;
};

/* The row that @stmt stands on. 0, also if it was left out, or -ENOMEM. */
static int take_row(struct loader *l, sql_stmt *stmt)
{
	struct nodedb_content *c = l->reader->content;
	struct stack *s = NULL;
	size_t bytes = 0;
	int res = reader_stack_row(l->reader->kind, stmt, &s, &bytes);

	if (res == -ENOMEM)
		return res;
	if (res < 0) {
		c->skipped_stacks++;
		return 0;
	}
	l->bytes += bytes;
	if (c->stacks.count == NODEDB_STACKS_MAX || l->bytes > NODEDB_STACKS_BYTES) {
		c->other_stacks++;
		free(s);
		return 0;
	}
	res = ARRAY_RESERVE(c->stacks.items, l->capacity, c->stacks.count + 1, NODEDB_STACKS_MAX);
	if (res < 0) {
		free(s);
		return res;
	}
	c->stacks.items[c->stacks.count++] = s;
	return 0;
}

/* Without its key every stack looked for would be a walk through the whole table. */
static int has_key(struct reader *r, struct errinfo *reterr)
{
	int64_t found;
	int res = sql_get_int(r->sql,
		"SELECT count(*) FROM pragma_table_xinfo('stack_traces') WHERE name = 'hash'"
		" COLLATE NOCASE AND pk = 1 AND type = 'INTEGER' COLLATE NOCASE",
		&found, reterr);

	return res < 0 ? res : found > 0;
}

static int load_used(struct loader *l, sql_stmt *stmt, struct errinfo *reterr)
{
	_cleanup_free_ struct usage *used = NULL;
	struct nodedb_content *c = l->reader->content;
	size_t wanted = l->reader->filter->stacks_max, count = 0;
	int r = has_key(l->reader, reterr), keyed = r;

	if (r >= 0)
		r = used_stacks(c, &used, &count);
	if (r >= 0 && !keyed) {
		c->skipped_stacks = count;
		return 0;
	}
	wanted = wanted ? MIN(wanted, (size_t)NODEDB_STACKS_MAX) : NODEDB_STACKS_MAX;
	if (count > wanted)
		c->other_stacks = count - wanted;
	for (size_t i = 0; r >= 0 && i < MIN(count, wanted); i++) {
		r = SQL_BIND(stmt, reterr, SQL_I(used[i].hash));
		if (r >= 0)
			r = sql_step(stmt, reterr);
		if (r > 0)
			r = take_row(l, stmt);
		sql_reset(stmt);
	}
	return r;
}

static int load_all(struct loader *l, sql_stmt *stmt, struct errinfo *reterr)
{
	int r;

	while ((r = sql_step(stmt, reterr)) > 0) {
		r = take_row(l, stmt);
		if (r < 0)
			return r;
	}
	return r;
}

ORDER_OF_POINTERS(by_stack_hash, struct stack, ASCENDING(hash))

int reader_load_stacks(struct reader *r, struct errinfo *reterr)
{
	static const struct reader_query all = {.table = "stack_traces", .columns = columns};
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	bool used = r->filter->stacks == NODEDB_STACKS_USED;
	struct loader l = {.reader = r};
	int res;

	if (r->filter->stacks == NODEDB_STACKS_NONE)
		return 0;
	res = reader_query(r, used ? &reader_stack : &all, &stmt, reterr);
	if (res < 0 || !stmt)
		return res;
	res = used ? load_used(&l, stmt, reterr) : load_all(&l, stmt, reterr);
	SORT(r->content->stacks.items, r->content->stacks.count, by_stack_hash);
	return res;
}

int reader_stack_prepare(struct reader *r, sql_stmt **ret, struct errinfo *reterr)
{
	int res = has_key(r, reterr);

	return res <= 0 ? res : reader_query(r, &reader_stack, ret, reterr);
}

int reader_stack_read(
	struct reader *r, sql_stmt *stmt, uint64_t hash, struct stack **ret, struct errinfo *reterr)
{
	struct stack *s = NULL;
	size_t bytes = 0;
	int res = SQL_BIND(stmt, reterr, SQL_I(hash));

	res = res ?: sql_step(stmt, reterr);
	if (res <= 0)
		return res;
	res = reader_stack_row(r->kind, stmt, &s, &bytes);
	sql_reset(stmt);
	if (res < 0)
		return res == -ENOMEM ? res : 0;
	*ret = s;
	return 1;
}

/* ---- names of kernels and ranges. Two sorted lists; texts are interned, because a kernel has one name in
 * all ranks. */

struct book_row {
	uint64_t node; /* hash of it; of texts 0 */
	uint64_t key;  /* the function, or the hash of a text */
	uint32_t pid;
	int64_t since;
	const char *name;
};

struct book_list {
	struct book_row *rows;
	size_t count;
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

static bool read_book_row(sql_stmt *stmt, void *arg, void *ret)
{
	char text[2048 + 32], where[2048];
	size_t len;
	const char *node = sql_column_text(stmt, 0, &len);
	struct book_row *row = ret;
	bool known = sql_column_int(stmt, 5);

	*row = (struct book_row){.node = node && len ? hash_bytes(node, len) : 0,
		.key = (uint64_t)sql_column_int(stmt, 1),
		.pid = (uint32_t)sql_column_int(stmt, 2),
		.since = sql_column_int(stmt, 3)};
	if (!reader_text(stmt, 4, where, sizeof(where)) || !where[0])
		return false;
	snprintf(text, sizeof(text), "%s%s", known ? "" : "unknown kernel at ", where);
	row->name = intern(arg, text);
	return row->name;
}

/* Columns: node, key, pid, since, name, whether the name is known. */
static int load_list(struct reader *r, struct name_book *b, const char *table, const char *select,
	struct book_list *list, struct errinfo *reterr)
{
	static const struct scope all;
	int res = reader_load(r,
		&(struct reader_query){.table = table, .select = select, .scope = &all},
		&(struct reader_rows){READER_INTO(list->rows, list->count), .max = NAME_BOOK_ROWS,
			.read = read_book_row, .arg = &b->texts},
		reterr);

	SORT(list->rows, list->count, by_key);
	return res;
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
	res = res ?: load_list(r, b, "names", "SELECT '', hash, 0, 0, name, 1", &b->ranges, reterr);
	if (res < 0)
		return res;
	*ret = TAKE(b);
	return 0;
}

/* The last row of @key and @pid that holds at @at; if none does yet, the first. */
static const char *find(
	const struct book_list *list, uint64_t node, uint64_t key, uint32_t pid, int64_t at)
{
	const char *name = NULL;

	for (size_t i = LOWER_BOUND(k, list->count,
		     list->rows[k].key < key ||
			     (list->rows[k].key == key && list->rows[k].pid < pid));
		i < list->count; i++) {
		const struct book_row *r = &list->rows[i];

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
