/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - a pool of addresses of a set size: the device's memory, and pinned host memory.
 *
 * The addresses are real (reserved, not committed), so that copies are. Allocation is first fit, so
 * a pool can be fragmented: enough bytes free, none of them in one piece. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_GRAIN      512        /* alignment and unit of allocation, bytes */
#define MEMORY_MAX_RANGES (1u << 18) /* live allocations of one pool */

struct memory_range {
	uintptr_t start;
	size_t size;  /* as asked for */
	bool touched; /* its pages may be in use */
	bool retired; /* promised to be freed */
};

struct memory {
	pthread_mutex_t lock;
	uintptr_t base;
	size_t capacity, used;
	struct memory_range *ranges; /* sorted by start */
	size_t count, room;
	size_t hint; /* no gap large enough for the last request lies before this index */
};

int memory_init(struct memory *m, size_t capacity);
void memory_done(struct memory *m);

/* memory_alloc - -EINVAL for size 0; -ENOMEM if the pool has no such piece. */
int memory_alloc(struct memory *m, size_t size, uintptr_t *ret_start);

/* memory_retire - mark the allocation at @start as about to be freed; -EINVAL if there is none or
 * it is marked already. */
int memory_retire(struct memory *m, uintptr_t start);

/* memory_free - -EINVAL if no allocation starts at @start. */
int memory_free(struct memory *m, uintptr_t start);

/* memory_span - bytes from @addr to the end of the allocation it lies in; 0 if in none.
 * @writes: the caller is about to write there. */
size_t memory_span(struct memory *m, uintptr_t addr, bool writes);
