/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_repair.c - what is missing, from where it still is: the same file of a backup, known by its sum; or
 * pieces by the journal's positions: parts of a backup that were merged since, and entries that the journal has.
 * Counts tell: nothing is there twice, and what is gone stays missing. */
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

/* take_back - @p, whose file is in its place, is the store's instead of @missing; @rest, if there is one, is
 * what stays missing of it. All three are taken. 1, or a failure. */
static int take_back(struct repairing *x, struct part *missing, struct part *p, struct part *rest,
	struct errinfo *reterr)
{
	struct parts add = {0};
	struct change change = {.add = &add, .found = missing, .missing = rest};
	char path[STORE_PATH_MAX + 64];
	int r = part_attach(x->s, x->s->write, p, reterr);

	r = r ?: parts_add(&add, p);
	r = r ?: set_change(x->s, &change, reterr);
	if (r < 0) {
		if (!add.count)
			part_free(p);
		part_freep(&rest);
	}
	parts_done(&add);
	if (r < 0)
		return r;
	part_damaged_path(x->s, missing, path);
	if (!rest)
		unlink(path);
	part_free(missing);
	x->back++;
	return 1;
}

/* ---- a backup ---- */

static const struct part *find_saved(const struct repairing *x, const struct part *missing)
{
	for (size_t i = 0; i < x->saved.parts.count; i++)
		if (*missing->sha256 && !strcmp(x->saved.parts.items[i]->sha256, missing->sha256))
			return x->saved.parts.items[i];
	return NULL;
}

static int copy_saved(struct repairing *x, const struct part *saved, const struct part *missing)
{
	char from[STORE_PATH_MAX], tmp[STORE_PATH_MAX], path[STORE_PATH_MAX];
	char folder[STORE_PATH_MAX + PART_FOLDER_MAX], sum[DIGEST_HEX];
	int r = part_path(x->s, missing, "", path, NULL);

	r = r ?: part_path(x->s, missing, ".tmp", tmp, NULL);
	if (r < 0)
		return r;
	snprintf(from, sizeof(from), "%s/%s/%06" PRIu64 ".duckdb", x->backup, saved->folder,
		saved->id);
	snprintf(folder, sizeof(folder), "%s/%s", x->s->folder, missing->folder);
	mkdir(folder, 0700);
	unlink(tmp);
	r = store_copy_file(from, tmp);
	r = r ?: digest_sha256_file(tmp, sum);
	if (r == 0 && strcmp(sum, missing->sha256) != 0)
		r = -EBADMSG;
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r ?: file_sync(folder);
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
	report_missing(x->report, p, "restored from the backup");
	return take_back(x, missing, p, NULL, reterr);
}

/* ---- pieces ---- */

#define PIECES_MAX 64

struct pieces {
	const struct part *saved[PIECES_MAX]; /* of the backup, in the order of the journal */
	size_t count;
	struct buf rows; /* of the journal's entries between them */
	bool whole;      /* nothing is left out */
};

/* A file of the backup is only of use if it is whole. */
static bool is_piece(
	const struct repairing *x, const struct part *saved, const struct part *missing)
{
	const struct store_duck backup = {.folder = (char *)x->backup};
	char why[PART_WHY_MAX];

	return saved->first && saved->first >= missing->first && saved->last <= missing->last &&
	       !strcmp(saved->cluster, missing->cluster) && part_check(&backup, saved, why) == 0;
}

/* Rows of entries @first to @last; if the journal does not have all of them, they are left out. */
static int add_rows(struct repairing *x, const struct part *missing, uint64_t first, uint64_t last,
	struct pieces *p)
{
	size_t before = p->rows.len;
	int r;

	if (first > last)
		return 0;
	r = x->source ? x->source(x->arg, missing->cluster, first, last, &p->rows) : -ENODATA;
	if (r == -ENODATA) {
		p->rows.len = before;
		p->whole = false;
		r = 0;
	}
	return r ?: p->rows.err;
}

static int find_pieces(struct repairing *x, const struct part *missing, struct pieces *p)
{
	bool is_ours = x->backup && !strcmp(x->saved.id, x->s->id);
	uint64_t next = missing->first;
	int r = 0;

	p->whole = true;
	for (size_t i = 0; is_ours && r == 0 && i < x->saved.parts.count; i++) {
		const struct part *saved = x->saved.parts.items[i];

		if (p->count == PIECES_MAX || saved->first < next || !is_piece(x, saved, missing))
			continue;
		r = add_rows(x, missing, next, saved->first - 1, p);
		p->saved[p->count++] = saved;
		next = saved->last + 1;
	}
	return r ?: add_rows(x, missing, next, missing->last, p);
}

static int attach_saved(
	struct repairing *x, const struct part *saved, const char *alias, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	char path[STORE_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%06" PRIu64 ".duckdb", x->backup, saved->folder,
		saved->id);
	buf_puts(&text, "ATTACH ");
	duck_quote(&text, path);
	buf_printf(&text, " AS %s (READ_ONLY)", alias);
	return duck_exec(x->s->write, buf_str(&text), reterr);
}

static int write_pieces(struct repairing *x, const struct part *missing, const struct pieces *p,
	struct part **ret, struct errinfo *reterr)
{
	char aliases[PIECES_MAX + 1][STORE_ALIAS_MAX], text[STORE_ALIAS_MAX + 32];
	char strange[STORE_ALIAS_MAX];
	const char *sources[PIECES_MAX + 1];
	struct generation *g = NULL;
	int r = generation_new(x->s, x->s->write, x->s->next_id++, &g, reterr);

	if (r < 0)
		return r;
	sources[0] = generation_alias(g, aliases[0]);
	r = live_fill(x->s->write, g, &p->rows, reterr);
	for (size_t i = 0; i < p->count; i++) {
		snprintf(aliases[i + 1], STORE_ALIAS_MAX, "saved%zu", i);
		sources[i + 1] = aliases[i + 1];
		r = r ?: attach_saved(x, p->saved[i], sources[i + 1], reterr);
	}
	r = r ?: parts_strange(x->s->write, strange, reterr);
	if (r == 1)
		r = errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"a part of %s was not written by this program: " PART_STRANGE, x->backup);
	r = r
		    ?: part_write(x->s, missing->cluster, sources, p->count + 1, part_rows(missing),
			       true, ret, reterr);
	for (size_t i = 0; i <= p->count; i++) {
		snprintf(text, sizeof(text), "DETACH DATABASE IF EXISTS %s", sources[i]);
		duck_exec(x->s->write, text, NULL);
	}
	free(g);
	return r;
}

/* What of @missing is not in @p, which stays missing. It has holes, so that no positions and no sum are its. */
static struct part *make_rest(const struct part *missing, const struct part *p)
{
	struct part *rest = part_copy(missing);

	if (!rest)
		return NULL;
	for (int t = 0; t < TABLE_COUNT; t++)
		rest->rows[t] -= MIN(rest->rows[t], p->rows[t]);
	rest->first = rest->last = 0;
	rest->sha256[0] = 0;
	return rest;
}

/* Whether these are rows that it had: none is better than a wrong one. */
static bool is_likely(const struct part *written, const struct part *missing, bool whole)
{
	for (int t = 0; t < TABLE_COUNT; t++)
		if (t != TABLE_METRICS && (written->rows[t] > missing->rows[t] ||
						  (whole && written->rows[t] != missing->rows[t])))
			return false;
	return part_rows(written) > 0;
}

/* 1: it is back, at least in part; 0: neither has any of it. */
static int from_pieces(struct repairing *x, struct part *missing, struct errinfo *reterr)
{
	struct pieces p = {.rows = BUF_INIT(STORE_REPAIR_MAX)};
	struct part *written = NULL, *rest = NULL;
	char path[STORE_PATH_MAX];
	int r = missing->first ? find_pieces(x, missing, &p) : 0;

	if (r == 0 && (p.count || p.rows.len))
		r = write_pieces(x, missing, &p, &written, reterr);
	buf_done(&p.rows);
	if (r < 0 || !written)
		return r == -ENOBUFS ? 0 : r;
	if (!p.whole)
		rest = make_rest(missing, written);
	if (!is_likely(written, missing, p.whole) || (!p.whole && !rest)) {
		if (part_path(x->s, written, "", path, NULL) == 0)
			unlink(path);
		part_free(written);
		part_freep(&rest);
		return 0;
	}
	if (p.whole) {
		written->first = missing->first;
		written->last = missing->last;
	}
	report_missing(x->report, written,
		p.count ? "restored from the backup and the journal" : "restored from the journal");
	return take_back(x, missing, written, rest, reterr);
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
		r = r ?: from_pieces(x, missing, reterr);
		if (r == 0) {
			report_missing(x->report, missing, "gone");
			i++;
		}
	}
	for (size_t k = 0; k < s->losses.count; k++)
		report_loss(x->report, &s->losses.items[k]);
	return r < 0 ? r : 0;
}

int store_duck_repair(struct store *store, const char *backup, store_source *source, void *arg,
	struct store_report *report, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	struct repairing x = {
		.s = s, .backup = backup, .source = source, .arg = arg, .report = report};
	struct store_missing left;
	int r = backup ? manifest_read(backup, &x.saved, reterr) : 0;

	if (r == -ENOENT)
		return errinfo_set_exit(
			reterr, EXIT_NO_INPUT, r, "%s is not a backup: it has no manifest", backup);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; i < s->parts.count; i++)
		s->parts.items[i]->suspect = true;
	pthread_mutex_unlock(&s->set_mutex);
	suspects_check(s);
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
		"%s and %s are gone: %s", TEXT_PLURAL(left.rows, "rows"),
		TEXT_PLURAL(left.requests, "requests"),
		backup ? "neither the backup nor the journal has them"
		       : "the journal does not have them; name a backup that may");
}
