/* SPDX-License-Identifier: Apache-2.0 */
/* live_stacks.c - see live_stacks.h. Two arrays in order of hash. When there is no room a quarter goes
 * at once, so that looking for the oldest is rare. */
#include "diagnose/live/live_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/macros.h"
#include "base/search.h"
#include "stat/robust.h"

#define DROPPED_SHARE 0.25

static size_t place_of(const struct live_stacks *l, uint64_t hash)
{
	return LOWER_BOUND(i, l->list.count, l->list.items[i]->hash < hash);
}

static bool is_there(const struct live_stacks *l, size_t at, uint64_t hash)
{
	return at < l->list.count && l->list.items[at]->hash == hash;
}

static int drop_unused(struct live_stacks *l)
{
	size_t count = l->list.count, kept = 0;
	_cleanup_free_ uint64_t *used = calloc(count + 1, sizeof(*used));
	uint64_t limit;

	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		used[i] = l->uses[i].used;
	robust_sort(used, count);
	limit = robust_quantile(used, count, DROPPED_SHARE);
	for (size_t i = 0; i < count; i++) {
		if (l->uses[i].used <= limit) {
			l->bytes -= l->uses[i].bytes;
			free(l->list.items[i]);
			continue;
		}
		l->list.items[kept] = l->list.items[i];
		l->uses[kept++] = l->uses[i];
	}
	l->list.count = kept;
	return 0;
}

static int make_room(struct live_stacks *l, size_t bytes)
{
	int r = 0;

	while (r == 0 && l->list.count &&
		(l->list.count == LIVE_STACKS_MAX || l->bytes + bytes > LIVE_STACKS_BYTES))
		r = drop_unused(l);
	if (r == 0)
		r = ARRAY_RESERVE(l->list.items, l->list_room, l->list.count + 1, LIVE_STACKS_MAX);
	return r < 0 ? r : ARRAY_RESERVE(l->uses, l->use_room, l->list.count + 1, LIVE_STACKS_MAX);
}

int live_stacks_add(struct live_stacks *l, struct stack *s, size_t bytes)
{
	size_t at = place_of(l, s->hash), behind;
	int r;

	if (is_there(l, at, s->hash)) {
		l->bytes += bytes - l->uses[at].bytes;
		free(l->list.items[at]);
		l->list.items[at] = s;
		l->uses[at] = (struct live_stack_use){++l->clock, bytes};
		return 0;
	}
	r = make_room(l, bytes);
	if (r < 0) {
		free(s);
		return -ENOMEM;
	}
	at = place_of(l, s->hash);
	behind = l->list.count - at;
	memmove(&l->list.items[at + 1], &l->list.items[at], behind * sizeof(*l->list.items));
	memmove(&l->uses[at + 1], &l->uses[at], behind * sizeof(*l->uses));
	l->list.items[at] = s;
	l->uses[at] = (struct live_stack_use){++l->clock, bytes};
	l->list.count++;
	l->bytes += bytes;
	return 0;
}

void live_stacks_use(struct live_stacks *l, uint64_t hash)
{
	size_t at = hash ? place_of(l, hash) : 0;

	if (hash && is_there(l, at, hash))
		l->uses[at].used = ++l->clock;
}

void live_stacks_done(struct live_stacks *l)
{
	for (size_t i = 0; i < l->list.count; i++)
		free(l->list.items[i]);
	free(l->list.items);
	free(l->uses);
	*l = (struct live_stacks){0};
}
