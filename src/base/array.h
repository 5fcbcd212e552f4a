/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - room in arrays that grow. An array is a pointer, how many elements it holds, and for how
 * many there is room (a size_t); its owner frees the pointer. */
#pragma once

#include <stddef.h>

/* ARRAY_RESERVE - room for @need elements in @items, of which there is @room. Both are variables,
 * NULL and 0 at first; @need is evaluated twice. The room doubles, but there is never more than
 * @max. What is there stays, also on failure.
 * Returns 0; -ENOBUFS if @need is beyond @max; -ENOMEM. */
#define ARRAY_RESERVE(items, room, need, max)                                                      \
	((need) <= (room) ? 0 : array_grow(&(items), &(room), (need), sizeof(*(items)), (max)))

/* array_grow - what ARRAY_RESERVE does when there is not room enough: @items points to the array's
 * pointer, and an element has @size bytes. */
int array_grow(void *items, size_t *room, size_t need, size_t size, size_t max);
