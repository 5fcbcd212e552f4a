// SPDX-License-Identifier: Apache-2.0
/* memory.c - address pools. Invariants, under the lock:
 * 1. ranges[0..count) is sorted and disjoint, each start a multiple of MEMORY_GRAIN from base;
 * 2. used is the sum of the sizes rounded up to MEMORY_GRAIN, at most capacity;
 * 3. the pages of a freed range are given back to the kernel if anything could have written them,
 *    so the resident memory is at most that of the live allocations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

static size_t grains(size_t size)
{
	return (size + MEMORY_GRAIN - 1) / MEMORY_GRAIN * MEMORY_GRAIN;
}

int memory_init(struct memory *m, size_t capacity)
{
	void *p;

	capacity = capacity / MEMORY_GRAIN * MEMORY_GRAIN;
	p = mmap(NULL, capacity, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, capacity, MADV_DONTDUMP);
	*m = (struct memory){.base = (uintptr_t)p, .capacity = capacity};
	pthread_mutex_init(&m->lock, NULL);
	return 0;
}

void memory_done(struct memory *m)
{
	munmap((void *)m->base, m->capacity);
	free(m->ranges);
	pthread_mutex_destroy(&m->lock);
}

/* Index of the first range that starts after @addr. */
static size_t index_after(const struct memory *m, uintptr_t addr)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (m->ranges[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uintptr_t gap_start(const struct memory *m, size_t index)
{
	if (index == 0)
		return m->base;
	return m->ranges[index - 1].start + grains(m->ranges[index - 1].size);
}

static size_t gap_size(const struct memory *m, size_t index)
{
	uintptr_t end = index < m->count ? m->ranges[index].start : m->base + m->capacity;

	return end - gap_start(m, index);
}

/* The first gap from the hint on that holds @need bytes, then from the start. */
static bool gap_find(const struct memory *m, size_t need, size_t *ret_index)
{
	for (size_t k = 0; k <= m->count; k++) {
		size_t i = (m->hint + k) % (m->count + 1);

		if (gap_size(m, i) >= need) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static int room_make(struct memory *m)
{
	size_t room = m->room ? m->room * 2 : 64;
	struct memory_range *grown;

	if (m->count < m->room)
		return 0;
	if (m->count >= MEMORY_MAX_RANGES)
		return -ENOMEM;
	grown = realloc(m->ranges, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	m->ranges = grown;
	m->room = room;
	return 0;
}

static int alloc_locked(struct memory *m, size_t size, uintptr_t *ret_start)
{
	size_t need = grains(size), i;

	if (need < size || need > m->capacity - m->used || room_make(m) < 0)
		return -ENOMEM;
	if (!gap_find(m, need, &i))
		return -ENOMEM;
	*ret_start = gap_start(m, i);
	memmove(&m->ranges[i + 1], &m->ranges[i], (m->count - i) * sizeof(*m->ranges));
	m->ranges[i] = (struct memory_range){.start = *ret_start, .size = size};
	m->count++;
	m->used += need;
	m->hint = i + 1;
	return 0;
}

int memory_alloc(struct memory *m, size_t size, uintptr_t *ret_start)
{
	int r;

	if (size == 0)
		return -EINVAL;
	pthread_mutex_lock(&m->lock);
	r = alloc_locked(m, size, ret_start);
	pthread_mutex_unlock(&m->lock);
	return r;
}

static struct memory_range *range_at(struct memory *m, uintptr_t start)
{
	size_t i = index_after(m, start);

	return i > 0 && m->ranges[i - 1].start == start ? &m->ranges[i - 1] : NULL;
}

/* Whole pages only: the first and last page may hold neighbours. */
static void pages_drop(uintptr_t start, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (start + page - 1) / page * page, to = (start + size) / page * page;

	if (from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

int memory_retire(struct memory *m, uintptr_t start)
{
	struct memory_range *range;
	int r = -EINVAL;

	pthread_mutex_lock(&m->lock);
	range = range_at(m, start);
	if (range && !range->retired) {
		range->retired = true;
		r = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

int memory_free(struct memory *m, uintptr_t start)
{
	struct memory_range *range;
	int r = -EINVAL;

	pthread_mutex_lock(&m->lock);
	range = range_at(m, start);
	if (range) {
		size_t i = (size_t)(range - m->ranges);

		if (range->touched)
			pages_drop(range->start, range->size);
		m->used -= grains(range->size);
		m->count--;
		memmove(range, range + 1, (m->count - i) * sizeof(*range));
		if (i < m->hint)
			m->hint = i;
		r = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

size_t memory_span(struct memory *m, uintptr_t addr, bool writes)
{
	size_t span = 0, i;

	if (addr < m->base || addr - m->base >= m->capacity)
		return 0;
	pthread_mutex_lock(&m->lock);
	i = index_after(m, addr);
	if (i > 0 && addr - m->ranges[i - 1].start < m->ranges[i - 1].size) {
		span = m->ranges[i - 1].size - (addr - m->ranges[i - 1].start);
		m->ranges[i - 1].touched |= writes;
	}
	pthread_mutex_unlock(&m->lock);
	return span;
}
