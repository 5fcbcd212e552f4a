/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_upkeep.c - what a store does besides: sealing in time, retention, checking parts that could
 * not be read, merging small parts. One thing a step. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster/store/store_duck_private.h"

#define MERGE_COUNT                                                                                \
	8 /* parts of about one size make one of the next: a day of minutes is 4 levels */
#define MERGE_SIZES 4 /* the largest of them has at most so many times the bytes of the smallest */
#define MERGE_SPAN_NS                                                                              \
	(24 * 3600 * (int64_t)NS_PER_S) /* of the times that the rows of one came in */

/* ---- retention ---- */

static uint64_t row_count(const struct part *p)
{
	uint64_t n = 0;

	for (int t = 0; t < TABLE_COUNT; t++)
		n += t == TABLE_METRICS ? 0 : p->rows[t];
	return n;
}

/* The part that is to go: too old, or the oldest if all are too large. */
static struct part *find_expired(struct store_duck *s, int64_t now_ns)
{
	struct part *oldest = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];

		if (p->gone)
			continue;
		bytes += p->bytes;
		if (!oldest || p->received_ns < oldest->received_ns)
			oldest = p;
	}
	if (!oldest)
		return NULL;
	if (s->settings.retention_ns &&
		oldest->received_ns < now_ns - (int64_t)s->settings.retention_ns)
		return oldest;
	return s->settings.bytes_max && bytes > s->settings.bytes_max ? shares_find_over(s) : NULL;
}

static int expire(struct store_duck *s, int64_t now_ns, struct errinfo *reterr)
{
	struct part *p = find_expired(s, now_ns);
	struct change change = {.remove = &p, .remove_count = 1};
	int r;

	if (!p)
		return 0;
	change.dropped_rows = row_count(p);
	r = set_change(s, &change, reterr);
	return r < 0 ? r : 1;
}

/* ---- merging ---- */

struct merge {
	struct part *parts[MERGE_COUNT];
	size_t count;
	uint64_t bytes, least, most, rows;
	int64_t first_ns, last_ns;
};

static bool merge_may_take(const struct store_duck *s, const struct merge *m, const struct part *p)
{
	uint64_t least = MIN(m->least, p->bytes), most = MAX(m->most, p->bytes);
	int64_t span = MERGE_SPAN_NS;

	if (s->settings.retention_ns)
		span = MIN(span, (int64_t)s->settings.retention_ns / 8);
	return m->bytes + p->bytes <= s->settings.part_bytes_max && most <= least * MERGE_SIZES &&
	       MAX(m->last_ns, p->received_ns) - MIN(m->first_ns, p->received_ns) <= span;
}

static void merge_take(struct merge *m, struct part *p)
{
	m->least = m->count ? MIN(m->least, p->bytes) : p->bytes;
	m->most = MAX(m->most, p->bytes);
	m->first_ns = m->count ? MIN(m->first_ns, p->received_ns) : p->received_ns;
	m->last_ns = m->count ? MAX(m->last_ns, p->received_ns) : p->received_ns;
	m->bytes += p->bytes;
	m->rows += row_count(p);
	m->parts[m->count++] = p;
}

/* The next parts of the cluster of the @from'th, one after the other, that are of one size. */
static bool find_run(struct store_duck *s, size_t from, struct merge *m)
{
	const struct part *first = s->parts.items[from];

	*m = (struct merge){0};
	if (first->gone || first->suspect)
		return false;
	for (size_t i = from; i < s->parts.count && m->count < MERGE_COUNT; i++) {
		struct part *p = s->parts.items[i];

		if (p->gone || strcmp(p->cluster, first->cluster) != 0)
			continue;
		if (p->suspect || (m->count && !merge_may_take(s, m, p)))
			return false;
		merge_take(m, p);
	}
	return m->count == MERGE_COUNT && m->bytes <= s->settings.part_bytes_max;
}

static int write_merged(struct store_duck *s, struct merge *m, struct errinfo *reterr)
{
	char names[MERGE_COUNT][STORE_ALIAS_MAX];
	const char *sources[MERGE_COUNT];
	struct parts add = {0};
	struct change change = {.add = &add, .remove = m->parts, .remove_count = m->count};
	struct part *p;
	int r;

	for (size_t i = 0; i < m->count; i++)
		sources[i] = part_alias(m->parts[i], names[i]);
	r = part_write(s, m->parts[0]->cluster, sources, m->count, m->rows, false, &p, reterr);
	if (r < 0)
		return r;
	r = parts_add(&add, p);
	if (r < 0) {
		part_free(p);
		return r;
	}
	if (row_count(p) != m->rows)
		r = errinfo_set(reterr, -EBADMSG,
			"merged parts have %" PRIu64 " rows and not %" PRIu64, row_count(p),
			m->rows);
	if (r == 0)
		r = part_attach(s, s->write, p, reterr);
	if (r == 0)
		r = set_change(s, &change, reterr);
	parts_done(&add);
	return r;
}

static int merge(struct store_duck *s, struct errinfo *reterr)
{
	struct merge m;
	int r;

	for (size_t i = 0; i < s->parts.count; i++)
		if (find_run(s, i, &m)) {
			r = write_merged(s, &m, reterr);
			return r < 0 ? r : 1;
		}
	return 0;
}

/* ---- damage ---- */

static struct part *next_suspect(struct store_duck *s)
{
	struct part *p = NULL;

	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; !p && i < s->parts.count; i++)
		if (s->parts.items[i]->suspect && !s->parts.items[i]->gone)
			p = s->parts.items[i];
	pthread_mutex_unlock(&s->set_mutex);
	return p;
}

static int check_suspect(struct store_duck *s, struct errinfo *reterr)
{
	struct part *p = next_suspect(s);
	char path[STORE_PATH_MAX], sum[DIGEST_HEX];
	int r;

	if (!p)
		return 0;
	r = part_path(s, p, "", path, reterr);
	if (r == 0)
		r = digest_sha256_file(path, sum);
	if (r == 0 && !strcmp(sum, p->sha256)) {
		pthread_mutex_lock(&s->set_mutex);
		p->suspect = false;
		pthread_mutex_unlock(&s->set_mutex);
		return 1;
	}
	r = part_quarantine(s, p, r < 0 ? strerror(-r) : "its sum is another", reterr);
	return r < 0 ? r : 1;
}

/* ---- a step ---- */

static int step(struct store_duck *s, int64_t now_ns, struct errinfo *reterr)
{
	int r = check_suspect(s, reterr);

	if (r == 0)
		r = expire(s, now_ns, reterr);
	if (r == 0)
		r = merge(s, reterr);
	set_sweep(s);
	return r;
}

int upkeep_step(struct store *store, int64_t now_ns, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	int r = 0;

	pthread_mutex_lock(&s->write_mutex);
	if (seal_is_due(s))
		r = seal_now(s, reterr);
	if (r == 0)
		r = instance_use(s, reterr);
	if (r == 0) {
		r = step(s, now_ns, reterr);
		instance_leave(s);
	}
	pthread_mutex_unlock(&s->write_mutex);
	return r;
}
