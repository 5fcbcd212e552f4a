/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_verify.c - whether a folder holds what its manifest says: sums, rows, clusters. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cluster/store/store_duck_private.h"

#define SUMS_MAX (64u << 20)

static int check_sum(const char *path, const char *want, struct errinfo *reterr)
{
	char sum[DIGEST_HEX];
	int r = digest_sha256_file(path, sum);

	if (r < 0)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG, "%s cannot be read: %s",
			path, strerror(-r));
	if (strcmp(sum, want) != 0)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"%s is damaged: its SHA-256 is not the one that was noted", path);
	return 0;
}

/* The list of a backup; a store that is in use has none. */
static int check_sums(const char *folder, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(SUMS_MAX);
	char path[STORE_PATH_MAX + 512];
	char *line, *rest;
	int r;

	snprintf(path, sizeof(path), "%s/SHA256SUMS", folder);
	r = file_read(path, SUMS_MAX, &text);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return errinfo_set(reterr, r, "%s cannot be read: %s", path, strerror(-r));
	rest = text.data;
	while (r == 0 && rest && (line = strsep(&rest, "\n")) && *line) {
		if (strlen(line) < DIGEST_HEX + 2 || strstr(line, ".."))
			return errinfo_set_exit(
				reterr, EXIT_BAD_DATA, -EBADMSG, "%s is damaged", path);
		line[DIGEST_HEX - 1] = 0;
		snprintf(path, sizeof(path), "%s/%.500s", folder, line + DIGEST_HEX + 1);
		r = check_sum(path, line, reterr);
	}
	return r;
}

static int64_t first_number(struct duck_connection *c, const char *text, struct errinfo *reterr)
{
	static const struct duck_limits limits = {.rows_max = 1, .bytes_max = 4096};
	struct sql_table t;
	int64_t n;
	int r = duck_select(c, text, &limits, &t, reterr);

	if (r < 0)
		return r;
	n = sql_table_cell(&t, 0, 0)->i;
	sql_table_done(&t);
	return n;
}

/* Every table has its rows, and all are of the part's cluster. */
static int check_tables(struct duck_connection *c, const struct part *p, struct errinfo *reterr)
{
	for (int t = 0; t < TABLE_COUNT; t++) {
		_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
		char alias[STORE_ALIAS_MAX];
		int64_t n;

		buf_printf(&text,
			"SELECT count(*) FROM %s.%s WHERE cluster_id = ", part_alias(p, alias),
			store_tables[t].name);
		duck_quote(&text, p->cluster);
		buf_printf(&text, " AND (SELECT count(*) FROM %s.%s) = %" PRIu64, alias,
			store_tables[t].name, p->rows[t]);
		n = first_number(c, buf_str(&text), reterr);
		if (n < 0)
			return (int)n;
		if ((uint64_t)n != p->rows[t])
			return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
				"part %" PRIu64
				" of cluster %.60s has other %s than the manifest says",
				p->id, p->cluster, store_tables[t].name);
	}
	return 0;
}

static int check_part(struct store_duck *s, struct duck_connection *c, const struct part *p,
	struct errinfo *reterr)
{
	char path[STORE_PATH_MAX], text[STORE_ALIAS_MAX + 16], alias[STORE_ALIAS_MAX];
	int r = part_path(s, p, "", path, reterr);

	if (r == 0)
		r = check_sum(path, p->sha256, reterr);
	if (r == 0)
		r = part_attach(s, c, p, reterr);
	if (r < 0)
		return r;
	r = check_tables(c, p, reterr);
	snprintf(text, sizeof(text), "DETACH %s", part_alias(p, alias));
	duck_exec(c, text, NULL);
	return r;
}

static int check_parts(struct store_duck *s, struct errinfo *reterr)
{
	_cleanup_(duck_closep) struct duck *d = NULL;
	_cleanup_(duck_disconnectp) struct duck_connection *c = NULL;
	int r = duck_open(NULL, NULL, &d, reterr);

	if (r == 0)
		r = duck_connect(d, &c, reterr);
	for (size_t i = 0; r == 0 && i < s->parts.count; i++)
		r = check_part(s, c, s->parts.items[i], reterr);
	return r;
}

/* A backup has no lock, and may lie where nothing can be written. */
static int lock_if_store(const char *folder, int *ret_fd, struct errinfo *reterr)
{
	char path[STORE_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/lock", folder);
	if (access(path, F_OK) < 0)
		return 0;
	fd = store_lock(folder, reterr);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int store_duck_verify(const char *folder, struct errinfo *reterr)
{
	_cleanup_fd_ int lock = -1;
	_cleanup_free_ char *name = strdup(folder);
	struct store_duck s = {.folder = name};
	struct manifest m = {0};
	int r;

	if (!name)
		return -ENOMEM;
	r = lock_if_store(folder, &lock, reterr);
	if (r == 0)
		r = check_sums(folder, reterr);
	if (r == 0)
		r = manifest_read(folder, &m, reterr);
	if (r == -ENOENT)
		return errinfo_set_exit(
			reterr, EXIT_NO_INPUT, r, "%s is no store: it has no manifest", folder);
	s.parts = m.parts;
	if (r == 0)
		r = check_parts(&s, reterr);
	parts_done(&s.parts);
	return r;
}
