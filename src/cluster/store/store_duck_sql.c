/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_sql.c - a stranger's SQL: run by a process of its own on files that hold rows of its clusters
 * only (duck/duck_worker.h): their parts, and a snapshot of their live rows.
 *
 * A snapshot has the tables that the statement may read, and serves all who ask for the same clusters and no
 * others, for as long as the same generations are alive and it is younger than SNAPSHOT_NS or nothing came since. While statements come, live rows are sealed earlier
 * (seal_is_due()): a part serves longer. Scopes of time choose parts, not rows. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mutex.h"
#include "cluster/store/store_duck_private.h"
#include "duck/duck_worker.h"

#define SNAPSHOT_NS NS_PER_S
#define KEY_MAX     (1u << 20)

struct snapshot {
	struct snapshot *next;
	char *key; /* clusters */
	size_t key_len;
	uint64_t live[2];
	unsigned tables; /* a bit for each that is in it */
	uint64_t position;
	mono_time made;
	unsigned users;
	char path[STORE_PATH_MAX];
};

struct snapshots {
	pthread_mutex_t mutex; /* also held while one is made */
	struct snapshot *first;
	uint64_t made;
};

/* ---- snapshots ---- */

/* "12.duckdb", or what DuckDB keeps beside it. */
static bool is_snapshot(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && strncmp(name + digits, ".duckdb", 7) == 0;
}

int snapshots_new(struct store_duck *s)
{
	char path[STORE_PATH_MAX + 300];
	struct dirent *e;
	DIR *d;

	s->snapshots = calloc(1, sizeof(*s->snapshots));
	if (!s->snapshots)
		return -ENOMEM;
	pthread_mutex_init(&s->snapshots->mutex, NULL);
	snprintf(path, sizeof(path), "%s/snapshots", s->folder);
	mkdir(path, 0700);
	d = opendir(path); /* what another process has left */
	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/snapshots/%s", s->folder, e->d_name);
		if (is_snapshot(e->d_name))
			unlink(path);
	}
	if (d)
		closedir(d);
	return 0;
}

static void snapshot_free(struct snapshot *n)
{
	unlink(n->path);
	free(n->key);
	free(n);
}

void snapshots_free(struct snapshots *n)
{
	while (n->first) {
		struct snapshot *next = n->first->next;

		snapshot_free(n->first);
		n->first = next;
	}
	pthread_mutex_destroy(&n->mutex);
	free(n);
	duck_worker_rest();
}

static int put_key(const struct store_scope *scope, struct buf *b)
{
	if (!scope || !scope->clusters)
		buf_puts(b, "*");
	for (size_t i = 0; scope && scope->clusters && i < scope->cluster_count; i++)
		buf_append(b, scope->clusters[i], strlen(scope->clusters[i]) + 1);
	buf_putc(b, '.'); /* no key is empty */
	return b->err;
}

/* tables_named - those that @text may read. A name that is put together in the statement needs a function that runs a
 * text, and an escape stands for any character: then it may be any table. */
static unsigned tables_named(const char *text)
{
	static const char *const any[] = {"query", "execute", "\\"};
	unsigned tables = 0;

	if (EXISTS(i, ARRAY_SIZE(any), strcasestr(text, any[i])))
		return (1u << TABLE_COUNT) - 1;
	for (int t = 0; t < TABLE_COUNT; t++)
		tables |= strcasestr(text, store_tables[t].name) ? 1u << t : 0;
	return tables;
}

static bool is_same(
	const struct snapshot *n, const struct buf *key, unsigned tables, const struct reading *r)
{
	return !(tables & ~n->tables) && n->key_len == key->len &&
	       !memcmp(n->key, key->data, key->len) && n->live[0] == r->live[0]->id &&
	       n->live[1] == r->live[r->live_count - 1]->id;
}

/* Those that are of no use any more; new ones are first in the list. */
static void drop_old(struct snapshots *all)
{
	uint64_t now = mono_now().ns;

	for (struct snapshot **p = &all->first; *p;) {
		struct snapshot *n = *p;

		if (n->users == 0 && now - n->made.ns >= SNAPSHOT_NS) {
			*p = n->next;
			snapshot_free(n);
		} else {
			p = &n->next;
		}
	}
}

static int copy_tables(struct store_duck *s, struct duck_connection *c,
	const struct store_scope *scope, struct reading *reading, const struct snapshot *n,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	struct store_scope clusters = {0};
	struct reading live = *reading;
	char question[64];
	int r = 0;

	if (scope) {
		clusters.clusters = scope->clusters;
		clusters.cluster_count = scope->cluster_count;
	}
	live.part_count = 0;
	buf_puts(&text, "BEGIN; ATTACH ");
	duck_quote(&text, n->path);
	buf_puts(&text, " AS snapshot (BLOCK_SIZE 16384);");
	for (int t = 0; r == 0 && t < TABLE_COUNT; t++) {
		if (!(n->tables & 1u << t))
			continue;
		buf_printf(&text, " CREATE TABLE snapshot.%s (", store_tables[t].name);
		put_plain_columns(&text, t);
		buf_printf(&text, "); INSERT INTO snapshot.%s ", store_tables[t].name);
		snprintf(question, sizeof(question), "SELECT * FROM {%s};", store_tables[t].name);
		r = reading_expand(&live, question, &clusters, &text, reterr);
	}
	buf_puts(&text, " COMMIT");
	r = r < 0 ? r : text.err ? text.err : duck_exec(c, buf_str(&text), reterr);
	if (r < 0)
		duck_exec(c, "ROLLBACK", NULL);
	r = r ?: duck_exec(c, "CHECKPOINT snapshot", reterr);
	duck_exec(c, "DETACH DATABASE IF EXISTS snapshot", NULL);
	return r;
}

static int snapshot_make(struct store_duck *s, const struct store_scope *scope,
	struct reading *reading, const struct buf *key, unsigned tables, struct snapshot **ret,
	struct errinfo *reterr)
{
	struct snapshot *n = calloc(1, sizeof(*n));
	struct duck_connection *c;
	int r;

	if (!n)
		return -ENOMEM;
	snprintf(n->path, sizeof(n->path), "%s/snapshots/%" PRIu64 ".duckdb", s->folder,
		++s->snapshots->made);
	n->key = malloc(key->len);
	n->tables = tables;
	n->position = reading->position;
	n->made = mono_now();
	n->live[0] = reading->live[0]->id;
	n->live[1] = reading->live[reading->live_count - 1]->id;
	r = n->key ? connection_get(s, &c, reterr) : -ENOMEM;
	if (r == 0) {
		memcpy(n->key, key->data, key->len);
		n->key_len = key->len;
		r = copy_tables(s, c, scope, reading, n, reterr);
		connection_put(s->asking, c);
	}
	if (r < 0) {
		snapshot_free(n);
		return r;
	}
	n->next = s->snapshots->first;
	s->snapshots->first = n;
	*ret = n;
	return 0;
}

static int snapshot_begin(struct store_duck *s, const struct store_scope *scope,
	struct reading *reading, unsigned tables, struct snapshot **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf key = BUF_INIT(KEY_MAX);
	struct snapshots *all = s->snapshots;
	struct snapshot *n;
	int r = put_key(scope, &key);

	if (r < 0)
		return r;
	MUTEX_HELD(&all->mutex);
	for (n = all->first; n; n = n->next)
		if (is_same(n, &key, tables, reading) &&
			(n->position == reading->position ||
				mono_now().ns - n->made.ns < SNAPSHOT_NS))
			break;
	if (!n)
		r = snapshot_make(s, scope, reading, &key, tables, &n, reterr);
	if (r == 0) {
		n->users++;
		*ret = n;
	}
	drop_old(all);
	return r;
}

/* ---- the worker ---- */

struct files {
	char (*paths)[STORE_PATH_MAX];
	const char **names;
	size_t count;
};

static int list_files(
	struct store_duck *s, const struct reading *r, const struct snapshot *n, struct files *ret)
{
	int err = 0;

	ret->paths = calloc(r->part_count + 1, sizeof(*ret->paths));
	ret->names = calloc(r->part_count + 1, sizeof(*ret->names));
	if (!ret->paths || !ret->names)
		return -ENOMEM;
	for (size_t i = 0; err == 0 && i < r->part_count; i++) {
		err = part_path(s, r->parts[i], "", ret->paths[i], NULL);
		ret->names[ret->count++] = ret->paths[i];
	}
	if (n)
		ret->names[ret->count++] = n->path;
	return err;
}

static int ask_worker(const struct files *files, const char *text,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	struct sql_guard_rules rules = {.timeout_ns = limits->timeout_ns,
		.rows_max = limits->rows_max,
		.bytes_max = limits->bytes_max};
	struct duck_worker_table tables[TABLE_COUNT];
	struct buf columns[TABLE_COUNT];
	struct duck_worker_question q = {.files = files->names,
		.file_count = files->count,
		.tables = tables,
		.table_count = TABLE_COUNT,
		.text = text};
	int r = 0;

	for (int t = 0; t < TABLE_COUNT; t++) {
		columns[t] = BUF_INIT(4096);
		put_typed_columns(&columns[t], t);
		tables[t] = (struct duck_worker_table){store_tables[t].name, buf_str(&columns[t])};
		r = r < 0 ? r : columns[t].err;
	}
	r = r ?: duck_worker_ask(&q, &rules, ret, NULL, reterr);
	if (r == -ENOMEM) /* which would be so the next time, too */
		r = errinfo_set(reterr, -ENOBUFS,
			"the statement needs more than the %u MiB of memory that one may have: group, filter or limit earlier",
			DUCK_WORKER_MEMORY >> 20);
	for (int t = 0; t < TABLE_COUNT; t++)
		buf_done(&columns[t]);
	return r;
}

static bool is_damage(int r)
{
	return r == -EBADMSG || r == -EIO || r == -EPROTO || r == -ENOENT;
}

static int sql_reading(struct store_duck *s, struct reading *reading,
	const struct store_scope *scope, const char *text, const struct store_limits *limits,
	struct sql_table *ret, struct errinfo *reterr)
{
	uint64_t began = mono_now().ns, waited;
	struct store_limits left = *limits;
	struct snapshot *n = NULL;
	struct files files = {0};
	unsigned tables = tables_named(text);
	int r = 0;

	if (reading->live_rows && tables)
		r = snapshot_begin(s, scope, reading, tables, &n, reterr);
	if (r == -ENOSPC)
		errinfo_set(reterr, r, "the disk is full: the newest rows cannot be read by SQL");
	r = r ?: list_files(s, reading, n, &files);
	waited = mono_now().ns - began; /* for others' snapshots, and its own */
	if (r == 0 && waited >= left.timeout_ns)
		r = errinfo_set(reterr, -ETIMEDOUT, "the statement timed out while it was queued");
	if (r == 0) {
		left.timeout_ns -= waited;
		r = ask_worker(&files, text, &left, ret, reterr);
		log_debug(
			"SQL: %llu ms for a copy of %llu unsealed rows, %llu ms to answer from %zu files",
			(unsigned long long)(waited / NS_PER_MS),
			(unsigned long long)reading->live_rows,
			(unsigned long long)((mono_now().ns - began - waited) / NS_PER_MS),
			files.count);
	}
	if (n) {
		pthread_mutex_lock(&s->snapshots->mutex);
		n->users--;
		drop_old(s->snapshots);
		pthread_mutex_unlock(&s->snapshots->mutex);
	}
	if (is_damage(r))
		reading_suspect(s, reading);
	free(files.paths);
	free(files.names);
	return r;
}

/* A part that turns out to be damaged is set aside, and the rest answers, within the same time. */
int ask_sql(struct store *store, const struct store_scope *scope, const char *text,
	const struct store_limits *given, struct sql_table *ret, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	struct store_limits limits = given ? *given : STORE_LIMITS;
	uint64_t until = mono_now().ns + limits.timeout_ns, now;
	int r;

	/* While strangers ask, there are few live rows: the thread that fills seals them, and nobody waits for it. */
	pthread_mutex_lock(&s->set_mutex);
	s->sql_asked = mono_now();
	pthread_mutex_unlock(&s->set_mutex);
	for (int tries = 0;; tries++) {
		now = mono_now().ns;
		if (now >= until)
			return errinfo_set(
				reterr, -ETIMEDOUT, "the statement timed out while it was queued");
		limits.timeout_ns = until - now;
		r = ask_once(s, sql_reading, scope, text, &limits, ret, reterr);
		if (!is_damage(r) || tries)
			return r;
		suspects_check(s);
	}
}
