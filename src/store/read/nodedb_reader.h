/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_reader.h - an open store being loaded; private to the files that read it. */
#pragma once

#include "base/buf.h"
#include "sql/sql.h"
#include "store/nodedb.h"
#include "store/read/nodedb_snapshot.h"
#include "store/schema/schema.h"
#include "store/schema/table.h"
#include "wire/ids.h"

#define SQL_TEXT_MAX (64 << 10) /* of a statement */

struct reader {
	sql_db *sql;
	const char *path;
	bool frozen; /* nobody changes the file: another connection sees the same */
	enum schema_kind kind;
	bool merged; /* of several nodes: each row says whose it is */
	const struct nodedb_filter *filter;
	struct nodedb_content *content;
};

struct reader_column { /* an array of them ends with a name of NULL */
	const char *name;
	const char *otherwise; /* what to select if the table lacks it; NULL: it must be there */
};

/* reader_has_column - 1, 0 or an error. */
int reader_has_column(
	struct reader *r, const char *table, const char *name, struct errinfo *reterr);

/* reader_select - appends "SELECT <columns> FROM <table>" to @sql. */
int reader_select(struct reader *r, const char *table, const struct reader_column *columns,
	struct buf *sql, struct errinfo *reterr);

/* reader_select_of - the same of described columns, without those that are only declared, and of @also ("rowid";
 * NULL: nothing). */
int reader_select_of(struct reader *r, const char *table, const struct column *columns,
	size_t count, const char *also, struct buf *sql, struct errinfo *reterr);

/* reader_where - scope_where() of the filter's scope on @table; its node counts if the table has the
 * column. */
int reader_where(struct reader *r, const char *table, struct scope_columns c, struct buf *sql,
	struct errinfo *reterr);

/* reader_where_of - the same of another scope. */
int reader_where_of(struct reader *r, const struct scope *s, const char *table,
	struct scope_columns c, struct buf *sql, struct errinfo *reterr);

/* reader_prepare - compiles @sql; a text over its ceiling (too many pids) is -E2BIG. */
int reader_prepare(
	struct reader *r, const struct buf *sql, sql_stmt **ret_stmt, struct errinfo *reterr);

/* reader_query - compiles a statement: what of @table, which rows, in which order. *ret is untouched where the file
 * has no such table. */
struct reader_query {
	const char *table;
	const struct reader_column *columns; /* or @select: "SELECT …" without FROM */
	const char *select;
	const char *beside;        /* ", …": what else is in FROM; NULL: nothing */
	struct scope_columns by;   /* of the filter's scope; or @scope, if it is another */
	const struct scope *scope; /* NULL: the filter's */
	const char *rest;          /* further conditions (" AND …"), the order; NULL: none */
};
int reader_query(struct reader *r, const struct reader_query *q, sql_stmt **ret_stmt,
	struct errinfo *reterr);

/* The nodes of the sessions, one each, the first one first. */
extern const struct reader_query reader_nodes;

/* reader_collect - the rows of @stmt (NULL: none) behind those that are in an array already. Those over @max are
 * counted in @older, or end it if that is NULL; those of which @read says that they make no sense in @skipped. */
struct reader_rows {
	void *items; /* the address of the array's pointer */
	size_t *count, bytes, max;
	bool (*read)(sql_stmt *stmt, void *arg, void *row);
	void *arg;
	uint64_t *skipped, *older; /* may be NULL */
};
#define READER_INTO(array, n) .items = &(array), .count = &(n), .bytes = sizeof(*(array))
int reader_collect(sql_stmt *stmt, const struct reader_rows *to, struct errinfo *reterr);

/* reader_load - both: the rows of a query. If none are counted in @older, no more than fit below @max are looked at,
 * those that make no sense among them. */
int reader_load(struct reader *r, const struct reader_query *q, const struct reader_rows *to,
	struct errinfo *reterr);

/* reader_load_rows - the newest rows of TABLE_SAMPLES, _GPU_SAMPLES, _CONTAINERS, _COLLECTIVES or _LEDGER whose
 * `timestamp` the scope selects, oldest first, into r->content; what makes no sense is in skipped_rows. A table that
 * is not there has none; container samples and the ledger are loaded if the filter says so. */
int reader_load_rows(struct reader *r, enum node_table table, struct errinfo *reterr);
/* reader_identify - schema_identify(), and whether it is merged, into @r. */
int reader_identify(struct reader *r, struct errinfo *reterr);

/* reader_came - after @err: a recorder that makes its file, or rolls it over, has none for a moment, or an empty
 * one. True if there is such a recorder, and a recording now: read again. */
bool reader_came(const char *path, int err);

/* reader_reverse - newest first becomes oldest first. */
void reader_reverse(void *array, size_t count, size_t element_bytes);

/* reader_count_at - false if it is no number, or below 0. */
bool reader_count_at(sql_stmt *stmt, int column, uint64_t *ret);

/* reader_text - copies text to @out, cut at a character's border. False if it is no text, or so
 * long (1 MiB) that the row cannot be meant. */
bool reader_text(sql_stmt *stmt, int column, char *out, size_t size);

/* reader_visit - opens @path read-only as nodedb_read() does, identifies it and calls @visit inside
 * one transaction. If a writer came in between, once more: @visit starts afresh at each call. */
typedef int (*reader_visitor)(struct reader *r, void *arg, struct errinfo *reterr);
int reader_visit(const char *path, const struct nodedb_filter *f, reader_visitor visit, void *arg,
	struct errinfo *reterr);

/* ---- rows of `events` (nodedb_event.c) ---- */

static inline bool event_in_range(int64_t v, int64_t low, int64_t high)
{
	return v >= low && v <= high;
}

/* event_stamped_at_end - whether published files (0.8 to 0.10) stamp such rows with their end. */
static inline bool event_stamped_at_end(unsigned source, unsigned op)
{
	return source == SOURCE_IO || source == SOURCE_NET ||
	       (source == SOURCE_HOST && op == HOST_SCHED_SWITCH);
}

struct pid_name {
	int64_t pid;
	char name[COMM_LEN];
};

struct pid_names {             /* for rows without a name of their own */
	struct pid_name *rows; /* by pid */
	size_t count;
};

int reader_load_names(struct reader *r, struct pid_names *ret, struct errinfo *reterr);
void reader_names_done(struct pid_names *n);

/* reader_name_of - the pid's name, COMM_LEN bytes; NULL if it has none. */
const char *reader_name_of(const struct pid_names *names, uint32_t pid);

/* reader_event_select - appends "SELECT … FROM events", the columns reader_event_row() expects, and
 * with @node what reader_event_node() gives. */
int reader_event_select(struct reader *r, bool node, struct buf *sql, struct errinfo *reterr);
const char *reader_event_node(sql_stmt *stmt, size_t *ret_len);

/* reader_event_sort - puts them in order of start, then of seq. 0 or -ENOMEM. */
int reader_event_sort(struct event *events, size_t n);

/* reader_event_where - appends the filter; a few rows too many may come, of which
 * reader_event_accept() decides. */
int reader_event_where(struct reader *r, struct buf *sql, struct errinfo *reterr);
/* reader_event_order - appends ORDER BY start; of equal ones the longer first. */
void reader_event_order(const struct reader *r, struct buf *sql);
bool reader_event_accept(const struct nodedb_filter *f, const struct event *e);

/* reader_event_row - the row that @stmt stands on: 1, or 0 if it makes no sense. */
bool reader_event_row(
	enum schema_kind kind, sql_stmt *stmt, const struct pid_names *names, struct event *ret);

/* reader_event_values - the same of a row's values, in the order of reader_event_columns(). */
#define READER_EVENT_COLUMNS 26
void reader_event_columns(const char *ret[READER_EVENT_COLUMNS]);
bool reader_event_values(enum schema_kind kind, const struct sql_value *values,
	const struct pid_names *names, struct event *ret);

/* reader_aggregate_row - the row that @stmt stands on, of READER_AGGREGATE's columns: true, or
 * false if it makes no sense. */
#define READER_AGGREGATE                                                                           \
	"bucket, source, op, pid, nested, count, stored, sum_dur, min_dur, max_dur, sum_arg0, "    \
	"sketch"
bool reader_aggregate_row(sql_stmt *stmt, struct aggregate *a);

/* reader_range - see nodedb_range(). */
int reader_range(struct reader *r, struct nodedb_range *ret, struct errinfo *reterr);

/* reader_load_thinned - the rows that ordinary.h keeps into r->content, in any order. Ours only,
 * after the aggregates (nodedb_scan.c). */
int reader_load_thinned(struct reader *r, const struct pid_names *names, struct errinfo *reterr);

/* The stack of the hash ?1. */
extern const struct reader_query reader_stack;

/* reader_stack_prepare - the statement that reader_stack_read() needs; *ret stays NULL if stacks
 * cannot be found by their hash here. */
int reader_stack_prepare(struct reader *r, sql_stmt **ret, struct errinfo *reterr);
/* reader_stack_read - 1 and *ret is the caller's (free()); 0: none that makes sense. */
int reader_stack_read(struct reader *r, sql_stmt *stmt, uint64_t hash, struct stack **ret,
	struct errinfo *reterr);

/* reader_stack_order - the published agent's order of frames to ours: see nodedb_stack.c. */
void reader_stack_order(struct stack *s);

/* Each loads one kind of thing into r->content. */
int reader_load_events(struct reader *r, struct errinfo *reterr);
int reader_load_aggregates(struct reader *r, struct errinfo *reterr);
int reader_load_homes(struct reader *r, struct errinfo *reterr);
int reader_load_chains(struct reader *r, struct errinfo *reterr);
int reader_load_books(struct reader *r, struct errinfo *reterr);
/* reader_load_unclean - into @books: which sessions have no clean end. */
int reader_load_unclean(struct reader *r, struct accounting *books, struct errinfo *reterr);

/* reader_load_launches - into @books: how sure the number of launches is. */
int reader_load_launches(struct reader *r, struct accounting *books, struct errinfo *reterr);
int reader_load_labels(struct reader *r, struct errinfo *reterr);
int reader_load_stacks(struct reader *r, struct errinfo *reterr);
int reader_load_pruned(struct reader *r, struct errinfo *reterr);
int reader_load_kernels(struct reader *r, struct errinfo *reterr);
int reader_load_node(struct reader *r, struct errinfo *reterr);

/* Shared by the two files that answer short questions. */

struct nodedb_snapshot {
	struct reader reader;
	sql_stmt *stack; /* compiled at first use */
};

/* ---- what events of a recording are called beyond their operation: the kernel that a launch
 * launched, the text of an NVTX range. Loaded whole; files without such tables give an empty one. */

#define NAME_BOOK_ROWS  65536
#define NAME_BOOK_BYTES (16u << 20)

struct name_book;

int name_book_load(struct reader *r, struct name_book **ret, struct errinfo *reterr);
DECLARE_FREE(struct name_book, name_book_free)

/* name_book_find - the name of @e on @node (NULL: any); NULL: it has none, or nobody told it. An
 * unknown kernel is called "unknown kernel at libx.so+0x10" where that is known. Valid as long as
 * the book. @b may be NULL. */
const char *name_book_find(
	const struct name_book *b, const struct event *e, const char *node, size_t node_len);

/* name_book_kind - what such a name is: "kernel" or "range"; NULL: events like @e have none. */
const char *name_book_kind(const struct event *e);

/* ---- a recording handed over piece by piece, so that its events need not fit into
 * memory: for formats that are written as one reads. Read-only, schemas 0.8 to 0.11. */

struct nodedb_stream;

/* A callback that returns negative ends it. They come in this order. */
struct nodedb_sink {
	void *arg;
	/* Whether the published agent, or one of its schema, has made the file. */
	void (*origin)(void *arg, bool is_published);
	/* Every node and rank that the recording names, by node, then rank; rank -1: none. */
	int (*track)(void *arg, const char *node, int32_t rank);
	/* The rank of a process, for events that do not say it: its environment's, else that in its
	 * largest communicator. Not called for a process that is several ranks. */
	int (*rank)(void *arg, const char *node, uint32_t pid, int32_t rank);
	/* Samples, GPU samples, stored verdicts, labels, and if the filter asks for them ledger and
	 * control groups of one node; gone afterwards. */
	int (*content)(void *arg, const char *node, const struct nodedb_content *c);
	/* Of all nodes, in order of time; may be put into another order. They stay until the end. */
	int (*collectives)(void *arg, struct collective_row *rows, size_t count);
	/* Events, in order of their start, of equal ones the longer first. @node is not
	 * NUL-terminated. */
	int (*event)(void *arg, const char *node, size_t node_len, const struct event *e,
		struct nodedb_stream *s);
	/* After the last event, while the collectives are still there. */
	int (*end)(void *arg);
};

struct nodedb_stream_stats {
	uint64_t events;
	uint64_t skipped_rows; /* damaged */
	uint64_t unplaced;     /* readings of a file of several nodes that do not say whose */
	uint64_t older_collectives;
	bool is_limited; /* there are older events than f->last allows */
};

/* nodedb_stream - gives what @f selects (range, pids, op, node, last) to @sink. -EBUSY if the file
 * changed meanwhile; what a callback returned; else as nodedb_read(). */
int nodedb_stream(const char *path, const struct nodedb_filter *f, const struct nodedb_sink *sink,
	struct nodedb_stream_stats *ret, struct errinfo *reterr);

/* nodedb_stream_name - what @e is called beyond its operation, from within sink->event; *ret is NULL or
 * valid until the stream ends. */
int nodedb_stream_name(struct nodedb_stream *s, const struct event *e, const char *node,
	size_t node_len, const char **ret, struct errinfo *reterr);

/* nodedb_stream_stack - the stack of @hash, from within sink->event: 1 and *ret is the caller's
 * (free()), 0 if there is none that can be read, or an error. */
int nodedb_stream_stack(
	struct nodedb_stream *s, uint64_t hash, struct stack **ret, struct errinfo *reterr);
