/* SPDX-License-Identifier: Apache-2.0 */
/* device_allocs.c - see device_allocs.h.
 *
 * Order: an allocation counts when it returned, a free when it was called. An address is given out
 * again only after its free has begun, so this order never takes a free for that of the next owner.
 * An address allocated twice without a free between (the same call seen in the runtime and in the
 * driver, or a lost free) is one allocation, the later one.
 *
 * Driver calls inside runtime calls are left out. Pinned host memory is not device memory. What was
 * allocated before the recording is not in the balance, and its free changes nothing.
 * O(n log n); 64 bytes for each allocation and free. */
#include "diagnose/findings/device_allocs.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/rows/baseline.h"
#include "base/array.h"
#include "base/idmap.h"
#include "base/search.h"
#include "wire/op_kind.h"

#define OUT_OF_MEMORY  2                   /* in both APIs */
#define BYTES_MAX      (UINT64_C(1) << 41) /* 2 TiB: more at once is nonsense */
#define MATCHED_FREES  2                   /* one in so many must match an allocation */
#define FREES_TO_JUDGE 4

struct memory_op {
	uint8_t source;
	uint16_t op;
	enum device_allocs_kind kind;
	bool pointer_in_arg1;
};

static const struct memory_op ops[] = {
	{SOURCE_CUDA, CUDA_MALLOC, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_CUDA, CUDA_MALLOC_MANAGED, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_CUDA, CUDA_MALLOC_ASYNC, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_CUDA, CUDA_MALLOC_PITCH, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_CUDA, CUDA_MALLOC_FROM_POOL, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_CUDA, CUDA_MALLOC_ARRAY, DEVICE_ALLOCS_FAIL, false},
	{SOURCE_CUDA, CUDA_FREE, DEVICE_ALLOCS_FREE, false},
	{SOURCE_CUDA, CUDA_FREE_ASYNC, DEVICE_ALLOCS_FREE, false},
	{SOURCE_DRIVER, DRIVER_MALLOC, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_DRIVER, DRIVER_MALLOC_MANAGED, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_DRIVER, DRIVER_MALLOC_ASYNC, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_DRIVER, DRIVER_MALLOC_PITCH, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_DRIVER, DRIVER_MALLOC_FROM_POOL, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_DRIVER, DRIVER_MEM_CREATE, DEVICE_ALLOCS_FAIL, false},
	{SOURCE_DRIVER, DRIVER_MEM_MAP, DEVICE_ALLOCS_ALLOC, true},
	{SOURCE_DRIVER, DRIVER_MEM_UNMAP, DEVICE_ALLOCS_FREE, true},
	{SOURCE_DRIVER, DRIVER_FREE, DEVICE_ALLOCS_FREE, false},
	{SOURCE_DRIVER, DRIVER_FREE_ASYNC, DEVICE_ALLOCS_FREE, false},
};

void device_allocs_freed_sql(unsigned source, struct buf *b)
{
	const char *between = "(";

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		if (ops[i].source != source || ops[i].kind != DEVICE_ALLOCS_FREE)
			continue;
		buf_printf(b, "%s(f.op = %u AND f.arg%d = a.arg1)", between, ops[i].op,
			ops[i].pointer_in_arg1);
		between = " OR ";
	}
	buf_puts(b, ")");
}

static const struct memory_op *op_find(const struct event *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (ops[i].source == e->source && ops[i].op == e->op)
			return &ops[i];
	return NULL;
}

static bool is_host_memory(const struct event *e)
{
	return e->op == (e->source == SOURCE_CUDA ? CUDA_HOST_ALLOC : DRIVER_HOST_ALLOC);
}

/* False if the row is not for the ledger. Rows marked FAIL in the table tell nothing when they
 * succeed: the address is not recorded. */
static bool entry_read(const struct event *e, size_t event, struct device_allocs_entry *ret)
{
	const struct memory_op *op;

	if (!op_kind_is_cuda(e->source) || e->flags & WIRE_NESTED || !baseline_is_sane(e))
		return false;
	op = op_find(e);
	if (!op && e->ret == OUT_OF_MEMORY && !is_host_memory(e)) {
		*ret = (struct device_allocs_entry){.event = event,
			.pid = e->pid,
			.kind = DEVICE_ALLOCS_FAIL,
			.ns = event_end_ns(e)};
		return true; /* a launch that found no room for its stacks, say */
	}
	if (!op)
		return false;
	*ret = (struct device_allocs_entry){.event = event, .pid = e->pid, .kind = op->kind};
	ret->pointer = op->pointer_in_arg1 ? e->arg1 : e->arg0;
	ret->bytes = op->kind == DEVICE_ALLOCS_FREE ? 0 : e->arg0;
	ret->ns = op->kind == DEVICE_ALLOCS_FREE ? e->start.ns : event_end_ns(e);
	if (op->kind == DEVICE_ALLOCS_FREE)
		return e->ret == 0 && ret->pointer;
	if (e->ret == OUT_OF_MEMORY) {
		ret->kind = DEVICE_ALLOCS_FAIL;
		ret->pointer = 0;
		return true;
	}
	return op->kind == DEVICE_ALLOCS_ALLOC && e->ret == 0 && ret->pointer &&
	       ret->bytes <= BYTES_MAX;
}

ORDER(by_process_and_time, struct device_allocs_entry,
	ASCENDING(pid) ?: ASCENDING(ns) ?: ASCENDING(kind) ?: ASCENDING(pointer)
			?: ASCENDING(event))

static int balance_process(struct device_allocs_entry *entries, size_t n)
{
	_cleanup_(idmap_done) struct idmap live = IDMAP_INIT(n + 1);
	uint64_t balance = 0;

	for (size_t i = 0; i < n; i++) {
		struct device_allocs_entry *e = &entries[i], *old;

		if (e->kind != DEVICE_ALLOCS_FAIL) {
			old = idmap_remove(&live, e->pointer);
			if (old) {
				old->freed = true;
				balance -= old->bytes;
			}
			if (e->kind == DEVICE_ALLOCS_FREE) {
				e->bytes = old ? old->bytes : 0;
				e->unknown = !old;
			} else {
				if (idmap_put(&live, e->pointer, e) < 0)
					return -ENOMEM;
				balance += e->bytes;
			}
		}
		e->balance = balance;
	}
	return 0;
}

int device_allocs_run(const struct recording *rec, struct device_allocs *ret)
{
	struct device_allocs_entry entry;
	size_t room = 0, end;
	int r = 0;

	*ret = (struct device_allocs){0};
	for (size_t i = 0; i < rec->event_count; i++) {
		if (!entry_read(&rec->events[i], i, &entry))
			continue;
		if (ARRAY_RESERVE(ret->entries, room, ret->count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		ret->entries[ret->count++] = entry;
	}
	SORT_DEALT(ret->entries, ret->count, by_process_and_time,
		offsetof(struct device_allocs_entry, pid));
	for (size_t i = 0; r == 0 && i < ret->count; i = end) {
		end = device_allocs_end(ret, i);
		r = balance_process(&ret->entries[i], end - i);
	}
	return r;
}

void device_allocs_done(struct device_allocs *l)
{
	free(l->entries);
	*l = (struct device_allocs){0};
}

size_t device_allocs_end(const struct device_allocs *l, size_t from)
{
	const struct device_allocs_entry *e = l->entries + from;

	return from + LOWER_BOUND(i, l->count - from, e[i].pid == e[0].pid);
}

uint64_t device_allocs_balance(const struct device_allocs *l, uint32_t pid, int64_t ns)
{
	const struct device_allocs_entry *e = l->entries;
	size_t after =
		LOWER_BOUND(i, l->count, e[i].pid < pid || (e[i].pid == pid && e[i].ns <= ns));

	return after && e[after - 1].pid == pid ? e[after - 1].balance : 0;
}

bool device_allocs_is_usable(const struct device_allocs *l, size_t from, size_t end)
{
	size_t frees = 0, matched = 0;

	for (size_t i = from; i < end; i++) {
		frees += l->entries[i].kind == DEVICE_ALLOCS_FREE;
		matched += l->entries[i].kind == DEVICE_ALLOCS_FREE && !l->entries[i].unknown;
	}
	return frees < FREES_TO_JUDGE || matched * MATCHED_FREES >= frees;
}
