/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_part.c - parts: files that hold the rows of one cluster, written once.
 *
 * A part is written under a temporary name as a database that is attached for it, detached, synced and
 * renamed. Its folder is named after the cluster, as far as that makes a name, and a hash of it. */
#include <ctype.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"
#include "cluster/store/store_duck_private.h"

#define FOLDER_TEXT_MAX 40
#define FOLDER_HASH     16
#define SMALL_ROWS      20000 /* below: small blocks, 0.5 MB a file and not 1.8 */

void part_free(struct part *p)
{
	free(p->cluster);
	free(p);
}

int parts_add(struct parts *p, struct part *part)
{
	int r = ARRAY_RESERVE(p->items, p->room, p->count + 1, STORE_PARTS_MAX);

	if (r == 0)
		p->items[p->count++] = part;
	return r;
}

int parts_insert(struct parts *p, struct part *part)
{
	int r = parts_add(p, part);

	for (size_t i = p->count - 1; r == 0 && i > 0; i--) {
		if (p->items[i - 1]->first <= part->first)
			break;
		p->items[i] = p->items[i - 1];
		p->items[i - 1] = part;
	}
	return r;
}

struct part *part_copy(const struct part *p)
{
	struct part *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *p;
	copy->users = 0;
	copy->gone = copy->suspect = false;
	copy->cluster = strdup(p->cluster);
	if (!copy->cluster) {
		free(copy);
		return NULL;
	}
	return copy;
}

uint64_t part_rows(const struct part *p)
{
	uint64_t n = 0;

	for (int t = 0; t < TABLE_COUNT; t++)
		n += t == TABLE_METRICS ? 0 : p->rows[t];
	return n;
}

void part_damaged_path(
	const struct store_duck *s, const struct part *p, char out[STORE_PATH_MAX + 64])
{
	snprintf(out, STORE_PATH_MAX + 64, "%s/" STORE_DAMAGED_NAME "/%s-%06" PRIu64 ".duckdb",
		s->folder, p->folder, p->id);
}

int part_check(const struct store_duck *s, const struct part *p, char why[PART_WHY_MAX])
{
	char path[STORE_PATH_MAX], sum[DIGEST_HEX];
	struct stat st;
	int r = part_path(s, p, "", path, NULL);

	if (r < 0)
		return r;
	if (stat(path, &st) < 0) {
		snprintf(why, PART_WHY_MAX, "%s", strerror(errno));
		return errno == ENOENT ? 1 : -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, PART_WHY_MAX, "it is not a regular file");
		return 1;
	}
	if ((uint64_t)st.st_size != p->bytes) {
		snprintf(why, PART_WHY_MAX, "it has %llu bytes and not %llu",
			(unsigned long long)st.st_size, (unsigned long long)p->bytes);
		return 1;
	}
	r = digest_sha256_file(path, sum);
	if (r == -EIO)
		snprintf(why, PART_WHY_MAX, "the disk cannot read it: %s", strerror(-r));
	else if (r < 0)
		return r;
	else if (strcmp(sum, p->sha256) != 0)
		snprintf(why, PART_WHY_MAX, "its SHA-256 differs from the recorded one");
	else
		return 0;
	return 1;
}

void parts_done(struct parts *p)
{
	for (size_t i = 0; i < p->count; i++)
		part_free(p->items[i]);
	free(p->items);
	*p = (struct parts){0};
}

static void name_folder(const char *cluster, char out[PART_FOLDER_MAX])
{
	char hash[DIGEST_HEX];
	size_t n = 0;

	for (; cluster[n] && n < FOLDER_TEXT_MAX; n++)
		out[n] = isalnum((unsigned char)cluster[n]) || cluster[n] == '_' ? cluster[n] : '-';
	if (digest_sha256(cluster, strlen(cluster), hash) < 0)
		memset(hash, '0', sizeof(hash)); /* without memory nothing else works either */
	snprintf(out + n, PART_FOLDER_MAX - n, "-%.*s", FOLDER_HASH, hash);
}

bool part_folder_is(const char *name)
{
	size_t len = strlen(name);

	return len > FOLDER_HASH && name[len - FOLDER_HASH - 1] == '-' &&
	       strspn(name + len - FOLDER_HASH, "0123456789abcdef") == FOLDER_HASH;
}

int part_path(const struct store_duck *s, const struct part *p, const char *suffix,
	char out[STORE_PATH_MAX], struct errinfo *reterr)
{
	int n = snprintf(out, STORE_PATH_MAX, "%s/%s/%06" PRIu64 ".duckdb%s", s->folder, p->folder,
		p->id, suffix);

	return n < STORE_PATH_MAX
		       ? 0
		       : errinfo_set(reterr, -ENAMETOOLONG, "the name of the store is too long");
}

int part_attach(struct store_duck *s, struct duck_connection *c, const struct part *p,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	char path[STORE_PATH_MAX], alias[STORE_ALIAS_MAX];
	int r = part_path(s, p, "", path, reterr);

	if (r < 0)
		return r;
	buf_puts(&text, "ATTACH ");
	duck_quote(&text, path);
	buf_printf(&text, " AS %s (READ_ONLY)", part_alias(p, alias));
	return duck_exec(c, buf_str(&text), reterr);
}

int parts_strange(struct duck_connection *c, char ret[STORE_ALIAS_MAX], struct errinfo *reterr)
{
	static const struct duck_limits limits = {.rows_max = 1, .bytes_max = 4096};
	struct sql_table found;
	int r = duck_select(c,
		"SELECT name FROM (SELECT database_name AS name FROM duckdb_views() WHERE NOT internal UNION ALL "
		"SELECT database_name FROM duckdb_tables() WHERE contains(lower(sql), 'generated always')) "
		"WHERE regexp_full_match(name, '(p|saved)[0-9]+') LIMIT 1",
		&limits, &found, reterr);

	if (r < 0)
		return r;
	r = found.row_count > 0;
	if (r)
		snprintf(ret, STORE_ALIAS_MAX, "%s",
			sql_table_bytes(&found, sql_table_cell(&found, 0, 0)));
	sql_table_done(&found);
	return r;
}

/* ---- writing ---- */

struct writing {
	struct store_duck *s;
	struct part *part;
	const char *const *sources;
	size_t source_count;
	bool derive;
	char tmp[STORE_PATH_MAX];
};

static void put_sources(struct buf *b, const struct writing *w, enum store_table t)
{
	for (size_t i = 0; i < w->source_count; i++) {
		buf_printf(b, "%sSELECT * FROM %s.%s", i ? " UNION ALL BY NAME " : "",
			w->sources[i], store_tables[t].name);
		buf_puts(b, " WHERE cluster_id = ");
		duck_quote(b, w->part->cluster);
	}
}

static void put_metrics(struct buf *b, const struct writing *w)
{
	if (w->derive) {
		put_node_metrics(b, "w.events");
		return;
	}
	buf_puts(b,
		"SELECT bucket_ns, cluster_id, node_id, metric_name, kind, "
		"CAST(sum(count) AS BIGINT) AS count, min(min) AS min, max(max) AS max, "
		"sum(sum) AS sum, arg_max(last, last_ns) AS last, max(last_ns) AS last_ns FROM (");
	put_sources(b, w, TABLE_METRICS);
	buf_puts(b, ") GROUP BY bucket_ns, cluster_id, node_id, metric_name, kind");
}

static int write_table(struct writing *w, enum store_table t, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);

	buf_printf(&text, "CREATE TABLE w.%s AS SELECT * FROM (", store_tables[t].name);
	if (t == TABLE_METRICS)
		put_metrics(&text, w);
	else
		put_sources(&text, w, t);
	buf_printf(&text, ") ORDER BY %s", part_order[t]);
	return text.err ? text.err : duck_exec(w->s->write, buf_str(&text), reterr);
}

/* How many rows, their times, when the newest came in. */
static int count_table(struct writing *w, enum store_table t, struct errinfo *reterr)
{
	static const struct duck_limits limits = {.rows_max = 1, .bytes_max = 4096};
	const struct table_desc *d = &store_tables[t];
	struct part *p = w->part;
	struct sql_table found;
	char text[256];
	int r;

	snprintf(text, sizeof(text), "SELECT count(*), min(%s), max(%s), max(%s) FROM w.%s",
		d->columns[d->time].name, d->columns[d->time].name,
		t == TABLE_METRICS ? "last_ns" : "recv_ns", d->name);
	r = duck_select(w->s->write, text, &limits, &found, reterr);
	if (r < 0)
		return r;
	p->rows[t] = (uint64_t)sql_table_int(&found, 0, 0);
	p->first_ns[t] = sql_table_int(&found, 0, 1);
	p->last_ns[t] = sql_table_int(&found, 0, 2);
	if (t != TABLE_METRICS)
		p->received_ns = MAX(p->received_ns, sql_table_int(&found, 0, 3));
	sql_table_done(&found);
	return 0;
}

static int attach_new(struct writing *w, size_t rows, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);

	buf_puts(&text, "ATTACH ");
	duck_quote(&text, w->tmp);
	buf_printf(&text, " AS w%s", rows < SMALL_ROWS ? " (BLOCK_SIZE 16384)" : "");
	return duck_exec(w->s->write, buf_str(&text), reterr);
}

/* In one transaction: each would write its rows to the log of the file, too, and sync that. */
static int write_tables(struct writing *w, struct errinfo *reterr)
{
	int r = duck_exec(w->s->write, "BEGIN", reterr);

	if (r < 0)
		return r;
	for (int t = 0; r == 0 && t < TABLE_COUNT; t++) { /* events are the first of them */
		r = write_table(w, t, reterr);
		r = r ?: count_table(w, t, reterr);
	}
	r = r ?: duck_exec(w->s->write, "COMMIT", reterr);
	if (r < 0)
		duck_exec(w->s->write, "ROLLBACK", NULL);
	return r ?: duck_exec(w->s->write, "CHECKPOINT w", reterr);
}

static int finish_file(struct writing *w, struct errinfo *reterr)
{
	char path[STORE_PATH_MAX], folder[STORE_PATH_MAX];
	struct stat st;
	int r = part_path(w->s, w->part, "", path, reterr);

	if (r < 0)
		return r;
	snprintf(folder, sizeof(folder), "%s/%s", w->s->folder, w->part->folder);
	r = file_sync(w->tmp);
	r = r ?: digest_sha256_file(w->tmp, w->part->sha256);
	if (r == 0 && (stat(w->tmp, &st) < 0 || rename(w->tmp, path) < 0))
		r = -errno;
	r = r ?: file_sync(folder);
	if (r < 0)
		return errinfo_set(reterr, r, "%s cannot be finished: %s", path, strerror(-r));
	w->part->bytes = (uint64_t)st.st_size;
	store_duck_at("part written");
	return 0;
}

static int write_file(struct writing *w, size_t rows, struct errinfo *reterr)
{
	int r = attach_new(w, rows, reterr), detached;

	if (r < 0)
		return r;
	store_duck_at("part begun");
	r = write_tables(w, reterr);
	detached = duck_exec(w->s->write, "DETACH w", r == 0 ? reterr : NULL);
	r = r < 0 ? r : detached;
	return r ?: finish_file(w, reterr);
}

static int make_folder(struct store_duck *s, const struct part *p, struct errinfo *reterr)
{
	char path[STORE_PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/%s", s->folder, p->folder);
	if (mkdir(path, 0700) == 0)
		r = file_sync(s->folder);
	else
		r = errno == EEXIST ? 0 : -errno;
	return r == 0 ? 0 : errinfo_set(reterr, r, "%s cannot be made: %s", path, strerror(-r));
}

static void remove_tmp(const char *tmp)
{
	char wal[STORE_PATH_MAX + 8];

	snprintf(wal, sizeof(wal), "%s.wal", tmp);
	unlink(wal);
	unlink(tmp);
}

int part_write(struct store_duck *s, const char *cluster, const char *const *sources,
	size_t source_count, size_t rows, bool derive, struct part **ret, struct errinfo *reterr)
{
	_cleanup_(part_freep) struct part *p = calloc(1, sizeof(*p));
	struct writing w = {s, p, sources, source_count, derive, ""};
	struct ask all = {.connection = s->write, .deadline_ns = UINT64_MAX};
	int r;

	if (!p || !(p->cluster = strdup(cluster)))
		return -ENOMEM;
	p->id = s->next_id++;
	name_folder(cluster, p->folder);
	r = make_folder(s, p, reterr);
	r = r ?: part_path(s, p, ".tmp", w.tmp, reterr);
	if (r < 0)
		return r;
	if (atomic_load(&s->is_hurried))
		return -ECANCELED;
	remove_tmp(w.tmp);
	ask_begin(s->asking, &all);
	r = write_file(&w, rows, reterr);
	ask_end(s->asking, &all);
	if (r < 0) {
		remove_tmp(w.tmp);
		return r;
	}
	*ret = TAKE(p);
	return 0;
}
