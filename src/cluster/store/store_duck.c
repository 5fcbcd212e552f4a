/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck.c - the DuckDB store as a whole: opened, closed, counted. See store_duck.h. */
#include "cluster/store/store_duck.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cluster/store/store_duck_private.h"

#define MEMORY_BYTES   (512ull << 20)
#define SEAL_ROWS      250000
#define SEAL_NS        (60 * NS_PER_S)
#define PART_BYTES_MAX (512ull << 20)
#define PENDING_MAX    (192u << 20)
#define SCRUB_BYTES_S                                                                              \
	(16ull << 20) /* 1 % of a core, and of no disk much; a terabyte takes 18 hours */

static void nothing_at(const char *place)
{
	(void)place;
}

void (*store_duck_at)(const char *place) = nothing_at;

/* ---- what a crash left behind ---- */

static bool is_named(const struct store_duck *s, const char *folder, const char *file)
{
	for (size_t i = 0; i < s->parts.count; i++) {
		const struct part *p = s->parts.items[i];

		if (!strcmp(p->folder, folder) &&
			!strcmp(FORMATTED(64, "%06" PRIu64 ".duckdb", p->id), file))
			return true;
	}
	return false;
}

/* Calls @fn for the files of each folder of parts; how many there are. */
static size_t each_part_file(struct store_duck *s,
	void (*fn)(struct store_duck *s, const char *folder, const char *file))
{
	DIR *folders = opendir(s->folder);
	struct dirent *e, *f;
	size_t count = 0;

	while (folders && (e = readdir(folders))) {
		DIR *files;

		if (!part_folder_is(e->d_name))
			continue;
		files = opendir(FORMATTED(STORE_PATH_MAX + 256, "%s/%s", s->folder, e->d_name));
		while (files && (f = readdir(files)))
			if (strstr(f->d_name, ".duckdb")) {
				count++;
				if (fn)
					fn(s, e->d_name, f->d_name);
			}
		if (files)
			closedir(files);
	}
	if (folders)
		closedir(folders);
	return count;
}

static void remove_unnamed(struct store_duck *s, const char *folder, const char *file)
{
	if (is_named(s, folder, file))
		return;
	unlink(FORMATTED(STORE_PATH_MAX + 512, "%s/%s/%s", s->folder, folder, file));
}

/* ---- opening ---- */

static int64_t newest_received(const struct store_duck *s)
{
	int64_t newest = 0;

	for (size_t i = 0; i < s->parts.count; i++)
		newest = MAX(newest, s->parts.items[i]->received_ns);
	return newest;
}

static int read_manifest(struct store_duck *s, struct errinfo *reterr)
{
	struct manifest m = {.next_id = 1};
	struct errinfo why = {0};
	int r = manifest_read(s->folder, &m, reterr);

	if (r == -ENOENT) {
		if (each_part_file(s, NULL))
			return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
				"%s has parts and no manifest: restore a backup of the store",
				s->folder);
		manifest_new_id(m.id);
		r = manifest_write(s->folder, &m, reterr);
	}
	if (r < 0)
		return r;
	if (!*m.id)
		manifest_new_id(m.id);
	memcpy(s->id, m.id, sizeof(s->id));
	s->parts = m.parts;
	s->missing = m.missing;
	s->losses = m.losses;
	s->durable = s->visible = m.durable;
	s->next_id = m.next_id;
	s->dropped_rows = m.dropped_rows;
	if (!s->settings.trust_clock)
		s->clock.now_ns = m.clock_ns ? m.clock_ns : newest_received(s);
	s->clock_saved_ns = m.clock_ns;
	if (m.was_copy)
		log_warning("the manifest of %s is damaged: its copy is used, and nothing is lost",
			s->folder);
	if (m.unsummed)
		log_warning(
			"%s was written by a version without checksums in its manifest: they are added now",
			s->folder);
	/* Both manifests name the same parts before a file that neither names is removed. */
	if (m.was_copy || m.is_alone)
		r = manifest_write(s->folder, &m, &why);
	if (r == 0)
		each_part_file(s, remove_unnamed);
	else
		log_warning("%s", why.text); /* a full disk keeps nobody from reading */
	return 0;
}

static void complete_settings(struct store_duck_settings *s)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	s->memory_bytes = s->memory_bytes ? s->memory_bytes : MEMORY_BYTES;
	/* Whoever asks DuckDB spins while another thread has the last piece of the work: on two CPUs that writers want,
	 * too, an answer by two threads took three times as long as by one. */
	s->threads = s->threads ? s->threads : (int)MAX(cpus / 2, 1);
	s->seal_rows = s->seal_rows ? s->seal_rows : SEAL_ROWS;
	s->seal_ns = s->seal_ns ? s->seal_ns : SEAL_NS;
	s->scrub_bytes_s = s->scrub_bytes_s ? s->scrub_bytes_s : SCRUB_BYTES_S;
	s->part_bytes_max = s->part_bytes_max ? s->part_bytes_max : PART_BYTES_MAX;
}

static int store_new(const struct store_duck_settings *settings, struct store_duck **ret)
{
	struct store_duck *s = calloc(1, sizeof(*s));
	pthread_rwlockattr_t writers;

	if (!s)
		return -ENOMEM;
	s->lock_fd = -1;
	s->settings = *settings;
	complete_settings(&s->settings);
	s->pending = BUF_INIT(PENDING_MAX);
	pthread_rwlockattr_init(&writers);
	pthread_rwlockattr_setkind_np(&writers, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&s->instance, &writers);
	pthread_rwlockattr_destroy(&writers);
	pthread_mutex_init(&s->fill_mutex, NULL);
	pthread_mutex_init(&s->write_mutex, NULL);
	pthread_mutex_init(&s->set_mutex, NULL);
	*ret = s;
	s->folder = strdup(settings->folder);
	return s->folder ? 0 : -ENOMEM;
}

static void store_duck_free(struct store *store)
{
	struct store_duck *s = (struct store_duck *)store;

	if (s->scrub)
		scrub_free(s->scrub);
	instance_close(s);
	if (s->asking)
		asking_free(s->asking);
	if (s->snapshots)
		snapshots_free(s->snapshots);
	parts_done(&s->parts);
	parts_done(&s->missing);
	free(s->losses.items);
	buf_done(&s->pending);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	pthread_rwlock_destroy(&s->instance);
	pthread_mutex_destroy(&s->fill_mutex);
	pthread_mutex_destroy(&s->write_mutex);
	pthread_mutex_destroy(&s->set_mutex);
	shares_free(s->shares, s->share_count);
	free(s->folder);
	free(s);
}

static uint64_t store_duck_durable(struct store *store)
{
	struct store_duck *s = (struct store_duck *)store;

	MUTEX_HELD(&s->set_mutex);
	return s->durable;
}

static void count_live(const struct generation *g, struct store_stats *ret)
{
	if (!g)
		return;
	for (int t = 0; t < TABLE_COUNT; t++)
		ret->rows[t] += g->rows[t];
	if (g->oldest_ns && (!ret->oldest_ns || g->oldest_ns < ret->oldest_ns))
		ret->oldest_ns = g->oldest_ns;
}

static void count_part(const struct part *p, struct store_stats *ret)
{
	int64_t first = p->first_ns[TABLE_EVENTS];

	if (p->gone)
		return;
	ret->parts++;
	ret->bytes += p->bytes;
	for (int t = 0; t < TABLE_COUNT; t++)
		ret->rows[t] += p->rows[t];
	if (p->rows[TABLE_EVENTS] && (!ret->oldest_ns || first < ret->oldest_ns))
		ret->oldest_ns = first;
}

static void store_duck_stats(struct store *store, struct store_stats *ret)
{
	struct store_duck *s = (struct store_duck *)store;

	MUTEX_HELD(&s->set_mutex);
	*ret = (struct store_stats){.visible = s->visible,
		.durable = s->durable,
		.dropped_rows = s->dropped_rows,
		.checked_bytes = s->checked_bytes,
		.ahead_ns = s->clock.ahead_ns,
		.fault = s->fault};
	memcpy(ret->fault_text, s->fault_text, sizeof(ret->fault_text));
	missing_count(s, NULL, &ret->missing);
	for (size_t i = 0; i < s->parts.count; i++)
		count_part(s->parts.items[i], ret);
	count_live(s->frozen, ret);
	count_live(s->current, ret);
}

static const struct store_ops duck_ops = {
	.name = "duckdb",
	.free = store_duck_free,
	.take = live_take,
	.commit = live_commit,
	.durable = store_duck_durable,
	.select = ask_select,
	.sql = ask_sql,
	.share = shares_set,
	.hurry = seal_hurry,
	.has = parts_have,
	.seal = seal_all,
	.upkeep = upkeep_step,
	.stats = store_duck_stats,
	.missing = missing_of,
	.lose = missing_lose,
};

static int open_folder(struct store_duck *s, struct errinfo *reterr)
{
	char *absolute;

	if (mkdir(s->folder, 0700) < 0 && errno != EEXIST)
		return errinfo_set(reterr, -errno, "the folder %s cannot be made: %s", s->folder,
			strerror(errno));
	absolute = realpath(s->folder, NULL);
	if (!absolute)
		return errinfo_set(reterr, -errno, "the folder %s cannot be opened: %s", s->folder,
			strerror(errno));
	free(s->folder);
	s->folder = absolute;
	s->lock_fd = store_lock(s->folder, reterr);
	return s->lock_fd < 0 ? s->lock_fd : read_manifest(s, reterr);
}

int store_duck_open(
	const struct store_duck_settings *settings, struct store **ret, struct errinfo *reterr)
{
	struct store_duck *s = NULL;
	int r = duck_load(reterr);

	r = r ?: store_new(settings, &s);
	r = r ?: open_folder(s, reterr);
	r = r ?: asking_new(&s->asking);
	r = r ?: snapshots_new(s);
	r = r ?: instance_open(s, reterr);
	r = r ?: scrub_new(s);
	if (r < 0) {
		if (s)
			store_duck_free(&s->store);
		return r;
	}
	s->store.ops = &duck_ops;
	*ret = &s->store;
	return 0;
}

/* The SQL of the DuckDB store. */

/* Ten minutes, or a day of roll-ups, come first: a question about an hour skips the rest of a large part,
 * and within them the rows of a node lie together. */
const char *const part_order[TABLE_COUNT] = {
	[TABLE_EVENTS] = "ts_ns // 600000000000, node_id, ts_ns",
	[TABLE_CHAINS] = "node_id, detected_at",
	[TABLE_METRICS] = "bucket_ns // 86400000000000, metric_name, node_id, bucket_ns",
	[TABLE_COLLECTIVES] = "enter_ns // 600000000000, node_id, enter_ns",
	[TABLE_INCIDENTS] = "node_id, ts_ns",
	[TABLE_STEPS] = "node_id, ts_ns",
};

const char *part_alias(const struct part *p, char out[STORE_ALIAS_MAX])
{
	snprintf(out, STORE_ALIAS_MAX, "p%" PRIu64, p->id);
	return out;
}

const char *generation_alias(const struct generation *g, char out[STORE_ALIAS_MAX])
{
	snprintf(out, STORE_ALIAS_MAX, "g%" PRIu64, g->id);
	return out;
}

void duck_quote(struct buf *b, const char *text)
{
	buf_putc(b, '\'');
	for (; *text; text++)
		buf_append(b, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
	buf_putc(b, '\'');
}

static const char *type_name(enum column_type type)
{
	switch (type) {
	case COLUMN_REAL: return "DOUBLE";
	case COLUMN_TEXT: return "VARCHAR";
	case COLUMN_TIME:
	case COLUMN_INT: break;
	}
	return "BIGINT";
}

void put_typed_columns(struct buf *b, enum store_table t)
{
	const struct table_desc *d = &store_tables[t];

	for (int i = 0; i < d->column_count; i++)
		buf_printf(b, "%s%s %s", i ? ", " : "", d->columns[i].name,
			type_name(d->columns[i].type));
}

void put_plain_columns(struct buf *b, enum store_table t)
{
	const struct table_desc *d = &store_tables[t];

	for (int i = 0; i < d->column_count; i++)
		buf_printf(b, "%s%s %s USING COMPRESSION uncompressed", i ? ", " : "",
			d->columns[i].name, type_name(d->columns[i].type));
}

void put_node_metrics(struct buf *b, const char *events)
{
	buf_printf(b,
		"SELECT ts_ns // %" PRId64 " * %" PRId64
		" AS bucket_ns, cluster_id, node_id, metric_name, kind, count(*) AS count, "
		"min(v) AS min, max(v) AS max, sum(v) AS sum, arg_max(v, ts_ns) AS last, "
		"max(ts_ns) AS last_ns FROM (SELECT ts_ns, cluster_id, node_id, metric_name, kind, "
		"coalesce(value_double, CAST(value_int AS DOUBLE)) AS v FROM %s "
		"WHERE kind IN ('gauge', 'counter', 'delta', 'histogram')) "
		"WHERE v IS NOT NULL AND ts_ns IS NOT NULL "
		"GROUP BY 1, cluster_id, node_id, metric_name, kind",
		STORE_MINUTE_NS, STORE_MINUTE_NS, events);
}

void put_generation(struct buf *b, const char *alias)
{
	char events[STORE_ALIAS_MAX + 16];

	buf_printf(b, "ATTACH ':memory:' AS %s;\n", alias);
	for (int t = 0; t < TABLE_COUNT; t++) {
		if (t == TABLE_METRICS)
			continue;
		buf_printf(b, "CREATE TABLE %s.%s(", alias, store_tables[t].name);
		put_typed_columns(b, t);
		buf_puts(b, ");\n");
	}
	snprintf(events, sizeof(events), "%s.events", alias);
	buf_printf(b, "CREATE VIEW %s.node_metrics AS ", alias);
	put_node_metrics(b, events);
	buf_puts(b, ";\n");
}

bool scope_has(const struct store_scope *scope, const char *cluster)
{
	return !scope || !scope->clusters ||
	       EXISTS(i, scope->cluster_count, !strcmp(scope->clusters[i], cluster));
}

static void put_clusters(struct buf *b, const struct store_scope *scope)
{
	if (scope->cluster_count == 0) {
		buf_puts(b, "false");
		return;
	}
	buf_puts(b, "cluster_id IN (");
	for (size_t i = 0; i < scope->cluster_count; i++) {
		buf_puts(b, i ? ", " : "");
		duck_quote(b, scope->clusters[i]);
	}
	buf_putc(b, ')');
}

bool put_scope(struct buf *b, enum store_table t, const struct store_scope *scope, bool clusters)
{
	const char *time = store_tables[t].columns[store_tables[t].time].name;
	const char *and = " WHERE ";

	if (!scope)
		return false;
	if (clusters && scope->clusters) {
		buf_puts(b, and);
		put_clusters(b, scope);
		and = " AND ";
	}
	if (scope->since_ns) {
		buf_printf(b, "%s%s >= %" PRId64, and, time, scope->since_ns);
		and = " AND ";
	}
	if (scope->until_ns) {
		buf_printf(b, "%s%s < %" PRId64, and, time, scope->until_ns);
		and = " AND ";
	}
	return strcmp(and, " AND ") == 0;
}
