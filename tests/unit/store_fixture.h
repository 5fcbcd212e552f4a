/* SPDX-License-Identifier: Apache-2.0 */
/* store_fixture.h - a scratch folder and raw looks into a database, for the tests of the store. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/nodedb.h"
#include "sql/sql.h"

struct scratch {
	char folder[64];
	char path[96]; /* of a database in it, not made yet */
};

static _unused_ int scratch_setup(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	snprintf(s->folder, sizeof(s->folder), "/tmp/ingero-test-XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->path, sizeof(s->path), "%s/ingero.db", s->folder);
	*state = s;
	return 0;
}

/* Files in the folder; removes them if @remove. */
static _unused_ int scratch_files(const char *folder, bool remove_them)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char name[512];

		if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.'))
			continue;
		n++;
		snprintf(name, sizeof(name), "%s/%s", folder, e->d_name);
		if (!remove_them)
			continue;
		if (unlink(name) < 0) {
			scratch_files(name, true);
			rmdir(name);
		}
	}
	closedir(d);
	return n;
}

static _unused_ int scratch_teardown(void **state)
{
	struct scratch *s = *state;

	chmod(s->folder, 0700);
	scratch_files(s->folder, true);
	assert_int_equal(rmdir(s->folder), 0);
	free(s);
	return 0;
}

/* The whole file; the caller frees it. */
static _unused_ char *scratch_bytes(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	char *data;
	long len;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	len = ftell(f);
	rewind(f);
	data = malloc((size_t)len + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, (size_t)len, f), len);
	fclose(f);
	*ret_len = (size_t)len;
	return data;
}

static _unused_ void scratch_write(const char *path, const void *data, size_t len)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* Run statements on a file as any SQLite program would, then leave it closed. */
static _unused_ void scratch_sql(const char *path, const char *sql)
{
	struct errinfo err = {0};
	sql_db *db = NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sql_open_write(path, &db, &err), 0);
	if (sql_exec(db, sql, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sql_checkpoint(db, &err), 0);
	assert_int_equal(sql_close(db), 0);
}

static _unused_ int64_t scratch_int(const char *path, const char *sql)
{
	struct errinfo err = {0};
	int64_t v = INT64_MIN;
	sql_db *db = NULL;

	assert_int_equal(sql_open_read(path, false, &db, NULL, &err), 0);
	if (sql_get_int(db, sql, &v, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sql_close(db), 0);
	return v;
}

/* One text value; the caller frees it. */
static _unused_ char *scratch_text(const char *path, const char *sql)
{
	struct errinfo err = {0};
	sql_stmt *stmt = NULL;
	sql_db *db = NULL;
	char *text;

	assert_int_equal(sql_open_read(path, false, &db, NULL, &err), 0);
	if (sql_prepare(db, sql, &stmt, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sql_step(stmt, &err), 1);
	text = strdup(sql_column_text(stmt, 0, NULL));
	sql_finalize(stmt);
	assert_int_equal(sql_close(db), 0);
	return text;
}

static _unused_ struct nodedb *scratch_open(const char *path)
{
	struct errinfo err = {0};
	struct nodedb *db = NULL;

	if (nodedb_open(path, "n1", &db, &err) < 0)
		fail_msg("%s", err.text);
	return db;
}

static _unused_ void scratch_close(struct nodedb *db)
{
	struct errinfo err = {0};

	if (nodedb_close(db, &err) < 0)
		fail_msg("%s", err.text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
