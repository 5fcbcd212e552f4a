/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - reads what BPF programs put into a ring.
 *
 * Its pages are mapped once. Twice in a row, as libbpf does so that a record that goes over the end is in
 * one piece, they count twice as the agent's memory: such a record is copied instead. */
#pragma once

#include "base/macros.h"

/* What is in front of each record; the kernel's ABI. */
#define RING_HEADER_BYTES 8
#define RING_BUSY         (1u << 31) /* in the length: it is still being written */
#define RING_DISCARDED    (1u << 30)

typedef void ring_sink(void *arg, const void *data, size_t len);

struct ring {
	unsigned long *consumer;       /* how much was read, in bytes, ever */
	const unsigned long *producer; /* how much was reserved */
	const char *data;
	size_t size;  /* of the data, a power of two */
	size_t page;  /* of memory, in bytes; 0: nothing is mapped */
	char *joined; /* a record that went over the end */
	size_t joined_room;
	int epoll_fd;
	ring_sink *sink;
	void *arg;
};

/* ring_new - of the map @fd, which must outlive it. 0 or a negative errno. */
int ring_new(int fd, ring_sink *sink, void *arg, struct ring **ret);
DECLARE_FREE(struct ring, ring_free) /* NULL is nothing */

/* ring_consume - hands on what is there now. Returns the number of records. One that cannot be put together
 * for want of memory stays for the next time. */
size_t ring_consume(struct ring *r);
