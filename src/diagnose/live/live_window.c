/* SPDX-License-Identifier: Apache-2.0 */
/* live_window.c - see live_window.h. Each list is one array in order of time: what comes is nearly in order
 * (a call comes when it ends, and is ordered by its start), so an insertion moves few. When a list
 * is full its oldest eighth goes at once, so that dropping is rare and cheap. */
#include "diagnose/live/live_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/macros.h"
#include "wire/op_kind.h"
#include "base/search.h"
#include "stat/robust.h"

#define NEVER_SLOW_NS    (200 * NS_PER_US) /* a call that is shorter is in no account by itself */
#define SHORT_OFF_CPU_NS (20 * NS_PER_US)  /* ten of them together are not more than that */
#define JOINED_THREADS   1024

/* All that is held begins with its time. */
STATIC_ASSERT(offsetof(struct event, start) == 0);
STATIC_ASSERT(offsetof(struct aggregate, bucket) == 0);
STATIC_ASSERT(offsetof(struct host_sample, time) == 0);
STATIC_ASSERT(offsetof(struct gpu_sample, time) == 0);
STATIC_ASSERT(offsetof(struct collective_row, start) == 0);
STATIC_ASSERT(offsetof(struct ledger_row, start) == 0);
STATIC_ASSERT(offsetof(struct container_sample, time) == 0);

static int64_t time_at(const struct live_window_list *l, size_t i, size_t size)
{
	wall_time t;

	memcpy(&t, (const char *)l->items + i * size, sizeof(t));
	return t.ns;
}

static void drop_oldest(struct live_window_list *l, size_t n, size_t size)
{
	memmove(l->items, (char *)l->items + n * size, (l->count - n) * size);
	l->count -= n;
}

static int list_add(
	struct live_window_list *l, const void *item, size_t size, size_t max, uint64_t *dropped)
{
	size_t at;
	wall_time t;

	if (l->count == max) {
		drop_oldest(l, max / 8, size);
		*dropped += max / 8;
	}
	if (l->count == l->room && array_grow(&l->items, &l->room, l->count + 1, size, max) < 0)
		return -ENOMEM;
	memcpy(&t, item, sizeof(t));
	for (at = l->count; at > 0 && time_at(l, at - 1, size) > t.ns;)
		at--;
	memmove((char *)l->items + (at + 1) * size, (char *)l->items + at * size,
		(l->count - at) * size);
	memcpy((char *)l->items + at * size, item, size);
	l->count++;
	return 0;
}

bool live_window_wants(const struct event *e)
{
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH)
		return e->dur_ns >= SHORT_OFF_CPU_NS;
	if (!op_kind_is_cuda(e->source))
		return true;
	if (e->dur_ns > NEVER_SLOW_NS || e->ret || e->flags & WIRE_AFTER_GAP)
		return true;
	return !(e->flags & WIRE_NESTED) && op_kind_marks(e->source, e->op);
}

bool live_window_wants_aggregate(const struct aggregate *a)
{
	return op_kind_is_gpu(a->source);
}

static bool is_cpu_sample(const struct event *e)
{
	return e->source == SOURCE_HOST && e->op == HOST_CPU_SAMPLE;
}

/* Every second sample of a thread is added to the one before it, so that each thread keeps its sum;
 * threads whose numbers fall on the same place only join fewer. */
static void join_cpu_samples(struct live_window *r)
{
	struct event *events = r->events.items, *held[JOINED_THREADS] = {NULL};
	size_t kept = 0;

	r->cpu_samples = 0;
	for (size_t i = 0; i < r->events.count; i++) {
		struct event **slot = &held[events[i].tid % JOINED_THREADS];

		if (is_cpu_sample(&events[i]) && *slot && (*slot)->tid == events[i].tid) {
			(*slot)->dur_ns += events[i].dur_ns;
			(*slot)->weight += events[i].weight;
			*slot = NULL;
			continue;
		}
		events[kept] = events[i];
		if (is_cpu_sample(&events[kept])) {
			*slot = &events[kept];
			r->cpu_samples++;
		}
		kept++;
	}
	r->events.count = kept;
}

int live_window_add_event(struct live_window *r, const struct event *e)
{
	live_stacks_use(&r->stacks, e->stack_hash);
	if (is_cpu_sample(e)) {
		if (r->cpu_samples >= LIVE_WINDOW_CPU_SAMPLES_MAX)
			join_cpu_samples(r);
		r->cpu_samples++;
	}
	return list_add(&r->events, e, sizeof(*e), LIVE_WINDOW_EVENTS_MAX, &r->dropped);
}

int live_window_add_aggregate(struct live_window *r, const struct aggregate *a)
{
	uint64_t dropped = 0;

	return list_add(&r->aggregates, a, sizeof(*a), LIVE_WINDOW_AGGREGATES_MAX, &dropped);
}

int live_window_add_sample(struct live_window *r, const struct host_sample *s)
{
	uint64_t dropped = 0;

	return list_add(&r->samples, s, sizeof(*s), LIVE_WINDOW_SAMPLES_MAX, &dropped);
}

int live_window_add_gpu(struct live_window *r, const struct gpu_sample *s)
{
	uint64_t dropped = 0;

	return list_add(&r->gpus, s, sizeof(*s), LIVE_WINDOW_GPUS_MAX, &dropped);
}

int live_window_add_collective(struct live_window *r, const struct collective_row *c)
{
	uint64_t dropped = 0;

	return list_add(&r->collectives, c, sizeof(*c), LIVE_WINDOW_COLLECTIVES_MAX, &dropped);
}

int live_window_add_ledger(struct live_window *r, const struct ledger_row *row)
{
	uint64_t dropped = 0;

	live_stacks_use(&r->stacks, row->stack_hash);
	return list_add(&r->ledger, row, sizeof(*row), LIVE_WINDOW_LEDGER_MAX, &dropped);
}

int live_window_add_container(struct live_window *r, const struct container_sample *s)
{
	uint64_t dropped = 0;

	return list_add(&r->containers, s, sizeof(*s), LIVE_WINDOW_CONTAINERS_MAX, &dropped);
}

int live_window_add_stack(struct live_window *r, struct stack *s, size_t bytes)
{
	return live_stacks_add(&r->stacks, s, bytes);
}

static void forget(struct live_window_list *l, size_t size, int64_t before_ns)
{
	size_t n = 0;

	while (n < l->count && time_at(l, n, size) < before_ns)
		n++;
	if (n)
		drop_oldest(l, n, size);
}

void live_window_recording(struct live_window *r, wall_time now, struct recording *ret)
{
	int64_t before_ns = now.ns - LIVE_WINDOW_NS;

	forget(&r->events, sizeof(struct event), before_ns);
	forget(&r->aggregates, sizeof(struct aggregate), before_ns);
	forget(&r->samples, sizeof(struct host_sample), before_ns);
	forget(&r->gpus, sizeof(struct gpu_sample), before_ns);
	forget(&r->collectives, sizeof(struct collective_row), before_ns);
	forget(&r->ledger, sizeof(struct ledger_row), before_ns);
	forget(&r->containers, sizeof(struct container_sample), before_ns);
	*ret = (struct recording){
		.events = r->events.items,
		.event_count = r->events.count,
		.aggregates = r->aggregates.items,
		.aggregate_count = r->aggregates.count,
		.samples = r->samples.items,
		.sample_count = r->samples.count,
		.gpus = r->gpus.items,
		.gpu_count = r->gpus.count,
		.collectives = r->collectives.items,
		.collective_count = r->collectives.count,
		.ledger = r->ledger.items,
		.ledger_count = r->ledger.count,
		.containers = r->containers.items,
		.container_count = r->containers.count,
		.stacks = &r->stacks.list,
	};
}

void live_window_done(struct live_window *r)
{
	free(r->events.items);
	free(r->aggregates.items);
	free(r->samples.items);
	free(r->gpus.items);
	free(r->collectives.items);
	free(r->ledger.items);
	free(r->containers.items);
	live_stacks_done(&r->stacks);
	*r = (struct live_window){0};
}

/* Two arrays in order of hash. When there is no room a quarter goes
 * at once, so that looking for the oldest is rare. */

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
