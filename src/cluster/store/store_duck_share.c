/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_share.c - whose parts go first when all of them are too large: those of the owner that is furthest
 * over its share. Shares add up to the ceiling, so that some owner is over its own, and who is within it loses
 * nothing by what others send. */
#include <errno.h>
#include <string.h>

#include "cluster/store/store_duck_private.h"

struct owner {
	uint64_t bytes;
	unsigned percent; /* 0: an equal part of what is left */
	struct part *oldest;
};

void shares_free(struct store_share *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((char *)list[i].cluster);
	free(list);
}

static int compare(const void *a, const void *b)
{
	const struct store_share *x = a, *y = b;

	return strcmp(x->cluster, y->cluster);
}

static int compare_owners(const void *a, const void *b)
{
	const struct store_share *x = a, *y = b;
	int r = compare(a, b);

	return r ? r : (x->owner > y->owner) - (x->owner < y->owner);
}

/* Of one that stands there several times the lowest owner's. Returns how many are left. */
static size_t unite(struct store_share *list, size_t count)
{
	size_t n = 0;

	qsort(list, count, sizeof(*list), compare_owners);
	for (size_t i = 0; i < count; i++)
		if (n && !strcmp(list[n - 1].cluster, list[i].cluster))
			free((char *)list[i].cluster);
		else
			list[n++] = list[i];
	return n;
}

int shares_set(struct store *store, const struct store_share *list, size_t count)
{
	struct store_duck *s = (struct store_duck *)store;
	struct store_share *fresh = calloc(count + 1, sizeof(*fresh)), *old;
	size_t old_count;

	for (size_t i = 0; fresh && i < count; i++) {
		fresh[i] = list[i];
		fresh[i].cluster = strdup(list[i].cluster);
		if (!fresh[i].cluster) {
			shares_free(fresh, i);
			fresh = NULL;
		}
	}
	if (!fresh)
		return -ENOMEM;
	count = unite(fresh, count);
	pthread_mutex_lock(&s->set_mutex);
	old = s->shares;
	old_count = s->share_count;
	s->shares = fresh;
	s->share_count = count;
	pthread_mutex_unlock(&s->set_mutex);
	shares_free(old, old_count);
	return 0;
}

static uint32_t owner_of(const struct store_duck *s, const char *cluster)
{
	struct store_share key = {.cluster = cluster};
	const struct store_share *found =
		s->share_count ? bsearch(&key, s->shares, s->share_count, sizeof(key), compare)
			       : NULL;

	return found ? found->owner : 0;
}

/* How many bytes an owner without a share of its own may have. */
static uint64_t equal_part(const struct owner *owners, uint32_t count, uint64_t bytes_max)
{
	uint64_t given = 0, others = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!owners[i].oldest)
			continue;
		given += bytes_max / 100 * owners[i].percent;
		others += !owners[i].percent;
	}
	return others && given < bytes_max ? (bytes_max - given) / others : 0;
}

/* The oldest part of the one that is furthest over its share. */
static struct part *choose(const struct owner *owners, uint32_t count, uint64_t bytes_max)
{
	uint64_t equal = equal_part(owners, count, bytes_max), most = 0;
	struct part *p = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct owner *o = &owners[i];
		uint64_t share = o->percent ? bytes_max / 100 * o->percent : equal;

		if (o->bytes > share && o->bytes - share > most) {
			most = o->bytes - share;
			p = o->oldest;
		}
	}
	return p;
}

struct part *shares_find_over(struct store_duck *s)
{
	_cleanup_free_ struct owner *owners = NULL;
	struct part *found = NULL;
	uint32_t count = 1;

	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; i < s->share_count; i++)
		count = MAX(count, s->shares[i].owner + 1);
	owners = calloc(count, sizeof(*owners));
	for (size_t i = 0; owners && i < s->share_count; i++)
		owners[s->shares[i].owner].percent = s->shares[i].percent;
	for (size_t i = 0; owners && i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];
		struct owner *o = &owners[owner_of(s, p->cluster)];

		if (p->gone)
			continue;
		o->bytes += p->bytes;
		if (!o->oldest || p->received_ns < o->oldest->received_ns)
			o->oldest = p;
	}
	if (owners)
		found = choose(owners, count, s->settings.bytes_max);
	pthread_mutex_unlock(&s->set_mutex);
	return found;
}
