/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb.c - opening and closing the store, sessions, batches and events: the path every recorded
 * event takes. Runs on whichever one thread owns the store (store/write/writer.c).
 *
 * Invariants:
 *  1. A file is examined read-only before anything is written beside or into it; a file that is
 *     refused, and its folder, stay as they were.
 *  2. A file made here is complete or gone: the tables are one transaction.
 *  3. seq grows by one per stored row; rows of a batch that failed give theirs back.
 *  4. Root makes, opens, renames and removes files with the rights of whoever may change the path
 *     (base/path_user.h): here for opening and closing, by the writer for its thread's life. Where
 *     that is root in a folder like /tmp, names that others can lay there first are made with
 *     O_EXCL, and the log's owner is looked at. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "store/nodedb_private.h"
#include "base/file.h"
#include "base/path_user.h"
#include "store/schema/schema.h"

static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

enum found { FOUND_NOTHING, FOUND_EMPTY, FOUND_OURS };

static void close_sql(struct nodedb *db)
{
	for (int i = 0; i < STATEMENT_COUNT; i++)
		if (db->statements[i])
			sql_finalize(TAKE(db->statements[i]));
	if (db->sql)
		sql_close(TAKE(db->sql));
	if (db->file >= 0)
		close(db->file);
	db->file = -1;
}

static void nodedb_free(struct nodedb *db)
{
	close_sql(db);
	store_lock_done(&db->lock);
	free(db->path);
	free(db->node);
	free(db);
}
DEFINE_CLEANUP(struct nodedb *, nodedb_free)

/* What is at @path, without changing anything; refuses what must not be written. */
static int examine(const char *path, enum found *ret, struct errinfo *reterr)
{
	_cleanup_(sql_closep) sql_db *sql = NULL;
	enum schema_kind kind;
	struct stat st;
	int r;

	if (stat(path, &st) < 0 && errno == ENOENT) {
		*ret = FOUND_NOTHING;
		return 0;
	}
	r = sql_open_read(path, false, &sql, NULL, reterr);
	r = r ?: schema_identify(sql, path, &kind, NULL, reterr);
	if (r < 0)
		return r;
	if (kind == SCHEMA_PUBLISHED)
		return errinfo_set(reterr, -EBADMSG,
			"%s was recorded by the published agent and is read-only: record to another file with --db",
			path);
	r = schema_is_merged(sql, reterr);
	if (r < 0)
		return r;
	if (r)
		return errinfo_set(reterr, -EBADMSG,
			"%s is a merged recording of several nodes: record to another file with --db",
			path);
	*ret = kind == SCHEMA_OURS ? FOUND_OURS : FOUND_EMPTY;
	return 0;
}

static int create_file(const char *path, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : owner_give(fd);

	if (r < 0) {
		if (fd >= 0)
			unlink(path);
		return errinfo_set(reterr, r, "cannot create %s: %s; choose another file with --db",
			path, strerror(-r));
	}
	return 0;
}

/* Back to how it was found. */
static void undo(const char *path, enum found found, bool touched, bool made_folder)
{
	char name[PATH_MAX];
	char *slash;

	for (size_t i = 0; touched && i < ARRAY_SIZE(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		if (i == 0 && found == FOUND_EMPTY)
			(void)!truncate(name, 0);
		else
			unlink(name);
	}
	snprintf(name, sizeof(name), "%s", path);
	slash = strrchr(name, '/');
	if (made_folder && slash) {
		*slash = 0;
		rmdir(name);
	}
}

static int fill(struct nodedb *db, struct errinfo *reterr)
{
	int r = sql_exec(db->sql, "BEGIN IMMEDIATE", reterr);

	r = r ?: schema_create(db->sql, reterr);
	r = r ?: sql_exec(db->sql, "COMMIT", reterr);
	if (r < 0)
		return r;
	/* Into the file itself, so that a disk without room for it is known now. */
	return sql_checkpoint(db->sql, reterr);
}

static int complete(struct nodedb *db, struct errinfo *reterr)
{
	enum schema_kind kind;
	int r = schema_identify(db->sql, db->path, &kind, NULL, reterr);

	if (r < 0)
		return r;
	r = sql_exec(db->sql, "BEGIN IMMEDIATE", reterr);
	r = r ?: schema_complete(db->sql, reterr);
	return r < 0 ? r : sql_exec(db->sql, "COMMIT", reterr);
}

/* Log and index are ours, not laid here by somebody who could then read and change the recording. */
static int check_log(const struct nodedb *db, struct errinfo *reterr)
{
	struct stat own, st;
	char name[PATH_MAX];

	if (stat(db->path, &own) < 0)
		return errinfo_set(reterr, -errno, "%s: %s", db->path, strerror(errno));
	for (size_t i = 1; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", db->path, suffixes[i]);
		if (lstat(name, &st) < 0)
			continue;
		if (!S_ISREG(st.st_mode) ||
			(st.st_uid != own.st_uid && st.st_uid != 0 && st.st_uid != path_user_now()))
			return errinfo_set(reterr, -EPERM,
				"%s is not an ingero file: remove it, or choose another file with --db",
				name);
	}
	return 0;
}

static int open_found(struct nodedb *db, enum found found, struct errinfo *reterr)
{
	int64_t last;
	int r = check_log(db, reterr);

	r = r ?: sql_open_write(db->path, &db->sql, reterr);
	if (r < 0)
		return r;
	db->file = open(db->path, O_PATH | O_CLOEXEC);
	if (db->file < 0)
		return errinfo_set(reterr, -errno, "%s: %s", db->path, strerror(errno));
	r = found == FOUND_OURS ? complete(db, reterr) : fill(db, reterr);
	r = r ?: check_log(db, reterr); /* again: made by us, or by somebody in between */
	if (r < 0)
		return r;
	/* The note is in files that follow a rolled one: ids go on, also if it has no event yet. */
	r = sql_get_int(db->sql,
		"SELECT max(coalesce((SELECT max(seq) FROM events), 0), coalesce((SELECT"
		" CAST(value AS INTEGER) FROM schema_info WHERE key = 'last_seq'), 0))",
		&last, reterr);
	if (r < 0)
		return r;
	db->next_seq = (uint64_t)last + 1;
	return 0;
}

static struct nodedb *nodedb_new(const char *path, const char *node)
{
	_cleanup_(nodedb_freep) struct nodedb *db = calloc(1, sizeof(*db));

	if (!db)
		return NULL;
	db->lock = STORE_LOCK_INIT;
	db->file = -1;
	db->path = strdup(path);
	db->node = strdup(node);
	if (!db->path || !db->node)
		return NULL;
	db->node_len = strlen(node);
	return TAKE(db);
}

static int explain_rights(const char *path, struct errinfo *reterr)
{
	unsigned uid = path_user_now();

	return errinfo_set(reterr, -EACCES,
		"%s is in a folder of user %u, so root writes as that user, who has no write permission: run `chown %u` on the file and its folder, or choose another file with --db",
		path, uid, uid);
}

int nodedb_open(const char *path, const char *node, struct nodedb **ret_db, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(nodedb_freep) struct nodedb *db = NULL;
	bool made_folder = false, touched = false;
	enum found found, first;
	int r;

	if (strlen(path) + 16 > PATH_MAX)
		return errinfo_set(reterr, -ENAMETOOLONG, "%.100s…: the path is too long", path);
	r = path_user_enter(path, &before, reterr);
	if (r < 0)
		return r;
	if (file_is_beside_recording(path))
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s belongs to a recording: choose another file with --db", path);
	db = nodedb_new(path, node);
	if (!db)
		return -ENOMEM;
	r = examine(path, &first, reterr);
	if (r < 0)
		return r == -EACCES && before.changed ? explain_rights(path, reterr) : r;
	r = owner_make_folder(path, &made_folder, reterr);
	if (r < 0)
		return r;
	r = store_lock_take(path, &db->lock, reterr);
	found = first;
	if (r >= 0)
		r = examine(path, &found, reterr);
	if (r >= 0 && first == FOUND_NOTHING && found != first)
		r = errinfo_set(
			reterr, -EAGAIN, "another program just created %s: try again", path);
	if (r >= 0 && found == FOUND_NOTHING)
		r = create_file(path, reterr);
	if (r >= 0) {
		touched = found != FOUND_OURS;
		r = open_found(db, found, reterr);
	}
	if (r >= 0) {
		*ret_db = TAKE(db);
		return 0;
	}
	if (db->sql)
		sql_close(TAKE(db->sql));
	store_lock_done(&db->lock);
	undo(path, found, touched, made_folder);
	return r == -EACCES && before.changed ? explain_rights(path, reterr) : r;
}

int nodedb_close(struct nodedb *db, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r;

	(void)path_user_enter(db->path, &before, NULL);
	nodedb_batch_rollback(db);
	r = db->sql ? sql_checkpoint(db->sql, reterr)
		    : errinfo_set(reterr, -EIO, "cannot reopen %s", db->path);
	nodedb_free(db);
	return r;
}

const char *nodedb_path(const struct nodedb *db)
{
	return db->path;
}

/* Where the next file's ids begin. */
static int note_seq(struct nodedb *db, uint64_t last, struct errinfo *reterr)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO schema_info VALUES ('last_seq', '%llu')",
		(unsigned long long)last);
	return sql_exec(db->sql, sql, reterr);
}

/* The closed file gets its new name and a new one its old. On failure all is as before. */
static int replace_file(
	struct nodedb *db, const char *rolled, uint64_t last, struct errinfo *reterr)
{
	int r;

	if (renameat2(AT_FDCWD, db->path, AT_FDCWD, rolled, RENAME_NOREPLACE) < 0)
		return errinfo_set(reterr, -errno, "cannot rename %s to %s: %s", db->path, rolled,
			strerror(errno));
	undo(db->path, FOUND_NOTHING, true, false); /* an empty log that a reader holds open */
	r = create_file(db->path, reterr);
	r = r ?: open_found(db, FOUND_NOTHING, reterr);
	r = r ?: note_seq(db, last, reterr);
	if (r < 0) {
		close_sql(db);
		undo(db->path, FOUND_NOTHING, true, false);
		(void)!rename(rolled, db->path);
	}
	return r;
}

int nodedb_roll_ready(struct nodedb *db, struct errinfo *reterr)
{
	bool complete = false;
	int r = db->sql ? sql_checkpoint_try(db->sql, &complete, reterr) : -EIO;

	return r < 0 ? r : complete;
}

int nodedb_roll(struct nodedb *db, const char *rolled, struct errinfo *reterr)
{
	uint64_t next = db->next_seq;
	int r = nodedb_roll_ready(db, reterr), q;

	if (r < 0)
		return r;
	if (!r)
		return errinfo_set(reterr, -EAGAIN, "%s is being read", db->path);
	close_sql(db);
	r = replace_file(db, rolled, next - 1, reterr);
	if (r < 0) {
		q = open_found(db, FOUND_OURS, NULL);
		if (q < 0)
			close_sql(db);
	}
	db->next_seq = next;
	return r;
}

int nodedb_has_name(const struct nodedb *db)
{
	struct stat named, own;

	if (stat(db->path, &named) < 0)
		return errno == ENOENT ? 0 : -errno;
	return fstat(db->file, &own) == 0 && named.st_dev == own.st_dev &&
			       named.st_ino == own.st_ino
		       ? 1
		       : -EEXIST;
}

/* What its log holds goes into it first, unless it is gone for good: SQLite does not do so for a file of another name. */
static int leave_file(struct nodedb *db, struct errinfo *reterr)
{
	struct stat st;
	int r = 1;

	if (db->sql && (fstat(db->file, &st) < 0 || st.st_nlink))
		r = nodedb_roll_ready(db, reterr);
	if (r < 0)
		return r;
	if (!r)
		return errinfo_set(reterr, -EAGAIN, "what was %s is being read", db->path);
	close_sql(db);
	return 0;
}

int nodedb_renew_ready(struct nodedb *db, struct errinfo *reterr)
{
	return db->sql ? nodedb_roll_ready(db, reterr) : 1;
}

int nodedb_renew(struct nodedb *db, struct errinfo *reterr)
{
	uint64_t next = db->next_seq;
	char name[PATH_MAX];
	int r = leave_file(db, reterr);

	if (r < 0)
		return r;
	r = store_lock_renew(db->path, &db->lock, reterr);
	if (r < 0)
		return r;
	for (size_t i = 1; i < ARRAY_SIZE(suffixes);
		i++) { /* a reader's would be taken for the new file's */
		snprintf(name, sizeof(name), "%s%s", db->path, suffixes[i]);
		unlink(name);
	}
	r = create_file(db->path, reterr);
	if (r < 0)
		return r; /* what has the name is somebody else's: it stays */
	r = open_found(db, FOUND_NOTHING, reterr);
	r = r ?: note_seq(db, next - 1, reterr);
	if (r < 0) {
		close_sql(db);
		undo(db->path, FOUND_NOTHING, true, false);
	}
	db->next_seq = next;
	return r;
}

int nodedb_session_gpu(struct nodedb *db, int64_t id, const char *model, const char *driver,
	const char *cuda, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(db->sql,
		"UPDATE sessions SET gpu_model = ?2, gpu_driver = CASE WHEN ?3 = '' THEN gpu_driver"
		" ELSE ?3 END, cuda_ver = CASE WHEN ?4 = '' THEN cuda_ver ELSE ?4 END WHERE id = "
		"?1",
		&stmt, reterr);

	return r ?: SQL_PUT(stmt, reterr, SQL_I(id), SQL_S(model), SQL_S(driver), SQL_S(cuda));
}

int nodedb_session_end(struct nodedb *db, int64_t id, wall_time stopped, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(
		db->sql, "UPDATE sessions SET stopped_at = ?2 WHERE id = ?1", &stmt, reterr);

	return r ?: SQL_PUT(stmt, reterr, SQL_I(id), SQL_I(stopped.ns));
}

int nodedb_checkpoint(struct nodedb *db, struct errinfo *reterr)
{
	return db->sql ? sql_checkpoint(db->sql, reterr) : -EIO;
}

static int set_durable(struct nodedb *db, bool durable, struct errinfo *reterr)
{
	db->durable = durable;
	return sql_exec(
		db->sql, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", reterr);
}

static int begin_batch(struct nodedb *db, bool durable, struct errinfo *reterr)
{
	int r;

	if (!db->sql) { /* lost when it rolled over: the disk may have room again */
		uint64_t next = db->next_seq;

		r = open_found(db, FOUND_OURS, reterr);
		if (r < 0) {
			close_sql(db);
			return r;
		}
		db->next_seq = next;
	}
	db->batch_seq = db->next_seq;
	db->batch_pruned = db->pruned_rows;
	r = durable ? set_durable(db, true, reterr) : 0;
	return r < 0 ? r : sql_exec(db->sql, "BEGIN IMMEDIATE", reterr);
}

int nodedb_batch_begin(struct nodedb *db, struct errinfo *reterr)
{
	return begin_batch(db, false, reterr);
}

int nodedb_batch_begin_durable(struct nodedb *db, struct errinfo *reterr)
{
	return begin_batch(db, true, reterr);
}

int nodedb_batch_commit(struct nodedb *db, struct errinfo *reterr)
{
	int r = sql_exec(db->sql, "COMMIT", reterr);

	if (r < 0)
		nodedb_batch_rollback(db);
	if (db->durable)
		(void)set_durable(db, false, NULL); /* else the next ones are durable too */
	db->batch_seq = 0;
	return r;
}

void nodedb_batch_rollback(struct nodedb *db)
{
	/* Some failures (disk full) have already ended the transaction. */
	if (db->sql && sql_in_batch(db->sql))
		(void)sql_exec(db->sql, "ROLLBACK", NULL);
	if (db->sql && db->durable)
		(void)set_durable(db, false, NULL);
	if (db->batch_seq) {
		db->next_seq = db->batch_seq;
		db->pruned_rows = db->batch_pruned;
	}
	db->batch_seq = 0;
}

uint64_t nodedb_size(const struct nodedb *db)
{
	uint64_t total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes) - 1; i++) {
		char name[PATH_MAX];
		struct stat st;

		snprintf(name, sizeof(name), "%s%s", db->path, suffixes[i]);
		if (stat(name, &st) == 0)
			total += (uint64_t)st.st_size;
	}
	return total;
}
