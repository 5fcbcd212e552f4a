/* SPDX-License-Identifier: Apache-2.0 */
/* echo_files.c - see echo_files.h. */
#include "cluster/cli/echo_files.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Root uses a store, and what is beside it, with the rights of whoever may change names there. */
static int enter(
	const char *store, const char *other, struct path_user *ret_before, struct errinfo *reterr)
{
	_cleanup_free_ char *copy = other ? strdup(other) : NULL;
	const char *folders[] = {store, copy ? dirname(copy) : NULL};

	if (other && !copy)
		return -ENOMEM;
	return service_rights_enter(folders, other ? 2 : 1, ret_before, reterr);
}

static int open_store(const struct echo_flags *f, const char *other, struct echo_prepared *p,
	struct path_user *before, struct store **ret, struct errinfo *reterr)
{
	int r = echo_flags_prepare(f, p, reterr);

	if (r == 0 && p->settings.engine != ECHO_DUCKDB)
		r = errinfo_set(reterr, -EINVAL,
			"this is for --engine duckdb: ClickHouse has its own backup and export");
	if (r == 0)
		r = enter(p->folder, other, before, reterr);
	if (r == 0 && access(p->folder, F_OK) < 0)
		r = errinfo_set(
			reterr, -ENOENT, "there is no store in %s: give --db-path", p->folder);
	if (r < 0)
		return r;
	p->settings.duck.folder = p->folder;
	p->settings.duck.retention_ns = 0; /* looking changes nothing */
	p->settings.duck.bytes_max = 0;
	return store_duck_open(&p->settings.duck, ret, reterr);
}

int echo_files_backup(const struct echo_flags *f, const char *to, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(echo_prepared_done) struct echo_prepared p = {0};
	_cleanup_(store_freep) struct store *s = NULL;
	int r = open_store(f, to, &p, &before, &s, reterr);

	if (r == 0)
		r = store_duck_backup(s, to, reterr);
	if (r == 0)
		printf("Backed up %s to %s: check it with `ingero-cluster echo verify %s`\n",
			p.folder, to, to);
	return r;
}

int echo_files_verify(const char *folder, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = enter(folder, NULL, &before, reterr);

	if (r == 0)
		r = store_duck_verify(folder, reterr);
	if (r == 0)
		printf("%s is whole\n", folder);
	return r;
}

int echo_files_restore(const char *from, const char *to, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = enter(from, to, &before, reterr);

	if (r == 0)
		r = store_duck_restore(from, to, reterr);
	if (r == 0)
		printf("Restored %s to %s: start it with `ingero-cluster echo --db-path %s`\n",
			from, to, to);
	return r;
}

static int find_table(const char *name, enum store_table *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf names = BUF_INIT(256);

	for (int t = 0; t < TABLE_COUNT; t++) {
		if (strcmp(store_tables[t].name, name) == 0) {
			*ret = (enum store_table)t;
			return 0;
		}
		buf_printf(&names, "%s%s", t ? ", " : "", store_tables[t].name);
	}
	return errinfo_set(
		reterr, -EINVAL, "there is no table %.60s: choose %s", name, buf_str(&names));
}

int echo_files_export(const struct echo_flags *f, const char *cluster, const char *table,
	const char *path, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(echo_prepared_done) struct echo_prepared p = {0};
	_cleanup_(store_freep) struct store *s = NULL;
	struct store_scope scope = {
		.clusters = cluster ? &cluster : NULL, .cluster_count = cluster ? 1 : 0};
	enum store_table t = TABLE_EVENTS;
	char n[TEXT_PLURAL_MAX];
	uint64_t rows = 0;
	int r = find_table(table, &t, reterr);

	if (r == 0)
		r = open_store(f, path, &p, &before, &s, reterr);
	if (r == 0)
		r = store_duck_export(s, t, &scope, path, &rows, reterr);
	if (r == 0)
		printf("Wrote %s of %s to %s\n", text_format_plural(n, rows, "rows"), table, path);
	return r;
}
