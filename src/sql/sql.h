/* SPDX-License-Identifier: Apache-2.0 */
/* sql.h - the border to SQLite: nobody outside this folder includes <sqlite3.h>.
 *
 * Every call returns 0 (or a count), else a negative errno with a sentence that names the file and
 * what to do. Errors by number:
 *   -EBADMSG not a database or damaged   -EBUSY locked by another program   -ENOSPC disk full
 *   -EROFS read-only media or file       -EACCES no permission              -ENOENT no such file
 *   -EIO the disk failed                 -ENOMEM                            -EEXIST a constraint
 *   -EINVAL the statement is wrong       -E2BIG a value over the limit
 * A connection belongs to one thread at a time (it is opened without SQLite's own mutexes). */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/errinfo.h"
#include "base/macros.h"

typedef struct sqlite3 sql_db;
typedef struct sqlite3_stmt sql_stmt;

enum sql_type { SQL_NULL, SQL_INT, SQL_REAL, SQL_TEXT, SQL_BLOB };

struct sql_value {
	enum sql_type type;
	union {
		int64_t i;
		double d;
		const void *p; /* stays the caller's; must live until the statement has run */
	};
	size_t len;
};

#define SQL_I(v)      ((struct sql_value){.type = SQL_INT, .i = (int64_t)(v)}) /* u64: bit pattern */
#define SQL_NOTHING   ((struct sql_value){.type = SQL_NULL})
#define SQL_R(v)      ((struct sql_value){.type = SQL_REAL, .d = (v)})
#define SQL_S(s)      ((struct sql_value){.type = SQL_TEXT, .p = (s), .len = strlen(s)})
#define SQL_SN(s, n)  ((struct sql_value){.type = SQL_TEXT, .p = (s), .len = strnlen(s, n)})
#define SQL_B(ptr, n) ((struct sql_value){.type = SQL_BLOB, .p = (ptr), .len = (n)})

/* ---- opening ---- */

/* sql_open_write - open an existing file (possibly empty) for writing: WAL, synchronous=NORMAL,
 * incremental vacuum for a new file, no triggers, no views, no extensions.
 * A file that is only readable is refused, not opened read-only. */
int sql_open_write(const char *path, sql_db **ret_db, struct errinfo *reterr);

/* sql_open_fresh - open an empty file that nobody else looks at until it is complete: without a
 * journal beside it and without waiting for the disk, so that rows go in as fast as they can. After
 * a failure the file is worth nothing. Sorting may use temporary files. */
int sql_open_fresh(const char *path, sql_db **ret_db, struct errinfo *reterr);

struct sql_stamp {   /* how a file looked when it was opened */
	bool frozen; /* opened without locks, as a file that nobody changes */
	dev_t dev;
	ino_t ino;
	off_t size;
	int64_t mtime_ns;
};

/* sql_open_read - open read-only. Foreign content cannot run code: no triggers, views, extensions.
 * A file with neither a -wal with content nor a -journal is opened as `immutable`: this works on
 * read-only media and leaves no -shm beside evidence, but takes no lock, so the caller asks
 * sql_stamp_changed() after reading and, if so, reads again with @live set. */
int sql_open_read(const char *path, bool live, sql_db **ret_db, struct sql_stamp *ret_stamp,
	struct errinfo *reterr);
bool sql_stamp_changed(const char *path, const struct sql_stamp *stamp);

/* sql_open_memory - an empty private database. */
int sql_open_memory(sql_db **ret_db, struct errinfo *reterr);

/* sql_close - closes; all statements must have been finalized. */
int sql_close(sql_db *db);
DEFINE_CLEANUP(sql_db *, sql_close)

/* sql_checkpoint - moves the WAL's content into the file and empties it. Readers that are in the
 * way are not an error: then some of it stays in the WAL. */
int sql_checkpoint(sql_db *db, struct errinfo *reterr);

/* sql_checkpoint_try - the same without waiting for readers; *ret_complete says whether the WAL is
 * empty now. */
int sql_checkpoint_try(sql_db *db, bool *ret_complete, struct errinfo *reterr);

/* ---- running ---- */

int sql_exec(sql_db *db, const char *sql, struct errinfo *reterr); /* statements without results */

/* sql_prepare - compile one statement; freed with sql_finalize(). */
int sql_prepare(sql_db *db, const char *sql, sql_stmt **ret_stmt, struct errinfo *reterr);

/* sql_prepare_buf - of a text that was put together. One that did not find its room is not run cut
 * short, without its last conditions: what @sql says. */
int sql_prepare_buf(sql_db *db, const struct buf *sql, sql_stmt **ret_stmt, struct errinfo *reterr);
void sql_finalize(sql_stmt *stmt);
DEFINE_CLEANUP(sql_stmt *, sql_finalize)

/* sql_bind - binds values[i] to parameter i + 1. */
int sql_bind(sql_stmt *stmt, const struct sql_value *values, size_t count, struct errinfo *reterr);
#define SQL_BIND(stmt, reterr, ...)                                                                \
	sql_bind(stmt, (const struct sql_value[]){__VA_ARGS__},                                    \
		sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value),        \
		reterr)

int sql_bind_at(sql_stmt *stmt, int parameter, const struct sql_value *v, struct errinfo *reterr);
int sql_parameters(sql_stmt *stmt); /* how many it has */

/* sql_step - 1: a row is there, 0: done (and reset), negative: failed (and reset). */
int sql_step(sql_stmt *stmt, struct errinfo *reterr);
void sql_reset(sql_stmt *stmt);

/* sql_put - bind, run to the end and reset: one row written. */
int sql_put(sql_stmt *stmt, const struct sql_value *values, size_t count, struct errinfo *reterr);
#define SQL_PUT(stmt, reterr, ...)                                                                 \
	sql_put(stmt, (const struct sql_value[]){__VA_ARGS__},                                     \
		sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value),        \
		reterr)

/* sql_get_int - the first column of the first row; -ENODATA if there is none. */
int sql_get_int(sql_db *db, const char *sql, int64_t *ret, struct errinfo *reterr);
int sql_get_int_buf(sql_db *db, const struct buf *sql, int64_t *ret, struct errinfo *reterr);

/* Columns of the current row, from 0. Text and blob are valid until the next step; text ends with
 * a NUL but may hold others: *ret_len is the truth. NULL reads as 0 or "". */
enum sql_type sql_column_type(sql_stmt *stmt, int column);
int64_t sql_column_int(sql_stmt *stmt, int column);
bool sql_column_is_int(sql_stmt *stmt, int column, int64_t *ret); /* untouched if it is none */
double sql_column_real(sql_stmt *stmt, int column);
const char *sql_column_text(sql_stmt *stmt, int column, size_t *ret_len);
const void *sql_column_blob(sql_stmt *stmt, int column, size_t *ret_len);
struct sql_value sql_column_value(sql_stmt *stmt, int column); /* NULL is SQL_NULL */

/* sql_add_filter - makes @name(a, b, …) with @count arguments (SQL_FILTER_MAX at most) usable in
 * this connection's statements, not in the file's own schema. It is 1 for a row with an argument
 * that is no integer, which @fn never sees; else what @fn says. */
#define SQL_FILTER_MAX 8
typedef bool sql_filter(void *arg, const int64_t *values);
int sql_add_filter(
	sql_db *db, const char *name, int count, sql_filter *fn, void *arg, struct errinfo *reterr);

int64_t sql_last_id(sql_db *db); /* of the last insert */
int64_t sql_changes(sql_db *db); /* rows that the last INSERT, UPDATE or DELETE changed */
bool sql_in_batch(sql_db *db);   /* a transaction is open */

/* SQLite's result codes as errno and sentence; private to sql/. */

/* sql_code_error - @code (SQLITE_*) that occurred with @path. @system_err is the errno beneath it,
 * @what SQLite's own words. Returns 0 for OK, ROW and DONE. */
int sql_code_error(
	int code, int system_err, const char *path, const char *what, struct errinfo *reterr);
/* sql_db_error - the same of the file of @db, in its own words; a copy that was broken off is told. */
int sql_db_error(sql_db *db, int code, int system_err, struct errinfo *reterr);
