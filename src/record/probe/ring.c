/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - see ring.h. The kernel's side: programs reserve (producer moves on, the record is busy) and
 * then submit; records are read in the order of reservation, so a busy one holds up those behind it. The
 * space of a record is theirs again as soon as consumer is beyond it. */
#include "record/probe/ring.h"

#include <sys/epoll.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

/* The @len bytes at @at in one piece; NULL: there is no memory for that. */
static const void *piece(struct ring *r, size_t at, size_t len)
{
	size_t first = r->size - at;

	if (len <= first)
		return r->data + at;
	if (len > r->joined_room) {
		char *p = realloc(r->joined, len);

		if (!p)
			return NULL;
		r->joined = p;
		r->joined_room = len;
	}
	memcpy(r->joined, r->data + at, first);
	memcpy(r->joined + first, r->data, len - first);
	return r->joined;
}

/* False: not now. */
static bool take(struct ring *r, size_t at, size_t len)
{
	/* Headers are never cut: everything is a multiple of their size. */
	const void *data = piece(r, (at + RING_HEADER_BYTES) & (r->size - 1), len);

	if (data)
		r->sink(r->arg, data, len);
	return data != NULL;
}

size_t ring_consume(struct ring *r)
{
	unsigned long done = __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE), end;
	size_t count = 0;

	while (done != (end = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE)))
		while (done != end) {
			size_t at = done & (r->size - 1), len;
			uint32_t word = __atomic_load_n(
				(const uint32_t *)(const void *)(r->data + at), __ATOMIC_ACQUIRE);

			if (word & RING_BUSY)
				return count;
			len = word & ~RING_DISCARDED;
			if (!(word & RING_DISCARDED)) {
				if (!take(r, at, len))
					return count;
				count++;
			}
			done += (len + RING_HEADER_BYTES + 7) & ~(size_t)7;
			__atomic_store_n(r->consumer, done, __ATOMIC_RELEASE);
		}
	return count;
}

void ring_free(struct ring *r)
{
	if (!r)
		return;
	if (r->page && r->consumer)
		munmap(r->consumer, r->page);
	if (r->page && r->data)
		munmap((char *)r->data - r->page, r->page + r->size);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	free(r->joined);
	free(r);
}

static int map_pages(struct ring *r, int fd)
{
	void *p = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	r->consumer = p;
	p = mmap(NULL, r->page + r->size, PROT_READ, MAP_SHARED, fd, (off_t)r->page);
	if (p == MAP_FAILED)
		return -errno;
	r->producer = p;
	r->data = (const char *)p + r->page;
	return 0;
}

/* Not the map itself: it is readable while anything is in it, an epoll only once a program has asked for
 * the reader. */
static int watch(struct ring *r, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0 || epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	return 0;
}

int ring_new(int fd, ring_sink *sink, void *arg, struct ring **ret)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	_cleanup_(ring_freep) struct ring *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->epoll_fd = -1;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_RINGBUF)
		return -EINVAL;
	r->size = info.max_entries;
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	r->sink = sink;
	r->arg = arg;
	err = map_pages(r, fd);
	err = err ?: watch(r, fd);
	if (err < 0)
		return err;
	*ret = TAKE(r);
	return 0;
}
