/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_attach.c - see duck_worker_attach.h. Catalogs are p0, p1, … in the order of the files; tables
 * without rows are in the schema `none`, so that a view has its columns also where no file has them. */
#include "duck/duck_worker_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/path_user.h"

#define VIEW_MAX (256u << 10)

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Each file is open twice, here and by DuckDB; many systems begin with 1,024. */
static void make_room(size_t count)
{
	struct rlimit l;
	rlim_t want = 2 * count + 64;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= want)
		return;
	l.rlim_cur = MIN(want, l.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &l); /* else opening says so */
}

int duck_files_open(struct duck_files *f, struct errinfo *reterr)
{
	make_room(f->count);
	for (size_t i = 0; i < f->count; i++) {
		/* A link that another user laid leads no further than that user's rights. */
		_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
		int r = path_user_enter(f->names[i], &before, reterr);

		if (r < 0)
			return r;
		f->fds[i] = open(f->names[i], O_PATH | O_CLOEXEC);
		if (f->fds[i] < 0)
			return errinfo_set(reterr, -errno, "%s: %s: try again",
				last_part(f->names[i]), strerror(errno));
	}
	return 0;
}

const char *duck_file_path(const struct duck_files *f, size_t i, char out[DUCK_FILE_PATH_MAX])
{
	snprintf(out, DUCK_FILE_PATH_MAX, "/proc/self/fd/%d", f->fds[i]);
	return out;
}

int duck_attach_all(struct duck_connection *c, const struct duck_files *f, struct errinfo *reterr)
{
	char text[128], path[DUCK_FILE_PATH_MAX];
	struct errinfo e = {0};

	for (size_t i = 0; i < f->count; i++) {
		int r;

		snprintf(text, sizeof(text), "ATTACH '%s' AS p%zu (READ_ONLY)",
			duck_file_path(f, i, path), i);
		r = duck_exec(c, text, &e);
		if (r < 0 && strstr(e.text, "Conflicting lock"))
			return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EBUSY,
				"%s is being written: try again", last_part(f->names[i]));
		if (r < 0)
			return errinfo_set(reterr, r == -ENOMEM ? r : -EBADMSG,
				"%s cannot be read: %.300s", last_part(f->names[i]), e.text);
	}
	return 0;
}

/* ---- views ---- */

/* Which files have a table: rows of file and table, by the files' order. */
static int list_tables(struct duck_connection *c, struct sql_table *ret, struct errinfo *reterr)
{
	static const struct duck_limits limits = {
		.rows_max = (size_t)DUCK_WORKER_FILES_MAX * DUCK_WORKER_TABLES_MAX,
		.bytes_max = 8u << 20};

	return duck_select(c,
		"SELECT CAST(substr(database_name, 2) AS BIGINT) AS file, table_name FROM duckdb_tables() WHERE "
		"schema_name = 'main' AND regexp_full_match(database_name, 'p[0-9]+') ORDER BY file",
		&limits, ret, reterr);
}

static int make_view(struct duck_connection *c, const struct duck_worker_table *t,
	const struct sql_table *found, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(VIEW_MAX);

	buf_printf(&text,
		"CREATE TABLE none.\"%s\" (%s); CREATE VIEW main.\"%s\" AS SELECT * FROM none.\"%s\"",
		t->name, t->columns, t->name, t->name);
	for (size_t i = 0; i < found->row_count; i++)
		if (!strcmp(sql_table_bytes(found, sql_table_cell(found, i, 1)), t->name))
			buf_printf(&text, " UNION ALL BY NAME SELECT * FROM p%d.main.\"%s\"",
				(int)sql_table_cell(found, i, 0)->i, t->name);
	return text.err ? text.err : duck_exec(c, buf_str(&text), reterr);
}

int duck_make_views(struct duck_connection *c, const struct duck_files *f,
	const struct duck_worker_table *tables, size_t table_count, struct errinfo *reterr)
{
	struct sql_table found = {0};
	int r = duck_exec(c, "CREATE SCHEMA none", reterr);

	if (r == 0 && f->count)
		r = list_tables(c, &found, reterr);
	for (size_t i = 0; r == 0 && i < table_count; i++)
		r = make_view(c, &tables[i], &found, reterr);
	sql_table_done(&found);
	return r;
}

int duck_shut(struct duck_connection *c, struct errinfo *reterr)
{
	static const struct duck_setting settings[] = {
		{"enable_external_access", "false"}, {"lock_configuration", "true"}, {0}};
	int r = duck_exec(c,
		"SET enable_external_access = false; SET lock_configuration = true; BEGIN TRANSACTION READ ONLY",
		reterr);

	return r < 0 ? r : duck_check(c, settings, reterr);
}
