/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_repair.c - what is missing, from where it still is: the same file of a backup, known by its sum, or
 * the journal entries that its rows came in, as long as it has all of them. Rows come back as a whole part or not
 * at all: nothing is there twice, and what is gone stays counted. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "cluster/store/store_duck_private.h"

struct repairing {
	struct store_duck *s;
	const char *backup;
	struct manifest saved; /* of the backup */
	store_source *source;
	void *arg;
	struct store_report *report;
	uint64_t back; /* parts */
};

/* take_back - @p, whose file is in its place, is the store's again; *p is taken. */
static int take_back(
	struct repairing *x, struct part *missing, struct part *p, struct errinfo *reterr)
{
	struct parts add = {0};
	struct change change = {.add = &add, .found = missing};
	char path[STORE_PATH_MAX + 64];
	int r = part_attach(x->s, x->s->write, p, reterr);

	if (r == 0)
		r = parts_add(&add, p);
	if (r == 0)
		r = set_change(x->s, &change, reterr);
	if (r < 0 && !add.count)
		part_free(p);
	parts_done(&add);
	if (r < 0)
		return r;
	part_damaged_path(x->s, missing, path);
	unlink(path);
	part_free(missing);
	x->back++;
	return 1;
}

/* ---- a backup ---- */

static const struct part *find_saved(const struct repairing *x, const struct part *missing)
{
	for (size_t i = 0; i < x->saved.parts.count; i++)
		if (!strcmp(x->saved.parts.items[i]->sha256, missing->sha256))
			return x->saved.parts.items[i];
	return NULL;
}

static int copy_saved(struct repairing *x, const struct part *saved, const struct part *missing)
{
	char from[STORE_PATH_MAX], tmp[STORE_PATH_MAX], path[STORE_PATH_MAX];
	char folder[STORE_PATH_MAX + PART_FOLDER_MAX], sum[DIGEST_HEX];
	int r = part_path(x->s, missing, "", path, NULL);

	if (r == 0)
		r = part_path(x->s, missing, ".tmp", tmp, NULL);
	if (r < 0)
		return r;
	snprintf(from, sizeof(from), "%s/%s/%06" PRIu64 ".duckdb", x->backup, saved->folder,
		saved->id);
	snprintf(folder, sizeof(folder), "%s/%s", x->s->folder, missing->folder);
	mkdir(folder, 0700);
	unlink(tmp);
	r = store_copy_file(from, tmp);
	if (r == 0)
		r = digest_sha256_file(tmp, sum);
	if (r == 0 && strcmp(sum, missing->sha256) != 0)
		r = -EBADMSG;
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r == 0 ? file_sync(folder) : r;
}

/* 1: it is back; 0: the backup does not have it. */
static int from_backup(struct repairing *x, struct part *missing, struct errinfo *reterr)
{
	const struct part *saved = find_saved(x, missing);
	struct part *p;
	int r = saved ? copy_saved(x, saved, missing) : -ENOENT;

	if (r == -ENOENT || r == -EBADMSG || r == -EIO)
		return 0;
	if (r < 0)
		return errinfo_set(reterr, r, "part %" PRIu64 " cannot be copied from %s: %s",
			missing->id, x->backup, strerror(-r));
	p = part_copy(missing);
	if (!p)
		return -ENOMEM;
	p->why[0] = 0;
	report_missing(x->report, p, "brought back from the backup");
	return take_back(x, missing, p, reterr);
}

/* ---- the journal ---- */

static int write_rows(struct repairing *x, const struct part *missing, const struct buf *rows,
	struct part **ret, struct errinfo *reterr)
{
	struct store_duck *s = x->s;
	struct generation *g = NULL;
	char alias[STORE_ALIAS_MAX], text[STORE_ALIAS_MAX + 16];
	const char *source = alias;
	int r = generation_new(s, s->write, s->next_id++, &g, reterr);

	if (r < 0)
		return r;
	generation_alias(g, alias);
	r = live_fill(s->write, g, rows, reterr);
	if (r == 0)
		r = part_write(
			s, missing->cluster, &source, 1, part_rows(missing), true, ret, reterr);
	snprintf(text, sizeof(text), "DETACH %s", alias);
	duck_exec(s->write, text, NULL);
	free(g);
	return r;
}

static int from_journal(struct repairing *x, struct part *missing, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf rows = BUF_INIT(STORE_REPAIR_MAX);
	char path[STORE_PATH_MAX];
	struct part *p = NULL;
	int r = -ENODATA;

	if (missing->first && x->source)
		r = x->source(x->arg, missing->cluster, missing->first, missing->last, &rows);
	if (r == 0)
		r = rows.err == -ENOBUFS ? -ENODATA : rows.err;
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	r = write_rows(x, missing, &rows, &p, reterr);
	if (r < 0)
		return r;
	p->first = missing->first;
	p->last = missing->last;
	if (part_rows(p) != part_rows(missing)) {
		if (part_path(x->s, p, "", path, NULL) == 0)
			unlink(path);
		part_free(p);
		return 0;
	}
	report_missing(x->report, p, "brought back from the journal");
	return take_back(x, missing, p, reterr);
}

/* ---- all of it ---- */

static int repair_missing(struct repairing *x, struct errinfo *reterr)
{
	struct store_duck *s = x->s;
	size_t i = 0;
	int r = 0;

	while (r >= 0 && i < s->missing.count) {
		struct part *missing = s->missing.items[i];

		r = x->backup ? from_backup(x, missing, reterr) : 0;
		if (r == 0)
			r = from_journal(x, missing, reterr);
		if (r == 0) {
			report_missing(x->report, missing, "gone");
			i++;
		}
	}
	for (size_t k = 0; k < s->losses.count; k++)
		report_loss(x->report, &s->losses.items[k]);
	return r < 0 ? r : 0;
}

static void check_all(struct store_duck *s)
{
	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; i < s->parts.count; i++)
		s->parts.items[i]->suspect = true;
	pthread_mutex_unlock(&s->set_mutex);
	suspects_check(s);
}

int store_duck_repair(struct store *store, const char *backup, store_source *source, void *arg,
	struct store_report *report, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	struct repairing x = {
		.s = s, .backup = backup, .source = source, .arg = arg, .report = report};
	struct store_missing left;
	char rows[TEXT_PLURAL_MAX], requests[TEXT_PLURAL_MAX];
	int r = backup ? manifest_read(backup, &x.saved, reterr) : 0;

	if (r == -ENOENT)
		return errinfo_set_exit(
			reterr, EXIT_NO_INPUT, r, "%s is no backup: it has no manifest", backup);
	if (r < 0)
		return r;
	check_all(s);
	pthread_mutex_lock(&s->write_mutex);
	r = instance_use(s, reterr);
	if (r == 0) {
		r = repair_missing(&x, reterr);
		instance_leave(s);
	}
	pthread_mutex_unlock(&s->write_mutex);
	manifest_done(&x.saved);
	if (r < 0)
		return r;
	store_missing(store, NULL, &left);
	if (!left.parts && !left.requests)
		return 0;
	return errinfo_set_exit(reterr, x.back ? EXIT_PARTIAL : EXIT_BAD_DATA, -EBADMSG,
		"%s and %s are gone: %s", text_format_plural(rows, left.rows, "rows"),
		text_format_plural(requests, left.requests, "requests"),
		backup ? "neither the backup nor the journal has them"
		       : "the journal does not have them; name a backup that may");
}
