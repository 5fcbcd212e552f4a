/* SPDX-License-Identifier: Apache-2.0 */
/* sql.c - running statements, and the one mapping of SQLite's codes to errno and a sentence.
 *
 * Input: statements and values of store. A failed step always resets its statement, so a
 * cached statement can be used again whatever happened before. */
#include "sql/sql.h"

#include <fcntl.h>
#include <sqlite3.h>

static int from_system(int err, const char *path, const char *what, struct errinfo *reterr)
{
	switch (err) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return errinfo_set(reterr, -ENOSPC,
			"no space left to write %s: free some, or choose another file", path);
	case EROFS:
		return errinfo_set(
			reterr, -EROFS, "%s is on read-only media: choose another file", path);
	case EACCES:
	case EPERM:
		return errinfo_set(reterr, -EACCES,
			"no permission for %s or its folder: run as its owner or with sudo", path);
	case ENOENT: return errinfo_set(reterr, -ENOENT, "%s does not exist: check the path", path);
	default: return errinfo_set(reterr, -EIO, "%s: %s: check the disk", path, what);
	}
}

/* What unpacks the file at @path, by its first bytes; NULL: it is not compressed. */
static const char *unpacker_of(const char *path)
{
	static const struct {
		const char *magic, *command;
	} kinds[] = {{"\xfd"
		      "7zXZ",
			     "xz -d"},
		{"\x1f\x8b", "gzip -d"}, {"\x28\xb5\x2f\xfd", "zstd -d"}};
	char head[8] = {0};
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || read(fd, head, sizeof(head) - 1) <= 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strncmp(head, kinds[i].magic, strlen(kinds[i].magic)))
			return kinds[i].command;
	return NULL;
}

static uint32_t big_endian(const unsigned char *p, int n)
{
	uint32_t v = 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* Whether the file of @db has fewer bytes than its header says, as a copy that was broken off. Asked through the
 * connection: to open and close the file would drop the locks that this process has on it. The number of pages holds
 * only if who wrote it was the last to change the file. */
static bool is_cut_short(sqlite3 *db, uint64_t *ret_has, uint64_t *ret_wants)
{
	unsigned char head[96];
	sqlite3_file *file = NULL;
	sqlite3_int64 size;
	uint32_t page;

	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
		!file || !file->pMethods ||
		file->pMethods->xRead(file, head, sizeof(head), 0) != SQLITE_OK ||
		file->pMethods->xFileSize(file, &size) != SQLITE_OK ||
		memcmp(head + 24, head + 92, 4) != 0)
		return false;
	page = big_endian(head + 16, 2);
	*ret_has = (uint64_t)size;
	*ret_wants = (uint64_t)(page == 1 ? 65536 : page) * big_endian(head + 28, 4);
	return *ret_has < *ret_wants;
}

int sql_code_error(
	int code, int system_err, const char *path, const char *what, struct errinfo *reterr)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE: return 0;
	case SQLITE_NOTADB:
		if (unpacker_of(path))
			return errinfo_set(reterr, -EBADMSG,
				"%s is compressed: unpack it first with `%s`", path,
				unpacker_of(path));
		return errinfo_set(reterr, -EBADMSG,
			"%s is not a SQLite database: give an ingero recording", path);
	case SQLITE_CORRUPT:
		return errinfo_set(reterr, -EBADMSG,
			"%s is damaged (%s): move it away, or recover it with sqlite3's .recover",
			path, what);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return errinfo_set(reterr, -EBUSY,
			"%s is locked by another program: try again when it is done", path);
	case SQLITE_READONLY:
		if (code == SQLITE_READONLY_ROLLBACK)
			return errinfo_set(reterr, -EBADMSG,
				"%s has an unfinished transaction, which %s-journal would undo: if you trust both files, open it "
				"once with sqlite3",
				path, path);
		return from_system(EROFS, path, what, reterr);
	case SQLITE_FULL: return from_system(ENOSPC, path, what, reterr);
	case SQLITE_PERM:
	case SQLITE_AUTH: return from_system(EACCES, path, what, reterr);
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR: return from_system(system_err, path, what, reterr);
	case SQLITE_NOMEM: return errinfo_set(reterr, -ENOMEM, "%s: out of memory", path);
	case SQLITE_CONSTRAINT: return errinfo_set(reterr, -EEXIST, "%s: %s", path, what);
	case SQLITE_TOOBIG:
		return errinfo_set(reterr, -E2BIG, "%s: a value is larger than allowed", path);
	default: return errinfo_set(reterr, -EINVAL, "%s: %s", path, what);
	}
}

int sql_db_error(sql_db *db, int code, int system_err, struct errinfo *reterr)
{
	const char *path = sqlite3_db_filename(db, "main");
	uint64_t has, wants;

	path = path && *path ? path : "the database";
	if ((code & 0xff) == SQLITE_CORRUPT && is_cut_short(db, &has, &wants))
		return errinfo_set(reterr, -EBADMSG,
			"%s is cut short: it has %" PRIu64 " of %" PRIu64 " bytes: copy it again",
			path, has, wants);
	return sql_code_error(code, system_err, path, sqlite3_errmsg(db), reterr);
}

/* SQLite keeps the errno beneath an error of most calls, but not of a COMMIT: that is still in
 * errno, which the callers clear before. */
static int fail(sql_db *db, int code, struct errinfo *reterr)
{
	int left = errno, kept = sqlite3_system_errno(db);

	return sql_db_error(db, code, kept ? kept : left, reterr);
}

int sql_exec(sql_db *db, const char *sql, struct errinfo *reterr)
{
	int code;

	errno = 0;
	code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? 0 : fail(db, code, reterr);
}

int sql_prepare(sql_db *db, const char *sql, sql_stmt **ret_stmt, struct errinfo *reterr)
{
	sqlite3_stmt *s = NULL;
	int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL);

	if (code != SQLITE_OK)
		return fail(db, code, reterr);
	if (!s)
		return errinfo_set(reterr, -EINVAL, "no statement to run");
	*ret_stmt = s;
	return 0;
}

int sql_prepare_buf(sql_db *db, const struct buf *sql, sql_stmt **ret_stmt, struct errinfo *reterr)
{
	if (sql->err)
		return errinfo_set(reterr, sql->err,
			sql->err == -ENOMEM ? "out of memory" : "the statement is too long");
	return sql_prepare(db, buf_str(sql), ret_stmt, reterr);
}

void sql_finalize(sql_stmt *stmt)
{
	/* The code repeats the error of the last step, which its caller has seen. */
	(void)sqlite3_finalize(stmt);
}

static int bind_one(sql_stmt *stmt, int i, const struct sql_value *v)
{
	switch (v->type) {
	case SQL_INT: return sqlite3_bind_int64(stmt, i, v->i);
	case SQL_REAL: return sqlite3_bind_double(stmt, i, v->d);
	case SQL_TEXT:
		return sqlite3_bind_text64(stmt, i, v->p, v->len, SQLITE_STATIC, SQLITE_UTF8);
	case SQL_BLOB: return sqlite3_bind_blob64(stmt, i, v->p, v->len, SQLITE_STATIC);
	case SQL_NULL: break;
	}
	return sqlite3_bind_null(stmt, i);
}

int sql_bind_at(sql_stmt *stmt, int parameter, const struct sql_value *v, struct errinfo *reterr)
{
	int code = bind_one(stmt, parameter, v);

	return code == SQLITE_OK ? 0 : fail(sqlite3_db_handle(stmt), code, reterr);
}

int sql_bind(sql_stmt *stmt, const struct sql_value *values, size_t count, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = sql_bind_at(stmt, (int)i + 1, &values[i], reterr);
	return r;
}

int sql_parameters(sql_stmt *stmt)
{
	return sqlite3_bind_parameter_count(stmt);
}

int sql_step(sql_stmt *stmt, struct errinfo *reterr)
{
	int code, r;

	errno = 0;
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		return 1;
	r = code == SQLITE_DONE ? 0 : fail(sqlite3_db_handle(stmt), code, reterr);
	sql_reset(stmt);
	return r;
}

void sql_reset(sql_stmt *stmt)
{
	/* As in sql_finalize(): the code is that of the last step. */
	(void)sqlite3_reset(stmt);
}

int sql_put(sql_stmt *stmt, const struct sql_value *values, size_t count, struct errinfo *reterr)
{
	int r = sql_bind(stmt, values, count, reterr);

	if (r < 0)
		return r;
	r = sql_step(stmt, reterr);
	if (r > 0)
		sql_reset(stmt);
	return MIN(r, 0);
}

static int first_int(sql_stmt *stmt, const char *sql, int64_t *ret, struct errinfo *reterr)
{
	int r = sql_step(stmt, reterr);

	if (r < 0)
		return r;
	if (r == 0)
		return errinfo_set(reterr, -ENODATA, "no row for: %.200s", sql);
	*ret = sqlite3_column_int64(stmt, 0);
	return 0;
}

int sql_get_int(sql_db *db, const char *sql, int64_t *ret, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db, sql, &stmt, reterr);

	return r < 0 ? r : first_int(stmt, sql, ret, reterr);
}

int sql_get_int_buf(sql_db *db, const struct buf *sql, int64_t *ret, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare_buf(db, sql, &stmt, reterr);

	return r < 0 ? r : first_int(stmt, buf_str(sql), ret, reterr);
}

enum sql_type sql_column_type(sql_stmt *stmt, int column)
{
	switch (sqlite3_column_type(stmt, column)) {
	case SQLITE_INTEGER: return SQL_INT;
	case SQLITE_FLOAT: return SQL_REAL;
	case SQLITE_TEXT: return SQL_TEXT;
	case SQLITE_BLOB: return SQL_BLOB;
	default: return SQL_NULL;
	}
}

int64_t sql_column_int(sql_stmt *stmt, int column)
{
	return sqlite3_column_int64(stmt, column);
}

bool sql_column_is_int(sql_stmt *stmt, int column, int64_t *ret)
{
	sqlite3_value *v = sqlite3_column_value(stmt, column);

	if (sqlite3_value_type(v) != SQLITE_INTEGER)
		return false;
	*ret = sqlite3_value_int64(v);
	return true;
}

double sql_column_real(sql_stmt *stmt, int column)
{
	return sqlite3_column_double(stmt, column);
}

const char *sql_column_text(sql_stmt *stmt, int column, size_t *ret_len)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	if (ret_len)
		*ret_len = text ? (size_t)sqlite3_column_bytes(stmt, column) : 0;
	return text ? text : "";
}

const void *sql_column_blob(sql_stmt *stmt, int column, size_t *ret_len)
{
	const void *data = sqlite3_column_blob(stmt, column);

	*ret_len = data ? (size_t)sqlite3_column_bytes(stmt, column) : 0;
	return data;
}

struct sql_value sql_column_value(sql_stmt *stmt, int column)
{
	struct sql_value v = {.type = SQL_NULL};

	if (sql_column_is_int(stmt, column, &v.i)) {
		v.type = SQL_INT;
		return v;
	}
	v.type = sql_column_type(stmt, column);
	if (v.type == SQL_REAL)
		v.d = sql_column_real(stmt, column);
	else if (v.type == SQL_TEXT)
		v.p = sql_column_text(stmt, column, &v.len);
	else if (v.type == SQL_BLOB)
		v.p = sql_column_blob(stmt, column, &v.len);
	return v;
}

struct filter {
	sql_filter *fn;
	void *arg;
};

static void filter_call(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct filter *f = sqlite3_user_data(context);
	int64_t numbers[SQL_FILTER_MAX];

	for (int i = 0; i < count; i++) {
		if (sqlite3_value_type(values[i]) != SQLITE_INTEGER) {
			sqlite3_result_int(context, 1);
			return;
		}
		numbers[i] = sqlite3_value_int64(values[i]);
	}
	sqlite3_result_int(context, f->fn(f->arg, numbers));
}

int sql_add_filter(
	sql_db *db, const char *name, int count, sql_filter *fn, void *arg, struct errinfo *reterr)
{
	struct filter *f;
	int code;

	if (count < 1 || count > SQL_FILTER_MAX)
		return errinfo_set(reterr, -EINVAL, "%s: too many arguments", name);
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct filter){fn, arg};
	/* SQLite frees it, also when this fails. */
	code = sqlite3_create_function_v2(
		db, name, count, SQLITE_UTF8 | SQLITE_DIRECTONLY, f, filter_call, NULL, NULL, free);
	return code == SQLITE_OK ? 0 : fail(db, code, reterr);
}

int64_t sql_last_id(sql_db *db)
{
	return sqlite3_last_insert_rowid(db);
}

int64_t sql_changes(sql_db *db)
{
	return sqlite3_changes64(db);
}

bool sql_in_batch(sql_db *db)
{
	return !sqlite3_get_autocommit(db);
}
