/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_missing.c - what was kept and cannot be read any more: parts that are damaged, of which the
 * manifest still knows rows, cluster and times, and entries of the journal, of which only the time is known.
 * It counts in every answer that would have used it, until retention would have dropped it anyway. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/array.h"
#include "cluster/store/store_duck_private.h"

static void widen(struct store_missing *m, int64_t since_ns, int64_t until_ns)
{
	if (since_ns && (!m->since_ns || since_ns < m->since_ns))
		m->since_ns = since_ns;
	m->until_ns = MAX(m->until_ns, until_ns);
}

static void add_part(const struct part *p, struct store_missing *ret)
{
	ret->parts++;
	ret->rows += part_rows(p);
	for (int t = 0; t < TABLE_COUNT; t++)
		if (t != TABLE_METRICS && p->rows[t])
			widen(ret, p->first_ns[t], p->last_ns[t]);
}

/* Rows are seldom of a later time than that at which they came in. */
static bool loss_meets(const struct store_loss *l, const struct store_scope *scope)
{
	return !scope || !scope->since_ns || !l->until_ns || l->until_ns >= scope->since_ns;
}

void missing_count(
	const struct store_duck *s, const struct store_scope *scope, struct store_missing *ret)
{
	for (size_t i = 0; i < s->missing.count; i++)
		if (part_meets(s->missing.items[i], scope))
			add_part(s->missing.items[i], ret);
	for (size_t i = 0; i < s->losses.count; i++) {
		const struct store_loss *l = &s->losses.items[i];

		if (!loss_meets(l, scope))
			continue;
		ret->requests += l->last - l->first + 1;
		widen(ret, l->since_ns, l->until_ns);
	}
}

void missing_of(struct store *store, const struct store_scope *scope, struct store_missing *ret)
{
	struct store_duck *s = (struct store_duck *)store;

	pthread_mutex_lock(&s->set_mutex);
	missing_count(s, scope, ret);
	pthread_mutex_unlock(&s->set_mutex);
}

static bool is_known(const struct store_duck *s, const struct store_loss *l)
{
	for (size_t i = 0; i < s->losses.count; i++)
		if (s->losses.items[i].first <= l->first && l->last <= s->losses.items[i].last)
			return true;
	return false;
}

int missing_lose(struct store *store, const struct store_loss *l, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	int r = 0;

	pthread_mutex_lock(&s->write_mutex);
	pthread_mutex_lock(&s->set_mutex);
	if (is_known(s, l)) {
		pthread_mutex_unlock(&s->set_mutex);
		pthread_mutex_unlock(&s->write_mutex);
		return 0;
	}
	r = ARRAY_RESERVE(s->losses.items, s->losses.room, s->losses.count + 1, STORE_LOSSES_MAX);
	if (r == 0)
		s->losses.items[s->losses.count++] = *l;
	pthread_mutex_unlock(&s->set_mutex);
	if (r == 0) {
		r = set_change(s, &(struct change){0}, reterr);
		if (r < 0) { /* who told it tells it again */
			pthread_mutex_lock(&s->set_mutex);
			s->losses.count--;
			pthread_mutex_unlock(&s->set_mutex);
		}
	}
	pthread_mutex_unlock(&s->write_mutex);
	return r;
}

/* ---- retention ---- */

static int forget_part(struct store_duck *s, struct part *p, struct errinfo *reterr)
{
	struct change change = {.found = p, .dropped_rows = part_rows(p)};
	char path[STORE_PATH_MAX + 64];
	int r = set_change(s, &change, reterr);

	if (r < 0)
		return r;
	part_damaged_path(s, p, path);
	unlink(path);
	part_free(p);
	return 1;
}

int missing_expire(struct store_duck *s, int64_t before_ns, struct errinfo *reterr)
{
	for (size_t i = 0; i < s->missing.count; i++)
		if (s->missing.items[i]->received_ns < before_ns)
			return forget_part(s, s->missing.items[i], reterr);
	for (size_t i = 0; i < s->losses.count; i++)
		if (s->losses.items[i].until_ns && s->losses.items[i].until_ns < before_ns) {
			pthread_mutex_lock(&s->set_mutex);
			s->losses.items[i] = s->losses.items[--s->losses.count];
			pthread_mutex_unlock(&s->set_mutex);
			return 1; /* the next manifest says so */
		}
	return 0;
}
