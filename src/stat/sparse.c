/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c - see sparse.h. Memory grows by what is needed and a quarter: most never grow again. */
#include "stat/sparse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* How many buckets of @more there are none of in @s. */
static uint32_t count_new(const struct sparse *s, const struct sketch *more)
{
	uint32_t n = 0, at = 0;

	for (uint32_t b = 0; b < BUCKET_COUNT; b++) {
		if (!more->hist[b])
			continue;
		while (at < s->used && s->buckets[at].bucket < b)
			at++;
		n += at == s->used || s->buckets[at].bucket != b;
	}
	return n;
}

int sparse_reserve(struct sparse *s, const struct sketch *more)
{
	uint32_t needed = more->count ? s->used + count_new(s, more) : 0, room;
	struct sparse_bucket *p;

	if (needed <= s->room)
		return 0;
	room = MIN(needed + needed / 4, (uint32_t)BUCKET_COUNT);
	p = reallocarray(s->buckets, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	s->buckets = p;
	s->room = room;
	return 0;
}

void sparse_add(struct sparse *s, const struct sketch *more)
{
	struct sketch all = {0};
	uint32_t n = 0;

	sparse_merge(&all, s);
	sketch_merge(&all, more);
	s->count = all.count;
	s->sum = all.sum;
	s->min = all.min;
	s->max = all.max;
	for (uint32_t b = 0; b < BUCKET_COUNT; b++)
		if (all.hist[b])
			s->buckets[n++] = (struct sparse_bucket){b, all.hist[b]};
	s->used = n;
}

void sparse_merge(struct sketch *to, const struct sparse *s)
{
	struct sketch all = {.count = s->count, .sum = s->sum, .min = s->min, .max = s->max};

	for (uint32_t i = 0; i < s->used; i++)
		all.hist[s->buckets[i].bucket] = s->buckets[i].count;
	sketch_merge(to, &all);
}

void sparse_done(struct sparse *s)
{
	free(s->buckets);
	*s = (struct sparse){0};
}
