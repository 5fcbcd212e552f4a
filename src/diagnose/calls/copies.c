/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - see copies.h. Sums come from aggregates, which hold all calls; rates and directions
 * from the stored rows, which are a selection. Driver calls inside runtime calls are left out.
 * Copies between devices do not cross the link that is meant here. O(n log processes).
 *
 * Rows prefer slow copies, so that the best rate is also looked for in the aggregates: the mean of
 * the copies of five seconds is no more than the best of them.
 *
 * An asynchronous copy returns at once, with a rate that no link has, unless its memory is not
 * pinned: then the driver copies it in the call. Such copies count as synchronous. */
#include "diagnose/calls/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BYTES  (1u << 20) /* smaller ones cost what any call costs */
#define KIND_TO_DEV  1          /* cudaMemcpyKind */
#define KIND_TO_HOST 2
#define KIND_DEFAULT 4

#define HELD_RATE 40e9 /* bytes/s: nothing is copied faster through the CPU */

enum copy_way { WAY_NONE, WAY_SYNC, WAY_QUEUED };

static enum copy_way way_of(unsigned source, unsigned op)
{
	if (source == SOURCE_CUDA)
		switch (op) {
		case CUDA_MEMCPY:
		case CUDA_MEMCPY_2D: return WAY_SYNC;
		case CUDA_MEMCPY_ASYNC:
		case CUDA_MEMCPY_2D_ASYNC: return WAY_QUEUED;
		}
	if (source == SOURCE_DRIVER)
		switch (op) {
		case DRIVER_MEMCPY:
		case DRIVER_MEMCPY_HTOD:
		case DRIVER_MEMCPY_DTOH: return WAY_SYNC;
		case DRIVER_MEMCPY_ASYNC:
		case DRIVER_MEMCPY_HTOD_ASYNC:
		case DRIVER_MEMCPY_DTOH_ASYNC: return WAY_QUEUED;
		}
	return WAY_NONE;
}

static unsigned kind_of(const struct event *e)
{
	if (e->source == SOURCE_CUDA)
		return (unsigned)MIN(e->arg1, (uint64_t)KIND_DEFAULT);
	switch (e->op) {
	case DRIVER_MEMCPY_HTOD:
	case DRIVER_MEMCPY_HTOD_ASYNC: return KIND_TO_DEV;
	case DRIVER_MEMCPY_DTOH:
	case DRIVER_MEMCPY_DTOH_ASYNC: return KIND_TO_HOST;
	default: return KIND_DEFAULT;
	}
}

static int by_pid(const void *a, const void *b)
{
	uint32_t x = ((const struct copies *)a)->pid, y = ((const struct copies *)b)->pid;

	return (x > y) - (x < y);
}

static struct copies *copies_of(const struct copies_table *t, uint32_t pid)
{
	struct copies key = {.pid = pid};

	return t->count ? bsearch(&key, t->items, t->count, sizeof(key), by_pid) : NULL;
}

/* The processes are the groups of source 0 that baseline.c made. */
static int add_processes(const struct detector_input *s, struct copies_table *t)
{
	const struct op_table *ops = &s->slow->ops;

	t->items = calloc(COPIES_PROCESSES_MAX, sizeof(*t->items));
	if (!t->items)
		return -ENOMEM;
	for (size_t i = 0; i < ops->count && t->count < COPIES_PROCESSES_MAX; i++)
		if (ops->groups[i].source == 0)
			t->items[t->count++] = (struct copies){.pid = ops->groups[i].pid,
				.device = -1,
				.first_ns = ops->groups[i].first_ns,
				.last_ns = ops->groups[i].last_ns};
	qsort(t->items, t->count, sizeof(*t->items), by_pid);
	return 0;
}

static double rate_of(uint64_t bytes, uint64_t ns)
{
	return ns ? (double)bytes * (double)NS_PER_S / (double)ns : 0;
}

/* Whether they are large on average, and their bytes can be believed. */
static bool is_large(const struct aggregate *a)
{
	return a->sketch.count && a->sum_arg0 <= UINT64_C(1) << 50 &&
	       a->sum_arg0 / a->sketch.count >= LARGE_BYTES;
}

static void held_add(struct held_copies *h, uint8_t source, uint16_t op, uint64_t calls,
	uint64_t ns, uint64_t bytes)
{
	h->calls += calls;
	h->ns += ns;
	h->bytes += bytes;
	h->source = source;
	h->op = op;
}

static void add_aggregates(const struct recording *rec, struct copies_table *t)
{
	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];
		enum copy_way way = a->flags & WIRE_NESTED ? WAY_NONE : way_of(a->source, a->op);
		struct copies *c = way == WAY_NONE ? NULL : copies_of(t, a->pid);
		bool is_held;

		if (!c)
			continue;
		is_held = way == WAY_QUEUED && is_large(a) &&
			  rate_of(a->sum_arg0, a->sketch.sum) < HELD_RATE;
		if (way == WAY_QUEUED && !is_held) {
			c->queued_bytes += a->sum_arg0;
			continue;
		}
		if (is_large(a)) {
			c->best = MAX(c->best, rate_of(a->sum_arg0, a->sketch.sum));
			t->best = MAX(t->best, c->best);
		}
		if (is_held)
			held_add(&c->held, a->source, a->op, a->sketch.count, a->sketch.sum,
				a->sum_arg0);
		c->calls += a->sketch.count;
		c->ns += a->sketch.sum;
		c->bytes += a->sum_arg0;
		if (a->sketch.sum > c->op_ns) {
			c->op_ns = a->sketch.sum;
			c->source = a->source;
			c->op = a->op;
		}
	}
}

static void keep_worst(struct copies *c, const struct event *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->worst); i++) {
		const struct event *other = c->worst[i];

		if (other && other->dur_ns >= e->dur_ns)
			continue;
		c->worst[i] = e;
		if (!other)
			return;
		e = other;
	}
}

static void add_row(struct copies_table *t, struct held_copies *rows, const struct event *e)
{
	enum copy_way way = e->flags & WIRE_NESTED ? WAY_NONE : way_of(e->source, e->op);
	struct copies *c = way == WAY_NONE || e->ret ? NULL : copies_of(t, e->pid);
	unsigned kind = kind_of(e);
	struct copy_rates *r;
	double rate;

	if (!c || !e->dur_ns || e->arg0 > UINT64_C(1) << 50)
		return;
	memcpy(c->comm, e->comm, COMM_LEN);
	c->comm[COMM_LEN - 1] = 0;
	c->device = e->device;
	if (kind != KIND_TO_DEV && kind != KIND_TO_HOST) {
		c->other_bytes += e->arg0;
		return;
	}
	rate = rate_of(e->arg0, e->dur_ns);
	if (e->arg0 < LARGE_BYTES || (way == WAY_QUEUED && rate >= HELD_RATE))
		return;
	if (way == WAY_QUEUED)
		held_add(&rows[c - t->items], e->source, e->op, 1, e->dur_ns, e->arg0);
	c->best = MAX(c->best, rate);
	t->best = MAX(t->best, rate);
	r = kind == KIND_TO_DEV ? &c->to_device : &c->to_host;
	r->bytes += e->arg0;
	r->ns += e->dur_ns;
	r->count++;
	keep_worst(c, e);
}

/* Among many small copies the aggregates do not show the held ones, which are slow and have rows. */
static void use_rows(struct copies *c, const struct held_copies *rows)
{
	if (rows->ns <= c->held.ns)
		return;
	c->calls += rows->calls - MIN(c->held.calls, rows->calls);
	c->ns += rows->ns - c->held.ns;
	c->bytes += rows->bytes - MIN(c->held.bytes, rows->bytes);
	c->queued_bytes -= MIN(c->queued_bytes, rows->bytes);
	c->held = *rows;
	if (rows->ns > c->op_ns) {
		c->op_ns = rows->ns;
		c->source = rows->source;
		c->op = rows->op;
	}
}

int copies_run(const struct detector_input *s, struct copies_table *ret)
{
	_cleanup_free_ struct held_copies *rows = NULL;

	*ret = (struct copies_table){0};
	if (!s->rec->aggregate_count)
		return 0;
	rows = calloc(COPIES_PROCESSES_MAX, sizeof(*rows));
	if (!rows || add_processes(s, ret) < 0)
		return -ENOMEM;
	add_aggregates(s->rec, ret);
	for (size_t i = 0; i < s->rec->event_count; i++)
		if (baseline_is_sane(&s->rec->events[i]))
			add_row(ret, rows, &s->rec->events[i]);
	for (size_t i = 0; i < ret->count; i++)
		use_rows(&ret->items[i], &rows[i]);
	return 0;
}

void copies_done(struct copies_table *t)
{
	free(t->items);
	*t = (struct copies_table){0};
}
