/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_table.c - see straggler_table.h. Invariant: an entry is in the list of its hash's bucket
 * and in the list by age, or in neither. */
#include "notify/sink/straggler_table.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"

struct entry {
	struct straggler of;
	size_t bucket;
	struct entry *next_in_bucket;
	struct entry *older, *newer;
};

struct straggler_table {
	struct entry **buckets; /* as many as there may be entries */
	struct entry *oldest, *newest;
	size_t count, max;
};

int straggler_table_new(size_t max, struct straggler_table **ret)
{
	_cleanup_free_ struct straggler_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->max = max;
	t->buckets = calloc(max, sizeof(struct entry *));
	if (!t->buckets)
		return -ENOMEM;
	*ret = TAKE(t);
	return 0;
}

void straggler_table_free(struct straggler_table *t)
{
	for (struct entry *e = t->oldest, *next; e; e = next) {
		next = e->newer;
		free(e);
	}
	free(t->buckets);
	free(t);
}

static size_t bucket_of(const struct straggler_table *t, const struct straggler *s)
{
	uint64_t cluster = hash_bytes(s->cluster, strlen(s->cluster));

	return (size_t)(hash_number(cluster ^ hash_bytes(s->node, strlen(s->node)) * 3) % t->max);
}

static struct entry *find(const struct straggler_table *t, const struct straggler *s, size_t bucket)
{
	struct entry *e = t->buckets[bucket];

	while (e && (strcmp(e->of.node, s->node) != 0 || strcmp(e->of.cluster, s->cluster) != 0))
		e = e->next_in_bucket;
	return e;
}

static void take_out(struct straggler_table *t, struct entry *e)
{
	struct entry **link = &t->buckets[e->bucket];

	while (*link != e)
		link = &(*link)->next_in_bucket;
	*link = e->next_in_bucket;
	*(e->older ? &e->older->newer : &t->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &t->newest) = e->older;
	t->count--;
	free(e);
}

int straggler_table_add(struct straggler_table *t, const struct straggler *s)
{
	size_t bucket = bucket_of(t, s);
	bool is_full = t->count == t->max;
	struct entry *e;

	if (find(t, s, bucket))
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	if (is_full)
		take_out(t, t->oldest);
	e->of = *s;
	e->bucket = bucket;
	e->next_in_bucket = t->buckets[bucket];
	t->buckets[bucket] = e;
	e->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = e;
	t->newest = e;
	t->count++;
	return is_full;
}

void straggler_table_remove(struct straggler_table *t, const struct straggler *s)
{
	struct entry *e = find(t, s, bucket_of(t, s));

	if (e)
		take_out(t, e);
}

const struct straggler *straggler_table_next(const struct straggler_table *t, const void **cursor)
{
	const struct entry *e = *cursor ? ((const struct entry *)*cursor)->newer : t->oldest;

	*cursor = e;
	return e ? &e->of : NULL;
}
