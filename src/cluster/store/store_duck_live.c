/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_live.c - rows that are not sealed yet: taken, then committed to the current generation. */
#include <sys/stat.h>

#include "base/file.h"
#include "base/mutex.h"
#include "base/text.h"
#include "cluster/store/store_duck_private.h"

#define PENDING_COMMIT (64u << 20) /* so much is committed without being asked */

static const enum duck_type duck_types[] = {
	[COLUMN_TIME] = DUCK_BIGINT,
	[COLUMN_INT] = DUCK_BIGINT,
	[COLUMN_REAL] = DUCK_DOUBLE,
	[COLUMN_TEXT] = DUCK_VARCHAR,
};

int generation_new(struct store_duck *s, struct duck_connection *c, uint64_t id,
	struct generation **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	_cleanup_free_ struct generation *g = calloc(1, sizeof(*g));
	char alias[STORE_ALIAS_MAX];
	int r;

	if (!g)
		return -ENOMEM;
	g->id = id;
	g->position = s->visible;
	put_generation(&text, generation_alias(g, alias));
	r = text.err ? text.err : duck_exec(c, buf_str(&text), reterr);
	if (r < 0)
		return r;
	*ret = TAKE(g);
	return 0;
}

/* ---- taking ---- */

/* What files and literals are made of must be a text. */
static bool is_text(const struct sql_value *v)
{
	const char *p = v->p;
	size_t left = v->len;
	uint32_t cp;

	while (left) {
		int n = *p ? text_utf8_next(p, left, &cp) : -EILSEQ;

		if (n < 0)
			return false;
		p += n;
		left -= (size_t)n;
	}
	return true;
}

static int check_batch(const void *data, size_t len, uint64_t *ret_rows)
{
	struct batch_reader r = {.data = data, .len = len};
	struct batch_row row;
	int n;

	*ret_rows = 0;
	while ((n = batch_next(&r, &row)) > 0) {
		if (row.table == TABLE_METRICS ||
			!is_text(&row.cells[store_tables[row.table].cluster]))
			return -EBADMSG;
		++*ret_rows;
	}
	return n;
}

static void seal_if_due(struct store_duck *s)
{
	if (!seal_is_due(s) || pthread_mutex_trylock(&s->write_mutex) != 0)
		return;
	seal_now(s, NULL); /* what fails is tried again, and in the stats */
	pthread_mutex_unlock(&s->write_mutex);
}

static bool has_room(struct store_duck *s, size_t len)
{
	uint64_t live = s->pending.len + len, room = s->settings.memory_bytes / 4;

	MUTEX_HELD(&s->set_mutex);
	live += s->current ? s->current->bytes : 0;
	live += s->frozen ? s->frozen->bytes : 0;
	return live <= room || live == len;
}

static int find_room(struct store_duck *s, size_t len, struct errinfo *reterr)
{
	struct store_stats st;

	if (has_room(s, len))
		return 0;
	seal_if_due(s);
	if (has_room(s, len))
		return 0;
	s->store.ops->stats(&s->store, &st);
	return errinfo_set(reterr, -ENOSPC, "no room for more rows in memory: %s",
		st.fault ? st.fault_text : "they wait to be sealed");
}

static uint64_t visible_position(struct store_duck *s)
{
	MUTEX_HELD(&s->set_mutex);

	return s->visible;
}

static void drop_pending(struct store_duck *s)
{
	buf_clear(&s->pending);
	s->pending.err = 0;
	s->pending_rows = s->pending_position = 0;
}

/* Once after the instance was replaced: what is in between must be read again. */
static int check_lost(struct store_duck *s, struct errinfo *reterr)
{
	bool lost;

	pthread_mutex_lock(&s->set_mutex);
	lost = s->lost;
	s->lost = false;
	pthread_mutex_unlock(&s->set_mutex);
	if (!lost)
		return 0;
	drop_pending(s);
	return errinfo_set(reterr, -EIO,
		"DuckDB failed and was restarted: its rows are read from the journal again");
}

int live_take(struct store *store, uint64_t position, const void *data, size_t len,
	struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	uint64_t rows;
	int r = check_batch(data, len, &rows);

	if (r < 0)
		return errinfo_set(reterr, -EBADMSG, "journal entry %llu is not a batch of rows",
			(unsigned long long)position);
	r = check_lost(s, reterr);
	if (r < 0)
		return r;
	if (position <= MAX(visible_position(s), s->pending_position))
		return 0; /* it is there already */
	r = find_room(s, len, reterr);
	if (r == 0) {
		buf_append(&s->pending, data, len);
		r = s->pending.err;
	}
	if (r < 0) {
		drop_pending(s);
		return r;
	}
	s->pending_rows += rows;
	s->pending_position = position;
	return s->pending.len > PENDING_COMMIT ? live_commit(store, reterr) : 0;
}

/* ---- committing ---- */

struct fill {
	struct duck_appender *appenders[TABLE_COUNT];
	uint64_t rows[TABLE_COUNT];
	int64_t oldest_ns;
};

static int fill_open(struct duck_connection *c, const struct generation *g, struct fill *f,
	enum store_table t, struct errinfo *reterr)
{
	enum duck_type types[TABLE_COLUMNS_MAX];
	char alias[STORE_ALIAS_MAX];
	const struct table_desc *d = &store_tables[t];

	for (int i = 0; i < d->column_count; i++)
		types[i] = duck_types[d->columns[i].type];
	return duck_appender_new(c, generation_alias(g, alias), d->name, types, d->column_count,
		&f->appenders[t], reterr);
}

static int fill_rows(struct duck_connection *c, const struct generation *g, const struct buf *rows,
	struct fill *f, struct errinfo *reterr)
{
	struct batch_reader reader = {(const uint8_t *)rows->data, rows->len};
	struct batch_row row;
	int r = 0;

	while (r == 0 && batch_next(&reader, &row) > 0) {
		const struct sql_value *time = &row.cells[store_tables[row.table].time];

		if (!f->appenders[row.table])
			r = fill_open(c, g, f, row.table, reterr);
		r = r ?: duck_append(f->appenders[row.table], row.cells, reterr);
		f->rows[row.table]++;
		if (row.table == TABLE_EVENTS && time->type == SQL_INT &&
			(f->oldest_ns == 0 || time->i < f->oldest_ns))
			f->oldest_ns = time->i;
	}
	for (int t = 0; r == 0 && t < TABLE_COUNT; t++)
		if (f->appenders[t])
			r = duck_append_flush(f->appenders[t], reterr);
	return r;
}

static int fill_transaction(struct duck_connection *c, const struct generation *g,
	const struct buf *rows, struct fill *f, struct errinfo *reterr)
{
	int r = duck_exec(c, "BEGIN", reterr);

	if (r < 0)
		return r;
	r = fill_rows(c, g, rows, f, reterr);
	for (int t = 0; t < TABLE_COUNT; t++)
		duck_appender_freep(&f->appenders[t]);
	memset(f->appenders, 0, sizeof(f->appenders));
	r = r ?: duck_exec(c, "COMMIT", reterr);
	if (r < 0)
		duck_exec(c, "ROLLBACK", NULL);
	return r;
}

int live_fill(struct duck_connection *c, const struct generation *g, const struct buf *rows,
	struct errinfo *reterr)
{
	struct fill f = {0};

	return fill_transaction(c, g, rows, &f, reterr);
}

static int commit_pending(struct store_duck *s, struct errinfo *reterr)
{
	struct fill f = {0};
	int r = instance_use(s, reterr);

	if (r == 0) {
		pthread_mutex_lock(&s->fill_mutex);
		r = check_lost(s, reterr); /* from here on nobody replaces the instance */
		if (r == 0 && s->pending_rows)
			r = fill_transaction(s->fill, s->current, &s->pending, &f, reterr);
		if (r == 0) {
			struct generation *g = s->current;

			pthread_mutex_lock(&s->set_mutex);
			if (g->row_count == 0)
				g->begun = mono_now();
			for (int t = 0; t < TABLE_COUNT; t++)
				g->rows[t] += f.rows[t];
			g->row_count += s->pending_rows;
			g->bytes += s->pending.len;
			g->position = s->visible = s->pending_position;
			if (f.oldest_ns && (g->oldest_ns == 0 || f.oldest_ns < g->oldest_ns))
				g->oldest_ns = f.oldest_ns;
			pthread_mutex_unlock(&s->set_mutex);
		}
		pthread_mutex_unlock(&s->fill_mutex);
		instance_leave(s);
	}
	drop_pending(s);
	return r;
}

int live_commit(struct store *store, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	int r = s->pending_position ? commit_pending(s, reterr) : check_lost(s, reterr);

	if (r < 0)
		instance_check(s, false);
	else
		seal_if_due(s);
	return r;
}

/* The DuckDB instance: opened with every part, replaced when DuckDB gives it up.
 *
 * It has no file of its own: what it holds besides the parts can be read again from the journal. */

static int open_duck(struct store_duck *s, struct errinfo *reterr)
{
	char memory[32], threads[16], spill[STORE_PATH_MAX];
	const struct duck_setting settings[] = {
		{"memory_limit", memory},
		{"threads", threads},
		{"temp_directory", spill},
		{"preserve_insertion_order", "false"},
		{"checkpoint_threshold",
			"1KiB"}, /* else a file's rows are written to its log first */
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_community_extensions", "false"},
		{"allow_persistent_secrets", "false"},
		{NULL, NULL},
	};
	int r;

	snprintf(memory, sizeof(memory), "%" PRIu64 "MiB", s->settings.memory_bytes >> 20);
	snprintf(threads, sizeof(threads), "%d", s->settings.threads);
	snprintf(spill, sizeof(spill), "%s/spill", s->folder);
	r = duck_open(NULL, settings, &s->duck, reterr);
	r = r ?: duck_connect(s->duck, &s->fill, reterr);
	return r ?: duck_connect(s->duck, &s->write, reterr);
}

/* A damaged part is moved away, with a name that says what it was. */
static void move_away(struct store_duck *s, const struct part *p)
{
	char path[STORE_PATH_MAX], to[STORE_PATH_MAX + 64];

	if (part_path(s, p, "", path, NULL) < 0)
		return;
	snprintf(to, sizeof(to), "%s/" STORE_DAMAGED_NAME, s->folder);
	mkdir(to, 0700);
	part_damaged_path(s, p, to);
	rename(path, to); /* what stays is no part all the same */
}

int part_quarantine(struct store_duck *s, struct part *p, const char *why, struct errinfo *reterr)
{
	struct part *missing = part_copy(p);
	struct change change = {.remove = &p, .remove_count = 1, .missing = missing};
	int r;

	if (!missing)
		return -ENOMEM;
	snprintf(missing->why, sizeof(missing->why), "%s", why);
	r = set_change(s, &change, reterr);
	if (r < 0) {
		part_free(missing);
		return r;
	}
	move_away(s, p);
	return 0;
}

/* What cannot be opened though it is whole (no memory, no descriptors, a newer format) is not set aside. */
static int attach_part(struct store_duck *s, struct part *p, struct errinfo *reterr)
{
	char path[STORE_PATH_MAX], why[PART_WHY_MAX];
	struct errinfo e = {0};
	struct stat st;
	int r = part_path(s, p, "", path, reterr), damaged;

	if (r < 0)
		return r;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == p->bytes) {
		r = part_attach(s, s->write, p, &e);
		if (r == 0 || r == -ENOMEM)
			return r;
	}
	damaged = part_check(s, p, why);
	if (damaged == 1)
		return part_quarantine(s, p, why, reterr);
	return errinfo_set(reterr, damaged < 0 ? damaged : r, "%s cannot be opened: %.200s", path,
		damaged < 0 ? strerror(-damaged) : e.text);
}

/* Parts that another has written are set aside. */
static int refuse_strange(struct store_duck *s, struct errinfo *reterr)
{
	char alias[STORE_ALIAS_MAX], own[STORE_ALIAS_MAX];
	int r;

	while ((r = parts_strange(s->write, alias, reterr)) == 1) {
		size_t i = 0;

		while (strcmp(part_alias(s->parts.items[i], own), alias) != 0)
			i++;
		r = part_quarantine(s, s->parts.items[i], PART_STRANGE, reterr);
		if (r < 0)
			return r;
		set_sweep(s);
	}
	return r;
}

int instance_open(struct store_duck *s, struct errinfo *reterr)
{
	int r = open_duck(s, reterr);

	for (size_t i = 0; r == 0 && i < s->parts.count; i++)
		if (!s->parts.items[i]->gone)
			r = attach_part(s, s->parts.items[i], reterr);
	r = r ?: refuse_strange(s, reterr);
	r = r ?: generation_new(s, s->fill, s->next_id++, &s->current, reterr);
	if (r == 0)
		set_sweep(s);
	return r;
}

void instance_close(struct store_duck *s)
{
	if (s->asking)
		asking_disconnect(s);
	duck_disconnectp(&s->fill);
	duck_disconnectp(&s->write);
	duck_closep(&s->duck);
	s->fill = s->write = NULL;
	s->duck = NULL;
	pthread_mutex_lock(&s->set_mutex);
	while (s->retired_count)
		free(s->retired[--s->retired_count]);
	free(TAKE(s->current));
	free(TAKE(s->frozen));
	pthread_mutex_unlock(&s->set_mutex);
	parts_done(&s->sealed); /* their files: see open */
}

int instance_use(struct store_duck *s, struct errinfo *reterr)
{
	pthread_rwlock_rdlock(&s->instance);
	if (s->duck)
		return 0;
	pthread_rwlock_unlock(&s->instance);
	return errinfo_set(reterr, -EIO, "DuckDB failed and cannot be restarted");
}

void instance_leave(struct store_duck *s)
{
	pthread_rwlock_unlock(&s->instance);
}

static bool is_alive(struct store_duck *s)
{
	bool alive;

	if (instance_use(s, NULL) < 0)
		return false;
	pthread_mutex_lock(&s->fill_mutex);
	alive = duck_exec(s->fill, "SELECT 1", NULL) == 0;
	pthread_mutex_unlock(&s->fill_mutex);
	instance_leave(s);
	return alive;
}

void instance_check(struct store_duck *s, bool write_held)
{
	if (is_alive(s))
		return;
	if (!write_held)
		pthread_mutex_lock(&s->write_mutex);
	if (!is_alive(s)) {
		struct errinfo why = {0};
		int r;

		pthread_rwlock_wrlock(&s->instance);
		pthread_mutex_lock(&s->fill_mutex);
		instance_close(s);
		pthread_mutex_lock(&s->set_mutex);
		s->visible = s->durable;
		s->lost = true;
		pthread_mutex_unlock(&s->set_mutex);
		r = instance_open(s, &why);
		if (r < 0) {
			instance_close(s);
			store_fault(s, r, &why);
		}
		pthread_mutex_unlock(&s->fill_mutex);
		pthread_rwlock_unlock(&s->instance);
	}
	if (!write_held)
		pthread_mutex_unlock(&s->write_mutex);
}
