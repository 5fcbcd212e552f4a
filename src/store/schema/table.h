/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - the tables of a recording, each column described once.
 *
 * A line of tables.c says what a column is called, of which kind it is, what stands for it where a file lacks
 * it, and which member of the row's struct it holds. CREATE TABLE of a node's file and of a merged one, INSERT,
 * SELECT, the reader's checks, the merge and the rows of the API derive from these lines.
 *
 * To add a column: its member in the struct, a line at the end of its table, a test of what it means. A
 * recording of before gets the column when it is written to (schema_complete()), so it has a default or may be
 * NULL. `incidents` has a description of its own (model/incident.h), as it goes to more places. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "sql/sql.h"

enum column_kind {
	COLUMN_DECLARED, /* made by SQLite as `otherwise` declares it; neither written nor copied */
	COLUMN_NODE,     /* whose row */
	COLUMN_ID,       /* an integer, or the number behind the last colon of a text */
	COLUMN_SESSION,  /* a session's id, another one in a merged file */
	COLUMN_INT,      /* any integer */
	COLUMN_COUNT,    /* 0 to max, 0 meaning INT64_MAX */
	COLUMN_TIME,     /* nanoseconds since 1970, moved with the node's clock when merged */
	COLUMN_TIME_OR_0, /* likewise, 0 stays */
	COLUMN_REAL,      /* finite */
	COLUMN_TEXT,      /* cut to max bytes */
	COLUMN_JSON,      /* text of at most max bytes */
	COLUMN_BLOB,      /* of at most max bytes */
};

enum column_type {    /* of the member */
	COLUMN_GIVEN, /* it is none: who writes and reads the row has it */
	COLUMN_U8,
	COLUMN_U16,
	COLUMN_U32,
	COLUMN_U64,
	COLUMN_I32,
	COLUMN_I64,
	COLUMN_DOUBLE,
	COLUMN_CHARS,
	COLUMN_POINTER, /* to a text, or NULL */
	COLUMN_RANK,    /* a number of struct placement: which one is `size` */
};

struct column {
	const char *name;
	const char *otherwise; /* what stands for it in a file that lacks it; a constant is also its
				* default. NULL: it must be there */
	enum column_kind kind;
	bool may_lack; /* NULL: not known. In the struct that is below 0, or 0 if it has no sign */
	int64_t max;
	enum column_type type;
	uint16_t offset, size;
	uint8_t place;    /* in CREATE TABLE, from 1; 0: that of its line */
	const char *json; /* its name in JSON; NULL: the column's */
	const char
		*meaning; /* for schema_info and docs/schema.md; NULL: the table's note says it */
};

struct table {
	const char *name;
	const struct column *columns;
	size_t count;
	const char *key;     /* its primary key; NULL: a column declares it */
	const char *indexes; /* and whatever else is made with the table */
	/* What becomes of a row whose key is there: "REPLACE", "IGNORE" or " ON CONFLICT …", in which " *" stands
	 * for all other columns as they are given. NULL: there is none. */
	const char *renew;
	const char *
		settle; /* merging: what the output's row gains from one with its key; $column is its value */
	const char *merged; /* stands for the key in a merged file; NULL: the key, with the node */
	bool is_rowid;      /* keeps SQLite's own number of rows although it has a key */
	bool is_of_all;     /* a merged file has no node here */
};

enum node_table {
	TABLE_EVENTS,
	TABLE_STACKS,
	TABLE_CHAINS,
	TABLE_SAMPLES,
	TABLE_SESSIONS,
	TABLE_PROCESS_NAMES,
	TABLE_PROCESSES,
	TABLE_COVERAGE,
	TABLE_CALL_GAPS,
	TABLE_KERNELS,
	TABLE_NAMES,
	TABLE_COARSE,
	TABLE_FINE,
	TABLE_COLLECTIVES,
	TABLE_LOSSES,
	TABLE_CPU_LOSSES,
	TABLE_ACCOUNTING,
	TABLE_PRUNED,
	TABLE_GROUPS,
	TABLE_SCHEDSTAT,
	TABLE_ANNOTATIONS,
	TABLE_GPU_SAMPLES,
	TABLE_CONTAINERS,
	TABLE_LEDGER,
	TABLE_OVERHEAD,
	TABLE_COUNT
};
extern const struct table node_tables[TABLE_COUNT];

/* The columns that a ledger's lines are in, by enum wire_ledger_line. */
extern const char *const ledger_columns[];

#define TABLE_COLUMNS_MAX 64
#define TABLE_TEXT        (16 << 10) /* bytes of each of these statements, at most */

/* for_each_column - @c runs over those that are written and read. */
#define for_each_column(c, t)                                                                      \
	for (const struct column *c = (t)->columns; c < (t)->columns + (t)->count; c++)            \
		if (c->kind != COLUMN_DECLARED)

/* table_create - CREATE TABLE; of a file that holds several nodes if @merged. Without its indexes. */
void table_create(const struct table *t, bool merged, struct buf *sql);

/* table_note - the note of schema_info about a table: @text, then what its columns mean. */
void table_note(const struct table *t, const char *text, struct buf *out);

/* table_insert - INSERT with a parameter for each column, in their order. */
void table_insert(const struct table *t, struct buf *sql);

/* table_values - the values of @row for table_insert(). Columns that the struct does not have take those of
 * @given, one after the other. Returns how many there are. */
size_t table_values(const struct table *t, const char *node, const void *row,
	const struct sql_value *given, struct sql_value ret[TABLE_COLUMNS_MAX]);

/* table_read - the other way: the members of @row, which is all 0, from values in that order. NULL, and a share that makes
 * no sense, is not known where a column may lack it. Columns that the struct does not have are left to the caller. False:
 * the row makes no sense. */
bool table_read(const struct table *t, const struct sql_value *values, void *row);
/* table_takes - the column's number may be @v. */
bool table_takes(const struct column *c, int64_t v);
/* table_copy_text - copies text to @out, cut at a character's border. False if it is no text, or so long (1 MiB) that the row
 * cannot be meant. */
bool table_copy_text(const struct sql_value *v, char *out, size_t size);

/* table_rank - the number @which of a place in a job: rank, rank of its node, size of the world. */
struct placement;
struct sql_value table_rank(const struct placement *p, unsigned which);

/* table_place - where a column's value is among those of table_insert(); NULL: how many there are. */
int table_place(const struct table *t, const char *column);
