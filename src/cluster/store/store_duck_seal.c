/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_seal.c - sealing: the live rows become parts, one for each cluster.
 *
 * The current generation is frozen and another one begun; its rows are written to parts; the manifest names
 * these and the position that the generation reaches to; then the generation is detached. What fails leaves
 * the generation frozen, and the next seal goes on with it: parts that are on disk already are not written
 * again. Meanwhile the current generation grows, as far as memory allows. */
#include <sys/statvfs.h>

#include "base/mutex.h"
#include "cluster/store/store_duck_private.h"
#include "base/array.h"

#define AGAIN_NS     NS_PER_S
#define CLUSTERS_MAX 10000
#define ASKED_ROWS                                                                                 \
	((size_t)40000) /* live rows that a statement copies: 0.2 to 0.4 s, and twice that while some are sealed */
#define ASKED_NS    (60 * NS_PER_S) /* after it no other is expected */
#define SPARE_BYTES (16u << 20) /* of the disk: for the manifest, and what else must be written */

bool seal_is_due(struct store_duck *s)
{
	uint64_t now = mono_now().ns;
	size_t rows = s->settings.seal_rows;
	const struct generation *g;
	bool due;

	MUTEX_HELD(&s->set_mutex);
	g = s->current;
	if (s->sql_asked.ns && now - s->sql_asked.ns < ASKED_NS)
		rows = MIN(rows, ASKED_ROWS);
	due = !g || s->frozen || g->row_count >= rows || g->bytes >= s->settings.memory_bytes / 8 ||
	      (g->row_count && now - g->begun.ns >= s->settings.seal_ns);
	due = due && now >= s->seal_after.ns;
	return due;
}

/* *ret_position: that everything reaches to if there is nothing to freeze. */
static int freeze(struct store_duck *s, uint64_t *ret_position, struct errinfo *reterr)
{
	struct generation *g;
	int r = 0;

	if (s->retired_count == ARRAY_SIZE(s->retired))
		return errinfo_set(
			reterr, -EBUSY, "too many queries read rows that are being sealed");
	pthread_mutex_lock(&s->fill_mutex);
	*ret_position = s->current->position;
	if (s->current->row_count)
		r = generation_new(s, s->write, s->next_id++, &g, reterr);
	if (r == 0 && s->current->row_count) {
		pthread_mutex_lock(&s->set_mutex);
		s->frozen = s->current;
		s->current = g;
		pthread_mutex_unlock(&s->set_mutex);
	}
	pthread_mutex_unlock(&s->fill_mutex);
	store_duck_at("frozen");
	return r;
}

static int find_clusters(
	struct store_duck *s, const char *alias, struct sql_table *ret, struct errinfo *reterr)
{
	static const struct duck_limits limits = {CLUSTERS_MAX, 64u << 20};
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	const char *and = "";
	int r;

	buf_puts(&text, "SELECT cluster_id, count(*) FROM (");
	for (int t = 0; t < TABLE_COUNT; t++) {
		if (t == TABLE_METRICS)
			continue;
		buf_printf(
			&text, "%sSELECT cluster_id FROM %s.%s", and, alias, store_tables[t].name);
		and = " UNION ALL ";
	}
	buf_puts(&text, ") GROUP BY cluster_id ORDER BY cluster_id");
	r = duck_select(s->write, buf_str(&text), &limits, ret, reterr);
	if (r == 0 && ret->truncated) {
		sql_table_done(ret);
		r = errinfo_set(
			reterr, -E2BIG, "rows of more than %d clusters came at once", CLUSTERS_MAX);
	}
	return r;
}

/* DuckDB that runs out of space in the wrong moment gives up as a whole. */
static int check_space(struct store_duck *s, uint64_t bytes, struct errinfo *reterr)
{
	struct statvfs fs;

	if (statvfs(s->folder, &fs) < 0 ||
		(uint64_t)fs.f_bavail * fs.f_frsize >= bytes + SPARE_BYTES)
		return 0;
	return errinfo_set(reterr, -ENOSPC,
		"the disk of %s is full: free %" PRIu64 " MiB, or shorten the retention", s->folder,
		(bytes + SPARE_BYTES) >> 20);
}

static int write_parts(struct store_duck *s, const char *alias, struct errinfo *reterr)
{
	struct sql_table clusters;
	int r = find_clusters(s, alias, &clusters, reterr);

	if (r < 0)
		return r;
	for (size_t i = s->sealed.count; r == 0 && i < clusters.row_count; i++) {
		const char *cluster = sql_table_bytes(&clusters, sql_table_cell(&clusters, i, 0));
		size_t rows = (size_t)sql_table_cell(&clusters, i, 1)->i;
		_cleanup_(part_freep) struct part *p = NULL;

		r = part_write(s, cluster, &alias, 1, rows, true, &p, reterr);
		if (r < 0 && atomic_load(&s->is_hurried))
			r = errinfo_set(reterr, -ECANCELED,
				"the service ended before all rows were sealed");
		if (r == 0) {
			p->first = s->durable + 1;
			p->last = s->frozen->position;
		}
		r = r ?: part_attach(s, s->write, p, reterr);
		r = r ?: parts_add(&s->sealed, p);
		if (r == 0)
			p = NULL;
	}
	sql_table_done(&clusters);
	return r;
}

void seal_hurry(struct store *store)
{
	struct store_duck *s = (struct store_duck *)store;

	atomic_store(&s->is_hurried, true);
	asking_hurry(s->asking);
}

static int seal_frozen(struct store_duck *s, struct errinfo *reterr)
{
	struct change change = {.add = &s->sealed, .durable = s->frozen->position};
	char alias[STORE_ALIAS_MAX];
	int r = check_space(s, s->frozen->bytes / 2, reterr);

	r = r ?: write_parts(s, generation_alias(s->frozen, alias), reterr);
	return r ?: set_change(s, &change, reterr);
}

/* Positions without rows: only the manifest says so. */
static int seal_position(struct store_duck *s, uint64_t position, struct errinfo *reterr)
{
	struct change change = {.durable = position};

	return position <= s->durable ? 0 : set_change(s, &change, reterr);
}

static int seal_step(struct store_duck *s, struct errinfo *reterr)
{
	uint64_t position = 0;
	int r = 0;

	set_sweep(s);
	if (!s->frozen)
		r = freeze(s, &position, reterr);
	r = r ?: s->frozen ? seal_frozen(s, reterr) : seal_position(s, position, reterr);
	set_sweep(s);
	return r;
}

void store_fault(struct store_duck *s, int err, const struct errinfo *why)
{
	MUTEX_HELD(&s->set_mutex);

	s->fault = err;
	snprintf(s->fault_text, sizeof(s->fault_text), "%s", err == 0 ? "" : why->text);
}

int seal_now(struct store_duck *s, struct errinfo *reterr)
{
	struct errinfo why = {0};
	int r = instance_use(s, &why);

	if (r == 0) {
		r = seal_step(s, &why);
		instance_leave(s);
	}
	if (r < 0 && !*why.text)
		errinfo_set(&why, r, "rows cannot be sealed: %s", strerror(-r));
	store_fault(s, r, &why);
	if (r < 0) {
		pthread_mutex_lock(&s->set_mutex);
		s->seal_after.ns = mono_now().ns + AGAIN_NS;
		pthread_mutex_unlock(&s->set_mutex);
		instance_check(s, true);
		if (reterr)
			*reterr = why;
	}
	return r;
}

int seal_all(struct store *store, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	bool was_frozen;
	int r;

	MUTEX_HELD(&s->write_mutex);
	was_frozen = s->frozen;
	r = seal_now(s, reterr);
	if (r == 0 && was_frozen)
		r = seal_now(s, reterr);
	return r;
}

/* changes of the set of parts: first on disk, then in memory, and what is gone is
 * removed when the last question that reads it is done. */

/* The parts that the next manifest names; they stay whose they are. */
static int next_parts(const struct store_duck *s, const struct change *c, struct parts *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];

		if (!p->gone && !EXISTS(k, c->remove_count, c->remove[k] == p))
			r = parts_add(ret, p);
	}
	for (size_t i = 0; r == 0 && c->add && i < c->add->count; i++)
		r = parts_insert(ret, c->add->items[i]);
	return r;
}

/* There is room: it was made before the manifest was written. */
static void apply(struct store_duck *s, const struct change *c)
{
	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; i < c->remove_count; i++)
		c->remove[i]->gone = true;
	for (size_t i = 0; c->add && i < c->add->count; i++)
		parts_insert(&s->parts, c->add->items[i]);
	if (c->durable)
		s->durable = c->durable;
	s->dropped_rows += c->dropped_rows;
	if (c->found) {
		size_t i = 0;

		while (s->missing.items[i] != c->found)
			i++;
		s->missing.items[i] = s->missing.items[--s->missing.count];
	}
	if (c->missing)
		s->missing.items[s->missing.count++] = c->missing;
	if (c->durable && s->frozen) {
		s->retired[s->retired_count++] = s->frozen;
		s->frozen = NULL;
	}
	pthread_mutex_unlock(&s->set_mutex);
	if (c->add)
		c->add->count = 0;
}

static int make_room(struct store_duck *s, size_t count)
{
	int r;

	MUTEX_HELD(&s->set_mutex);
	r = ARRAY_RESERVE(s->parts.items, s->parts.room, s->parts.count + count, STORE_PARTS_MAX);
	r = r
		    ?: ARRAY_RESERVE(s->missing.items, s->missing.room, s->missing.count + 1,
			       STORE_PARTS_MAX);
	return r;
}

/* The missing ones of the next manifest. */
static int next_missing(const struct store_duck *s, const struct change *c, struct parts *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->missing.count; i++)
		if (s->missing.items[i] != c->found)
			r = parts_add(ret, s->missing.items[i]);
	return r == 0 && c->missing ? parts_add(ret, c->missing) : r;
}

int set_change(struct store_duck *s, const struct change *c, struct errinfo *reterr)
{
	struct manifest m = {.durable = c->durable ? c->durable : s->durable,
		.next_id = s->next_id,
		.dropped_rows = s->dropped_rows + c->dropped_rows,
		.losses = s->losses,
		.clock_ns = s->clock.now_ns};
	int r = make_room(s, c->add ? c->add->count : 0);

	memcpy(m.id, s->id, sizeof(m.id));
	r = r ?: next_parts(s, c, &m.parts);
	r = r ?: next_missing(s, c, &m.missing);
	if (r == 0) {
		store_duck_at("before the manifest");
		r = manifest_write(s->folder, &m, reterr);
		store_duck_at("after the manifest");
	}
	free(m.parts.items);
	free(m.missing.items);
	if (r == 0)
		apply(s, c);
	return r;
}

/* ---- removing ---- */

static void detach(struct store_duck *s, const char *alias)
{
	duck_exec(s->write, FORMATTED(STORE_ALIAS_MAX + 16, "DETACH %s", alias), NULL);
}

static struct generation *next_generation(struct store_duck *s)
{
	struct generation *g = NULL;

	MUTEX_HELD(&s->set_mutex);
	for (size_t i = 0; !g && i < s->retired_count; i++)
		if (s->retired[i]->users == 0) {
			g = s->retired[i];
			s->retired[i] = s->retired[--s->retired_count];
		}
	return g;
}

static struct part *next_gone(struct store_duck *s)
{
	struct part *p = NULL;

	MUTEX_HELD(&s->set_mutex);
	for (size_t i = 0; !p && i < s->parts.count; i++)
		if (s->parts.items[i]->gone && s->parts.items[i]->users == 0) {
			p = s->parts.items[i];
			memmove(&s->parts.items[i], &s->parts.items[i + 1],
				(--s->parts.count - i) * sizeof(*s->parts.items));
		}
	return p;
}

void set_sweep(struct store_duck *s)
{
	char alias[STORE_ALIAS_MAX], path[STORE_PATH_MAX];
	struct generation *g;
	struct part *p;

	while ((g = next_generation(s))) {
		detach(s, generation_alias(g, alias));
		free(g);
	}
	while ((p = next_gone(s))) {
		detach(s, part_alias(p, alias));
		if (part_path(s, p, "", path, NULL) == 0)
			unlink(path); /* one that stays is removed when the store is opened */
		part_free(p);
	}
}
