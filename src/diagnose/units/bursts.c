/* SPDX-License-Identifier: Apache-2.0 */
/* bursts.c - see bursts.h. Stored rows are a selection, but every wait for the GPU is stored, so a
 * process that works has rows. Rows of one process and device closer than 50 ms are one burst:
 * shorter than anything that a person would call a pause, longer than a step. Processes beyond the
 * ceiling are left out. O(n + bursts log bursts). */
#include "diagnose/units/bursts.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/accounts/baseline.h"
#include "base/array.h"
#include "base/idmap.h"
#include "wire/op_kind.h"

#define JOIN_NS     ((int64_t)(50 * NS_PER_MS))
#define OPEN_MAX    4096 /* processes x devices */
#define DEVICES_MAX 256

static int burst_append(struct bursts *b, struct burst burst)
{
	if (ARRAY_RESERVE(b->items, b->room, b->count + 1, CORRELATE_ROWS_MAX) < 0)
		return -ENOMEM;
	b->items[b->count++] = burst;
	return 0;
}

static int burst_add(struct bursts *b, struct idmap *open, const struct event *e, uint64_t key)
{
	size_t at = b->count;
	int r = burst_append(
		b, (struct burst){e->start.ns, event_end_ns(e), e->pid, MAX(e->device, 0)});

	/* The place in the array, as that may move. */
	return r < 0 ? r : idmap_put(open, key, (void *)(uintptr_t)(at + 1));
}

static int take(struct bursts *b, struct idmap *open, const struct event *e)
{
	uint64_t key = (uint64_t)e->pid << 8 | (uint64_t)MAX(e->device, 0);
	uintptr_t at = (uintptr_t)idmap_get(open, key);
	struct burst *last = at ? &b->items[at - 1] : NULL;
	int r;

	if (last && e->start.ns <= last->end_ns + JOIN_NS &&
		event_end_ns(e) >= last->start_ns - JOIN_NS) {
		last->start_ns = MIN(last->start_ns, e->start.ns);
		last->end_ns = MAX(last->end_ns, event_end_ns(e));
		return 0;
	}
	r = burst_add(b, open, e, key);
	if (r == -ENOBUFS) {
		b->count--;
		return 0;
	}
	return r;
}

static int by_device_and_start(const void *a, const void *b)
{
	const struct burst *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

int bursts_run(const struct recording *rec, struct bursts *ret)
{
	_cleanup_(idmap_done) struct idmap open = IDMAP_INIT(OPEN_MAX);
	int r = 0;

	*ret = (struct bursts){0};
	for (size_t i = 0; r == 0 && i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (op_kind_is_cuda(e->source) && !(e->flags & WIRE_NESTED) &&
			e->device < DEVICES_MAX && baseline_is_sane(e))
			r = take(ret, &open, e);
	}
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_device_and_start);
	return r;
}

int bursts_add_untraced(const struct recording *rec, struct bursts *b)
{
	size_t traced = b->count;

	for (size_t i = 1; i < traced; i++)
		if (b->items[i].pid != b->items[0].pid)
			return 0;
	for (size_t i = 0; traced && i < rec->gpu_count; i++) {
		const struct gpu_sample *g = &rec->gpus[i];
		int64_t from = g->time.ns - (int64_t)NS_PER_S;
		struct burst *last = b->count > traced ? &b->items[b->count - 1] : NULL;

		if (g->processes < 2 || g->index != b->items[0].device || from < 0 ||
			g->time.ns > INT64_C(1) << 62)
			continue;
		if (last && from >= last->start_ns && from <= last->end_ns + JOIN_NS)
			last->end_ns = MAX(last->end_ns, g->time.ns);
		else if (burst_append(b, (struct burst){from, g->time.ns, 0, b->items[0].device}) <
			 0)
			return -ENOMEM;
	}
	if (b->count)
		qsort(b->items, b->count, sizeof(*b->items), by_device_and_start);
	return 0;
}

void bursts_done(struct bursts *b)
{
	free(b->items);
	*b = (struct bursts){0};
}
