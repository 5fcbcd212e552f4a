/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_seal.c - sealing: the live rows become parts, one for each cluster.
 *
 * The current generation is frozen and another one begun; its rows are written to parts; the manifest names
 * these and the position that the generation reaches to; then the generation is detached. What fails leaves
 * the generation frozen, and the next seal goes on with it: parts that are on disk already are not written
 * again. Meanwhile the current generation grows, as far as memory allows. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "cluster/store/store_duck_private.h"

#define AGAIN_NS     NS_PER_S
#define CLUSTERS_MAX 10000
#define ASKED_ROWS   ((size_t)100000) /* live rows that a statement copies: half a second */
#define ASKED_NS     (60 * NS_PER_S)  /* after it no other is expected */
#define SPARE_BYTES  (16u << 20) /* of the disk: for the manifest, and what else must be written */

bool seal_is_due(struct store_duck *s)
{
	uint64_t now = mono_now().ns;
	size_t rows = s->settings.seal_rows;
	const struct generation *g;
	bool due;

	pthread_mutex_lock(&s->set_mutex);
	g = s->current;
	if (s->sql_asked.ns && now - s->sql_asked.ns < ASKED_NS)
		rows = MIN(rows, ASKED_ROWS);
	due = !g || s->frozen || g->row_count >= rows || g->bytes >= s->settings.memory_bytes / 8 ||
	      (g->row_count && now - g->begun.ns >= s->settings.seal_ns);
	due = due && now >= s->seal_after.ns;
	pthread_mutex_unlock(&s->set_mutex);
	return due;
}

/* *ret_position: that everything reaches to if there is nothing to freeze. */
static int freeze(struct store_duck *s, uint64_t *ret_position, struct errinfo *reterr)
{
	struct generation *g;
	int r = 0;

	if (s->retired_count == ARRAY_SIZE(s->retired))
		return errinfo_set(reterr, -EBUSY, "too many questions read rows that are sealed");
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
		if (r == 0) {
			p->first = s->durable + 1;
			p->last = s->frozen->position;
		}
		if (r == 0)
			r = part_attach(s, s->write, p, reterr);
		if (r == 0)
			r = parts_add(&s->sealed, p);
		if (r == 0)
			p = NULL;
	}
	sql_table_done(&clusters);
	return r;
}

static int seal_frozen(struct store_duck *s, struct errinfo *reterr)
{
	struct change change = {.add = &s->sealed, .durable = s->frozen->position};
	char alias[STORE_ALIAS_MAX];
	int r = check_space(s, s->frozen->bytes / 2, reterr);

	if (r == 0)
		r = write_parts(s, generation_alias(s->frozen, alias), reterr);
	return r == 0 ? set_change(s, &change, reterr) : r;
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
	if (r == 0)
		r = s->frozen ? seal_frozen(s, reterr) : seal_position(s, position, reterr);
	set_sweep(s);
	return r;
}

void store_fault(struct store_duck *s, int err, const struct errinfo *why)
{
	pthread_mutex_lock(&s->set_mutex);
	s->fault = err;
	snprintf(s->fault_text, sizeof(s->fault_text), "%s", err == 0 ? "" : why->text);
	pthread_mutex_unlock(&s->set_mutex);
}

int seal_now(struct store_duck *s, struct errinfo *reterr)
{
	struct errinfo why = {0};
	int r;

	r = instance_use(s, &why);
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

	pthread_mutex_lock(&s->write_mutex);
	was_frozen = s->frozen;
	r = seal_now(s, reterr);
	if (r == 0 && was_frozen)
		r = seal_now(s, reterr);
	pthread_mutex_unlock(&s->write_mutex);
	return r;
}
