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
#define MERGE_SIZES       4 /* the largest of them has at most so many times the bytes of the smallest */
#define MERGE_LEAST_BYTES (1u << 20) /* what does not fit into memory then is another fault */
#define CLOCK_SAVE_NS     ((int64_t)RETENTION_CLOCK_SLACK_NS / 2) /* a restart is within the slack */
#define MERGE_SPAN_NS                                                                              \
	(24 * 3600 * (int64_t)NS_PER_S) /* of the times that the rows of one came in */

/* ---- retention ---- */

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

	if (!p && s->settings.retention_ns)
		return missing_expire(s, now_ns - (int64_t)s->settings.retention_ns, reterr);
	if (!p)
		return 0;
	change.dropped_rows = part_rows(p);
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
		m->least = m->count ? MIN(m->least, p->bytes) : p->bytes;
		m->most = MAX(m->most, p->bytes);
		m->first_ns = m->count ? MIN(m->first_ns, p->received_ns) : p->received_ns;
		m->last_ns = m->count ? MAX(m->last_ns, p->received_ns) : p->received_ns;
		m->bytes += p->bytes;
		m->rows += part_rows(p);
		m->parts[m->count++] = p;
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
	p->first = m->parts[0]->first; /* the set is in the order of the journal */
	p->last = m->parts[m->count - 1]->last;
	if (part_rows(p) != m->rows)
		r = errinfo_set(reterr, -EBADMSG,
			"merged parts have %" PRIu64 " rows and not %" PRIu64, part_rows(p),
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
			if (r == -ENOMEM && m.bytes > MERGE_LEAST_BYTES) {
				/* Rows that do not compress: smaller parts will do. */
				s->settings.part_bytes_max = m.bytes / 2;
				return 0;
			}
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
	char why[PART_WHY_MAX];
	int r;

	if (!p)
		return 0;
	r = part_check(s, p, why);
	if (r == 1)
		r = part_quarantine(s, p, why, reterr);
	else if (r < 0)
		return errinfo_set(reterr, r,
			"part %" PRIu64 " of cluster %.60s cannot be read: %s", p->id, p->cluster,
			strerror(-r));
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->set_mutex);
	p->suspect = false;
	p->scrubbed = mono_now();
	pthread_mutex_unlock(&s->set_mutex);
	return 1;
}

void suspects_check(struct store_duck *s)
{
	struct errinfo e = {0};

	pthread_mutex_lock(&s->write_mutex);
	if (instance_use(s, NULL) == 0) {
		while (check_suspect(s, &e) > 0)
			;
		set_sweep(s);
		instance_leave(s);
	}
	pthread_mutex_unlock(&s->write_mutex);
}

/* ---- a step ---- */

/* What is believed of the time is on disk, so that a jump over a restart is one. */
static int keep_clock(struct store_duck *s, int64_t *now_ns, struct errinfo *reterr)
{
	struct retention_clock next = s->clock;

	*now_ns = retention_clock_read(&next, *now_ns, mono_now().ns);
	pthread_mutex_lock(&s->set_mutex);
	s->clock = next;
	pthread_mutex_unlock(&s->set_mutex);
	if (s->clock.now_ns - s->clock_saved_ns < CLOCK_SAVE_NS)
		return 0;
	s->clock_saved_ns = s->clock.now_ns;
	return set_change(s, &(struct change){0}, reterr);
}

static int step(struct store_duck *s, int64_t now_ns, struct errinfo *reterr)
{
	int r = check_suspect(s, reterr);

	if (r == 0)
		r = keep_clock(s, &now_ns, reterr);
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
