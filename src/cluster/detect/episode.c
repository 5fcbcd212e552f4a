/* SPDX-License-Identifier: Apache-2.0 */
/* episode.c - the cluster's incidents: each has one id and one UUID from its beginning to its end, and
 * is told of when it begins, when its cause is another, and when it ends. */
#include "cluster/detect/fleet_private.h"

#include "base/search.h"
#include "base/clock.h"
#include "base/hash.h"

#define LATE_NOW_NS                                                                                \
	(5 * NS_PER_S) /* after it was seen: one that was late once is not late for ever */
#define SHOWN_NS (15 * NS_PER_S)

struct episode *episode_find(
	const struct fleet *f, const char *cluster, enum fleet_problem problem, uint64_t key)
{
	for (size_t i = 0; i < f->live_count; i++) {
		const struct episode *e = f->live[i];

		if (e->key == key && e->e.problem == problem && !strcmp(e->e.cluster, cluster))
			return f->live[i];
	}
	return NULL;
}

struct episode *episode_of_node(
	const struct fleet *f, enum fleet_problem problem, const char *cluster, const char *node)
{
	for (size_t i = 0; i < f->live_count; i++) {
		const struct fleet_episode *e = &f->live[i]->e;

		if (e->problem == problem && strcmp(e->cluster, cluster) == 0 &&
			strcmp(e->node, node) == 0)
			return f->live[i];
	}
	return NULL;
}

/* A UUID of version 4 in its form; as random as the seed. */
static void uuid_make(uint64_t seed, uint64_t id, char out[PUSH_EVENT_MAX])
{
	uint64_t a = hash_number(seed ^ hash_number(2 * id)), b = hash_number(seed + 2 * id + 1);

	snprintf(out, PUSH_EVENT_MAX, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
		(unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
		((unsigned)(b >> 48) & 0x3fff) | 0x8000, (unsigned long long)(b & 0xffffffffffff));
}

void episode_set_cluster(struct episode *e, struct cluster *c)
{
	e->cluster = c;
	if (c)
		c->episodes++;
}

/* make_room - of the cluster with the most episodes the least one ends, unless @c has as many: none keeps others
 * from being told of theirs. */
static bool make_room(struct fleet *f, const struct cluster *c)
{
	const struct cluster *most = c;
	size_t cursor = 0, i = f->live_count;

	for (const struct cluster *x; (x = idmap_next(&f->clusters, &cursor, NULL));)
		if (x->episodes > most->episodes)
			most = x;
	f->stats.notices_lost++;
	if (most->episodes <= c->episodes + 1)
		return false;
	while (f->live[--i]->cluster != most)
		;
	episode_end(f, f->live[i]);
	return true;
}

struct episode *episode_get(
	struct fleet *f, struct cluster *c, enum fleet_problem problem, uint64_t key)
{
	struct episode *e = c ? episode_find(f, c->name, problem, key) : NULL;

	if (e) {
		e->seen_ns = f->now_ns;
		return e;
	}
	if (!c) /* there was no room for it */
		f->stats.notices_lost++;
	if (!c || (f->live_count == EPISODES_MAX && !make_room(f, c)))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e) {
		f->stats.notices_lost++;
		return NULL;
	}
	e->key = key;
	episode_set_cluster(e, c);
	e->born_ns = e->seen_ns = f->now_ns;
	e->e = (struct fleet_episode){.id = ++f->next_id,
		.problem = problem,
		.rank = -1,
		.stage = -1,
		.from_rank = -1,
		.to_rank = -1,
		.since_ns = f->now_ns};
	memcpy(e->e.cluster, c->name, sizeof(e->e.cluster));
	e->cluster_key = hash_name(c->name, strlen(c->name));
	uuid_make(f->settings.seed, e->e.id, e->e.event);
	f->live[f->live_count++] = e;
	return e;
}

static void notice(struct fleet *f, enum fleet_notice_kind kind, const struct episode *e)
{
	if (f->notice_count == NOTICES_MAX) {
		f->stats.notices_lost++;
		return;
	}
	f->notices[(f->notice_first + f->notice_count++) % NOTICES_MAX] =
		(struct fleet_notice){.kind = kind, .episode = e->e};
}

void episode_tell(struct fleet *f, struct episode *e)
{
	uint64_t cause = hash_bytes(e->e.cause, strlen(e->e.cause));

	e->e.provisional = false;
	fleet_sentence(&e->e);
	if (!e->told)
		notice(f, FLEET_NOTICE_BEGAN, e);
	else if (cause != e->told_cause)
		notice(f, FLEET_NOTICE_CHANGED, e);
	e->told = true;
	e->told_cause = cause;
}

int64_t fleet_episode_end(const struct fleet_episode *e, int64_t now_ns)
{
	if (e->until_ns)
		return e->until_ns;
	return e->late_ns > e->since_ns ? MIN(e->late_ns, now_ns) : now_ns;
}

/* The oldest of the cluster that has the most of them is forgotten. */
static void forget_one(struct fleet *f)
{
	uintptr_t most = 0;
	uint64_t of = 0, id;
	size_t cursor = 0, i = 0;

	for (void *n; (n = idmap_next(&f->ended_of, &cursor, &id));)
		if ((uintptr_t)n > most) {
			most = (uintptr_t)n;
			of = id;
		}
	while (most && f->ended[i]->cluster_key != of)
		i++;
	if (most > 1)
		(void)idmap_put(&f->ended_of, of, (void *)(most - 1));
	else
		idmap_remove(&f->ended_of, of);
	free(f->ended[i]);
	memmove(&f->ended[i], &f->ended[i + 1], (--f->ended_count - i) * sizeof(struct episode *));
}

static void remember(struct fleet *f, struct episode *e)
{
	uintptr_t before;

	if (f->ended_count == ENDED_MAX)
		forget_one(f);
	before = (uintptr_t)idmap_get(&f->ended_of, e->cluster_key);
	if (idmap_put(&f->ended_of, e->cluster_key, (void *)(before + 1)) < 0) {
		free(e); /* no memory */
		return;
	}
	f->ended[f->ended_count++] = e;
}

void episode_end(struct fleet *f, struct episode *e)
{
	size_t i = 0;

	while (f->live[i] != e)
		i++;
	memmove(&f->live[i], &f->live[i + 1], (--f->live_count - i) * sizeof(struct episode *));
	if (e->cluster)
		e->cluster->episodes--;
	e->cluster = NULL;
	e->e.until_ns = fleet_episode_end(&e->e, f->now_ns);
	e->e.cost.per_hour = 0;
	if (e->told)
		notice(f, FLEET_NOTICE_ENDED, e);
	remember(f, e);
}

void episodes_forget(struct fleet *f, const struct cluster *c)
{
	for (size_t i = f->live_count; i-- > 0;)
		if (f->live[i]->cluster == c)
			episode_end(f, f->live[i]);
}

void episode_end_unseen(
	struct fleet *f, const struct cluster *c, enum fleet_problem problem, uint64_t after_ns)
{
	for (size_t i = f->live_count; i-- > 0;) {
		struct episode *e = f->live[i];

		if (e->e.problem == problem && (!c || e->cluster == c) &&
			f->now_ns - e->seen_ns >= (int64_t)after_ns)
			episode_end(f, e);
	}
}

bool episode_is_late(const struct fleet *f, const struct episode *e)
{
	return e->e.problem == FLEET_STRAGGLER &&
	       (e->told || f->now_ns - e->seen_ns < (int64_t)LATE_NOW_NS);
}

size_t fleet_late(
	const struct fleet *f, const char *cluster, const char *node, uint32_t *pids, size_t max)
{
	const struct cluster *c = cluster_find(f, cluster);
	size_t n = 0;

	for (size_t i = 0; i < f->live_count && n < max; i++) {
		const struct fleet_episode *e = &f->live[i]->e;

		if (episode_is_late(f, f->live[i]) && e->pid && !strcmp(e->node, node) &&
			!strcmp(e->cluster, cluster))
			pids[n++] = e->pid;
	}
	return c && !n ? slower_pids(f, c, node, pids, max) : n;
}

void episode_account(struct fleet *f, uint64_t elapsed_ns)
{
	for (size_t i = 0; i < f->live_count; i++) {
		struct episode *e = f->live[i];
		int64_t to = e->rated_ns ? MIN(e->rated_ns, f->now_ns) : f->now_ns;
		int64_t from = e->paid_ns ?: to - (int64_t)elapsed_ns;
		double lost = e->lost_rate * (double)MAX(to - from, INT64_C(0)) / NS_PER_S;

		if (e->paid_ns || e->lost_rate > 0)
			e->paid_ns = MAX(to, from);
		e->e.cost.gpu_seconds += lost;
		e->e.cost.per_hour = e->lost_rate * e->rate_hourly;
		e->e.cost.total += lost / 3600 * e->rate_hourly;
		e->e.cost.watt_hours += lost / 3600 * e->watts;
	}
}

ORDER_OF_POINTERS(by_weight, struct episode,
	DESCENDING(lost_rate) ?: DESCENDING(e.share) ?: ASCENDING(e.id))

void episode_sort(struct fleet *f)
{
	SORT(f->live, f->live_count, by_weight);
}

/* What has happened once is news for a while only, though it is remembered for longer. */
static bool is_shown(const struct fleet *f, const struct episode *e)
{
	return e->e.provisional && !e->e.until_ns && f->now_ns - e->seen_ns < (int64_t)SHOWN_NS;
}

bool fleet_episode_next(
	const struct fleet *f, const char *cluster, size_t *cursor, struct fleet_episode *ret)
{
	while (*cursor < f->live_count + f->ended_count) {
		size_t i = (*cursor)++;
		const struct episode *e;

		if (i < f->live_count) {
			e = f->live[i];
		} else { /* the newest first */
			e = f->ended[f->ended_count - 1 - (i - f->live_count)];
		}
		if ((!e->told && !is_shown(f, e)) ||
			(cluster && strcmp(e->e.cluster, cluster) != 0))
			continue;
		*ret = e->e;
		return true;
	}
	return false;
}

bool fleet_notice(struct fleet *f, struct fleet_notice *ret)
{
	if (!f->notice_count)
		return false;
	*ret = f->notices[f->notice_first];
	f->notice_first = (f->notice_first + 1) % NOTICES_MAX;
	f->notice_count--;
	return true;
}

void episodes_done(struct fleet *f)
{
	for (size_t i = 0; f->live && i < f->live_count; i++)
		free(f->live[i]);
	for (size_t i = 0; f->ended && i < f->ended_count; i++)
		free(f->ended[i]);
	free(f->live);
	free(f->ended);
	idmap_done(&f->ended_of);
	free(f->notices);
}
