/* SPDX-License-Identifier: Apache-2.0 */
/* recent.c - see recent.h. Each list is one array in order of time: what comes is nearly in order
 * (a call comes when it ends, and is ordered by its start), so an insertion moves few. When a list
 * is full its oldest eighth goes at once, so that dropping is rare and cheap. */
#include "agent/correlate/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/macros.h"
#include "wire/op_kind.h"

#define NEVER_SLOW_NS (200 * NS_PER_US) /* excess that makes a call slow: detect.c */
#define SHORT_STAY_NS (20 * NS_PER_US)  /* ten of them together are not more than that */

/* All that is held begins with its time. */
STATIC_ASSERT(offsetof(struct event, start) == 0);
STATIC_ASSERT(offsetof(struct aggregate, bucket) == 0);
STATIC_ASSERT(offsetof(struct host_sample, time) == 0);
STATIC_ASSERT(offsetof(struct gpu_sample, time) == 0);
STATIC_ASSERT(offsetof(struct collective_row, start) == 0);

static int64_t time_at(const struct recent_list *l, size_t i, size_t size)
{
	wall_time t;

	memcpy(&t, (const char *)l->items + i * size, sizeof(t));
	return t.ns;
}

static void drop_oldest(struct recent_list *l, size_t n, size_t size)
{
	memmove(l->items, (char *)l->items + n * size, (l->count - n) * size);
	l->count -= n;
}

static int list_add(
	struct recent_list *l, const void *item, size_t size, size_t max, uint64_t *dropped)
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

bool recent_wants(const struct event *e)
{
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH)
		return e->dur_ns >= SHORT_STAY_NS;
	if (!op_kind_is_cuda(e->source))
		return true;
	if (e->dur_ns > NEVER_SLOW_NS || e->ret)
		return true;
	return !(e->flags & WIRE_NESTED) && op_kind_marks(e->source, e->op);
}

int recent_add_event(struct recent *r, const struct event *e)
{
	return list_add(&r->events, e, sizeof(*e), RECENT_EVENTS_MAX, &r->dropped);
}

int recent_add_aggregate(struct recent *r, const struct aggregate *a)
{
	uint64_t dropped = 0;

	return list_add(&r->aggregates, a, sizeof(*a), RECENT_AGGREGATES_MAX, &dropped);
}

int recent_add_sample(struct recent *r, const struct host_sample *s)
{
	uint64_t dropped = 0;

	return list_add(&r->samples, s, sizeof(*s), RECENT_SAMPLES_MAX, &dropped);
}

int recent_add_gpu(struct recent *r, const struct gpu_sample *s)
{
	uint64_t dropped = 0;

	return list_add(&r->gpus, s, sizeof(*s), RECENT_GPUS_MAX, &dropped);
}

int recent_add_collective(struct recent *r, const struct collective_row *c)
{
	uint64_t dropped = 0;

	return list_add(&r->collectives, c, sizeof(*c), RECENT_COLLECTIVES_MAX, &dropped);
}

static void forget(struct recent_list *l, size_t size, int64_t before_ns)
{
	size_t n = 0;

	while (n < l->count && time_at(l, n, size) < before_ns)
		n++;
	if (n)
		drop_oldest(l, n, size);
}

void recent_recording(struct recent *r, wall_time now, struct recording *ret)
{
	int64_t before_ns = now.ns - RECENT_NS;

	forget(&r->events, sizeof(struct event), before_ns);
	forget(&r->aggregates, sizeof(struct aggregate), before_ns);
	forget(&r->samples, sizeof(struct host_sample), before_ns);
	forget(&r->gpus, sizeof(struct gpu_sample), before_ns);
	forget(&r->collectives, sizeof(struct collective_row), before_ns);
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
	};
}

void recent_done(struct recent *r)
{
	free(r->events.items);
	free(r->aggregates.items);
	free(r->samples.items);
	free(r->gpus.items);
	free(r->collectives.items);
	*r = (struct recent){0};
}
