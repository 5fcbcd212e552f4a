/* SPDX-License-Identifier: Apache-2.0 */
/* sql_open.c - opening and closing databases, each with the guards its use needs.
 *
 * Invariants:
 *  1. SQLite is given URIs built here, so that no path is ever taken for an option of its own
 *     ("file:x?mode=…", ":memory:").
 *  2. Nothing here opens and closes the database file by itself: closing any descriptor of a file
 *     drops all POSIX locks the process has on it, and a writer in this process would lose its.
 *  3. Neither kind of connection runs triggers or views: a file that another user can change must
 *     not run statements with the rights of this process. */
#include "sql/sql.h"

#include <ctype.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/clock.h"

#define BUSY_WRITE_MS 5000
#define BUSY_READ_MS  2000
#define VALUE_MAX     (64 << 20) /* largest text or blob a reader accepts */
#define PATH_BYTES    8192

static int open_uri(
	const char *path, const char *query, int flags, sqlite3 **ret_db, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf uri = BUF_INIT(3 * PATH_BYTES);
	sqlite3 *db = NULL;
	int code, r;

	buf_puts(&uri, path[0] == '/' ? "file://" : "file:./");
	for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
		if (isalnum(*p) || strchr("/._-~", *p))
			buf_putc(&uri, (char)*p);
		else
			buf_printf(&uri, "%%%02X", *p);
	}
	buf_puts(&uri, query);
	if (uri.err)
		return errinfo_set(reterr, uri.err == -ENOBUFS ? -ENAMETOOLONG : uri.err,
			"%.100s…: the path is too long", path);
	code = sqlite3_open_v2(buf_str(&uri), &db,
		flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (code != SQLITE_OK) {
		r = sql_code_error(code, db ? sqlite3_system_errno(db) : 0, path,
			db ? sqlite3_errmsg(db) : sqlite3_errstr(code), reterr);
		(void)sqlite3_close(db); /* a handle that never opened has nothing to lose */
		return r;
	}
	*ret_db = db;
	return 0;
}

static int harden(sqlite3 *db, const char *path, struct errinfo *reterr)
{
	static const struct {
		int option, value;
	} settings[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
		{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
		{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
		{SQLITE_DBCONFIG_DQS_DML, 0},
		{SQLITE_DBCONFIG_DQS_DDL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		int now = -1;
		int code = sqlite3_db_config(db, settings[i].option, settings[i].value, &now);

		if (code == SQLITE_OK && now != settings[i].value)
			code = SQLITE_MISUSE;
		if (code != SQLITE_OK)
			return sql_code_error(code, 0, path, "cannot set the SQL limits", reterr);
	}
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	return 0;
}

static int stat_file(const char *path, struct stat *ret, struct errinfo *reterr)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		int err = errno;

		return sql_code_error(SQLITE_CANTOPEN, err, path, strerror(err), reterr);
	}
	if (!S_ISREG(st.st_mode))
		return errinfo_set(reterr, S_ISDIR(st.st_mode) ? -EISDIR : -EBADMSG,
			"%s is not a file: give the path of an ingero database", path);
	*ret = st;
	return 0;
}

/* A file that is there, to write to it. */
static int open_there(const char *path, sqlite3 **ret_db, struct errinfo *reterr)
{
	struct stat st;
	int r = stat_file(path, &st, reterr);

	r = r ?: open_uri(path, "", SQLITE_OPEN_READWRITE, ret_db, reterr);
	if (r < 0)
		return r;
	if (sqlite3_db_readonly(*ret_db, "main") == 1) {
		int err = access(path, W_OK) < 0 ? errno : EACCES;

		return sql_code_error(SQLITE_CANTOPEN, err, path, strerror(err), reterr);
	}
	return harden(*ret_db, path, reterr);
}

int sql_open_write(const char *path, sql_db **ret_db, struct errinfo *reterr)
{
	_cleanup_(sql_closep) sqlite3 *db = NULL;
	int r = open_there(path, &db, reterr);

	r = r
		    ?: sql_code_error(sqlite3_busy_timeout(db, BUSY_WRITE_MS), 0, path,
			       sqlite3_errmsg(db), reterr);
	if (r < 0)
		return r;
	/* auto_vacuum counts only before the first page is written; later it changes nothing.
	 * A checkpoint every 4096 pages (16 MiB) instead of 1000 writes hot index pages less often;
	 * 4 MiB of cache hold the inner pages of both indexes of some ten million events (2 MiB each:
	 * 30 bytes for each of 73,000 leaves). */
	r = sql_exec(db,
		"PRAGMA auto_vacuum=INCREMENTAL;PRAGMA journal_mode=WAL;PRAGMA "
		"synchronous=NORMAL;PRAGMA secure_delete=OFF;PRAGMA wal_autocheckpoint=4096;PRAGMA "
		"journal_size_limit=67108864;PRAGMA cache_size=-4096;PRAGMA temp_store=MEMORY;",
		reterr);
	if (r < 0)
		return r;
	*ret_db = TAKE(db);
	return 0;
}

int sql_open_fresh(const char *path, sql_db **ret_db, struct errinfo *reterr)
{
	_cleanup_(sql_closep) sqlite3 *db = NULL;
	int r = open_there(path, &db, reterr);

	if (r < 0)
		return r;
	/* 64 MiB of cache are also what a sort holds before it goes to temporary files. */
	r = sql_exec(db,
		"PRAGMA journal_mode=MEMORY;" /* it holds pages that were there: none */
		"PRAGMA synchronous=OFF;"
		"PRAGMA locking_mode=EXCLUSIVE;"
		"PRAGMA cache_size=-65536;"
		"PRAGMA temp_store=FILE;",
		reterr);
	if (r < 0)
		return r;
	*ret_db = TAKE(db);
	return 0;
}

static bool has_content(const char *path, const char *suffix)
{
	_cleanup_buf_ struct buf name = BUF_INIT(PATH_BYTES + 16);
	struct stat st;

	buf_printf(&name, "%s%s", path, suffix);
	return !name.err && stat(buf_str(&name), &st) == 0 && st.st_size > 0;
}

static void stamp_of(const struct stat *st, struct sql_stamp *ret)
{
	ret->dev = st->st_dev;
	ret->ino = st->st_ino;
	ret->size = st->st_size;
	ret->mtime_ns = (int64_t)st->st_mtim.tv_sec * (int64_t)NS_PER_S + st->st_mtim.tv_nsec;
}

int sql_open_read(const char *path, bool live, sql_db **ret_db, struct sql_stamp *ret_stamp,
	struct errinfo *reterr)
{
	_cleanup_(sql_closep) sqlite3 *db = NULL;
	struct sql_stamp stamp = {0};
	struct stat st;
	int r = stat_file(path, &st, reterr);

	if (r < 0)
		return r;
	stamp_of(&st, &stamp);
	stamp.frozen = !live && !has_content(path, "-wal") && !has_content(path, "-journal");
	r = open_uri(path, stamp.frozen ? "?immutable=1" : "", SQLITE_OPEN_READONLY, &db, reterr);
	r = r ?: harden(db, path, reterr);
	if (r < 0)
		return r;
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	r = sql_code_error(
		sqlite3_busy_timeout(db, BUSY_READ_MS), 0, path, sqlite3_errmsg(db), reterr);
	r = r
		    ?: sql_exec(db,
			       "PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;",
			       reterr);
	if (r < 0)
		return r;
	if (ret_stamp)
		*ret_stamp = stamp;
	*ret_db = TAKE(db);
	return 0;
}

bool sql_stamp_changed(const char *path, const struct sql_stamp *stamp)
{
	struct sql_stamp now = {0};
	struct stat st;

	if (!stamp->frozen)
		return false; /* was read under SQLite's own locks */
	if (stat(path, &st) < 0)
		return true;
	stamp_of(&st, &now);
	return now.dev != stamp->dev || now.ino != stamp->ino || now.size != stamp->size ||
	       now.mtime_ns != stamp->mtime_ns || has_content(path, "-wal") ||
	       has_content(path, "-journal");
}

int sql_open_memory(sql_db **ret_db, struct errinfo *reterr)
{
	_cleanup_(sql_closep) sqlite3 *db = NULL;
	int code = sqlite3_open_v2(":memory:", &db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY |
			SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
		NULL);
	int r = sql_code_error(code, 0, "the database in memory", sqlite3_errstr(code), reterr);

	r = r ?: harden(db, "the database in memory", reterr);
	if (r < 0)
		return r;
	*ret_db = TAKE(db);
	return 0;
}

int sql_close(sql_db *db)
{
	return sqlite3_close(db) == SQLITE_OK ? 0 : -EBUSY;
}

int sql_checkpoint(sql_db *db, struct errinfo *reterr)
{
	int code = sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

	if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED)
		return 0;
	return sql_db_error(db, code, sqlite3_system_errno(db), reterr);
}

int sql_checkpoint_try(sql_db *db, bool *ret_complete, struct errinfo *reterr)
{
	int code, again;

	(void)sqlite3_busy_timeout(db, 0);
	code = sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	again = sqlite3_busy_timeout(db, BUSY_WRITE_MS);
	*ret_complete = code == SQLITE_OK;
	if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED)
		code = again;
	return sql_db_error(db, code, sqlite3_system_errno(db), reterr);
}
