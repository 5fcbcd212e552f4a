/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_counters.c - see pusher_counters.h. */
#include "node/push/pusher_counters.h"

#include "node/push/pusher_signals.h"
#include "base/array.h"
#include "wire/op_kind.h"

enum direction { H2H, H2D, D2H, D2D, UNKNOWN };

void pusher_counters_init(struct pusher_counters *c, int64_t now_ns)
{
	int64_t begin = now_ns - now_ns % (int64_t)NODEDB_BUCKET_FINE;

	*c = (struct pusher_counters){.start_ns = begin, .settled_until_ns = begin};
}

void pusher_counters_done(struct pusher_counters *c)
{
	free(c->items);
	*c = (struct pusher_counters){0};
}

int64_t pusher_counters_begin(struct pusher_counters *c)
{
	for (size_t i = 0; i < c->count; i++)
		c->items[i].settling = c->items[i].fresh = (struct pusher_amounts){0};
	return c->settled_until_ns;
}

static int group_find(struct pusher_counters *c, const char *name, struct pusher_group **ret)
{
	int r;

	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->items[i].name, name)) {
			*ret = &c->items[i];
			return 0;
		}
	if (c->count >= PUSHER_GROUPS_MAX - 1 && strcmp(name, PUSHER_GROUP_OTHERS))
		return group_find(c, PUSHER_GROUP_OTHERS, ret);
	r = ARRAY_RESERVE(c->items, c->room, c->count + 1, PUSHER_GROUPS_MAX);
	if (r < 0)
		return r;
	*ret = &c->items[c->count++];
	**ret = (struct pusher_group){0};
	snprintf((*ret)->name, sizeof((*ret)->name), "%.16s", name);
	return 0;
}

/* Of the runtime's copies only the argument tells, which aggregates do not have. */
static enum direction direction_of(const struct recent_calls *c)
{
	if (c->source != SOURCE_DRIVER)
		return c->op == CUDA_MEMCPY_PEER || c->op == CUDA_MEMCPY_PEER_ASYNC ? D2D : UNKNOWN;
	switch (c->op) {
	case DRIVER_MEMCPY_HTOD:
	case DRIVER_MEMCPY_HTOD_ASYNC: return H2D;
	case DRIVER_MEMCPY_DTOH:
	case DRIVER_MEMCPY_DTOH_ASYNC: return D2H;
	case DRIVER_MEMCPY_DTOD:
	case DRIVER_MEMCPY_DTOD_ASYNC:
	case DRIVER_MEMCPY_PEER:
	case DRIVER_MEMCPY_PEER_ASYNC: return D2D;
	default: return UNKNOWN;
	}
}

/* A batch's argument is how many copies it has, not bytes. */
static bool is_copy(const struct recent_calls *c)
{
	return !c->nested && op_kind_is_cuda(c->source) &&
	       op_kind_line(c->source, c->op) == LEDGER_COPY &&
	       c->op != (c->source == SOURCE_CUDA ? CUDA_MEMCPY_BATCH : DRIVER_MEMCPY_BATCH);
}

int pusher_counters_add(struct pusher_counters *c, const struct recent_calls *row,
	const char *group, int64_t now_ns)
{
	bool is_launch = pusher_is_launch(row);
	struct pusher_amounts *to;
	struct pusher_group *g;
	int r;

	if (row->bucket_ns < c->settled_until_ns || (!is_launch && !is_copy(row)))
		return 0;
	r = group_find(c, group, &g);
	if (r < 0)
		return r;
	to = row->bucket_ns < now_ns - PUSHER_SETTLE_NS ? &g->settling : &g->fresh;
	if (is_launch)
		to->launches += row->count;
	else
		to->copied_bytes[direction_of(row)] += row->bytes;
	return 0;
}

int pusher_counters_stall(struct pusher_counters *c, const char *group, uint64_t ns)
{
	struct pusher_group *g;
	int r = ns ? group_find(c, group, &g) : 0;

	if (r == 0 && ns)
		g->settled.stall_ns += ns;
	return r;
}

static void settle(struct pusher_amounts *to, struct pusher_amounts *from)
{
	to->launches += from->launches;
	for (size_t d = 0; d < ARRAY_SIZE(to->copied_bytes); d++)
		to->copied_bytes[d] += from->copied_bytes[d];
	*from = (struct pusher_amounts){0};
}

void pusher_counters_end(struct pusher_counters *c, int64_t now_ns)
{
	int64_t until = now_ns - PUSHER_SETTLE_NS;

	/* The first bucket that was not settled: those are multiples of their width. */
	until += (int64_t)NODEDB_BUCKET_FINE - 1;
	until -= until % (int64_t)NODEDB_BUCKET_FINE;
	c->settled_until_ns = MAX(c->settled_until_ns, until);
	c->launches = 0;
	for (size_t i = 0; i < c->count; i++) {
		settle(&c->items[i].settled, &c->items[i].settling);
		c->launches += c->items[i].settled.launches + c->items[i].fresh.launches;
	}
}

void pusher_counters_roll(struct pusher_counters *c)
{
	for (size_t i = 0; i < c->count; i++)
		settle(&c->items[i].settled, &c->items[i].fresh);
}

int pusher_counters_list(
	const struct pusher_counters *c, struct push_counters **ret, size_t *ret_count)
{
	struct push_counters *list = calloc(c->count ? c->count : 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++) {
		const struct pusher_group *g = &c->items[i];

		list[i] = (struct push_counters){.cohort = g->name,
			.launches = g->settled.launches + g->fresh.launches,
			.stall_ns = g->settled.stall_ns};
		for (size_t d = 0; d < ARRAY_SIZE(g->fresh.copied_bytes); d++)
			list[i].copied_bytes[d] =
				g->settled.copied_bytes[d] + g->fresh.copied_bytes[d];
	}
	*ret = list;
	*ret_count = c->count;
	return 0;
}
