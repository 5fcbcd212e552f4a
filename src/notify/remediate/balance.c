/* SPDX-License-Identifier: Apache-2.0 */
/* balance.c - see remediate.h. */
#include "notify/remediate/remediate.h"

#include "wire/op_kind.h"

struct balance_alloc {
	uint64_t bytes;
	int64_t at_ns;
};

void balance_init(struct balance *b, size_t allocs_max)
{
	*b = (struct balance){.processes = IDMAP_INIT(BALANCE_PROCESSES), .allocs_max = allocs_max};
}

static void process_free(struct balance_process *p)
{
	size_t cursor = 0;
	void *alloc;

	while ((alloc = idmap_next(&p->allocs, &cursor, NULL)))
		free(alloc);
	idmap_done(&p->allocs);
	free(p);
}

void balance_done(struct balance *b)
{
	struct balance_process *p;
	size_t cursor = 0;

	while ((p = idmap_next(&b->processes, &cursor, NULL)))
		process_free(p);
	idmap_done(&b->processes);
}

static struct balance_process *process_of(struct balance *b, const struct event *e)
{
	struct balance_process *p = idmap_get(&b->processes, e->pid);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = e->pid;
	p->allocs = IDMAP_INIT(b->allocs_max);
	memcpy(p->comm, e->comm, sizeof(p->comm));
	if (idmap_put(&b->processes, e->pid, p) < 0)
		free(TAKE(p)); /* more than are followed */
	return p;
}

static bool is_alloc(const struct event *e)
{
	if (e->source == SOURCE_CUDA)
		return e->op == CUDA_MALLOC || e->op == CUDA_MALLOC_MANAGED ||
		       e->op == CUDA_MALLOC_PITCH;
	return e->source == SOURCE_DRIVER &&
	       (e->op == DRIVER_MALLOC || e->op == DRIVER_MALLOC_MANAGED ||
		       e->op == DRIVER_MALLOC_PITCH);
}

static void forget(struct balance_process *p, uint64_t pointer)
{
	struct balance_alloc *a = idmap_remove(&p->allocs, pointer);

	if (!a)
		return;
	p->bytes -= a->bytes;
	p->changed = true;
	free(a);
}

static void forget_oldest(struct balance_process *p)
{
	int64_t oldest_ns = INT64_MAX;
	uint64_t pointer, oldest = 0;
	struct balance_alloc *a;
	size_t cursor = 0;

	while ((a = idmap_next(&p->allocs, &cursor, &pointer)))
		if (a->at_ns < oldest_ns) {
			oldest_ns = a->at_ns;
			oldest = pointer;
		}
	forget(p, oldest);
}

static void take_alloc(struct balance *b, const struct event *e)
{
	struct balance_process *p = process_of(b, e);
	struct balance_alloc *a;

	if (!p)
		return;
	forget(p, e->arg1); /* its free was not seen */
	if (p->allocs.used == b->allocs_max)
		forget_oldest(p);
	a = calloc(1, sizeof(*a));
	if (!a || idmap_put(&p->allocs, e->arg1, a) < 0) {
		free(a);
		return;
	}
	*a = (struct balance_alloc){.bytes = e->arg0, .at_ns = event_end_ns(e)};
	p->bytes += a->bytes;
	p->last_bytes = a->bytes;
	p->device = e->device;
	p->changed = true;
}

void balance_take(struct balance *b, const struct event *e)
{
	struct balance_process *p;

	if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXIT) {
		p = idmap_remove(&b->processes, e->pid);
		if (p)
			process_free(p);
		return;
	}
	/* A driver's call inside the runtime's is the same memory. */
	if (e->flags & WIRE_NESTED || e->ret)
		return;
	if (is_alloc(e) && e->arg1) {
		take_alloc(b, e);
	} else if ((e->source == SOURCE_CUDA && (e->op == CUDA_FREE || e->op == CUDA_FREE_ASYNC)) ||
		   (e->source == SOURCE_DRIVER &&
			   (e->op == DRIVER_FREE || e->op == DRIVER_FREE_ASYNC))) {
		p = idmap_get(&b->processes, e->pid);
		if (p)
			forget(p, e->arg0);
	}
}

struct balance_process *balance_next(struct balance *b, size_t *cursor)
{
	struct balance_process *p;

	while ((p = idmap_next(&b->processes, cursor, NULL)))
		if (p->changed) {
			p->changed = false;
			return p;
		}
	return NULL;
}

size_t balance_ages(const struct balance *b, uint32_t pid, wall_time now, uint64_t *ret, size_t max)
{
	const struct balance_process *p = idmap_get(&b->processes, pid);
	const struct balance_alloc *a;
	size_t cursor = 0, count = 0;

	while (p && max && (a = idmap_next(&p->allocs, &cursor, NULL))) {
		uint64_t age = now.ns > a->at_ns ? (uint64_t)(now.ns - a->at_ns) / NS_PER_MS : 0;
		size_t at = count;

		if (count == max && age <= ret[max - 1])
			continue;
		if (count < max)
			count++;
		else
			at = max - 1; /* instead of the youngest */
		for (; at && ret[at - 1] < age; at--)
			ret[at] = ret[at - 1];
		ret[at] = age;
	}
	return count;
}
