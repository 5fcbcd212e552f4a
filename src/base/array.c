/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - see array.h. Doubling makes n appends cost O(n) copies. */
#include "base/array.h"

#include "base/macros.h"

#define FIRST_ROOM 8

int array_grow(void *items, size_t *room, size_t need, size_t size, size_t max)
{
	size_t more = *room > max / 2 ? max : MAX(*room * 2, (size_t)FIRST_ROOM);
	void *p;

	if (need > max)
		return -ENOBUFS;
	more = MIN(MAX(more, need), max);
	memcpy(&p, items, sizeof(p)); /* @items is a pointer to some other type than void */
	p = reallocarray(p, more, size);
	if (!p)
		return -ENOMEM;
	memcpy(items, &p, sizeof(p));
	*room = more;
	return 0;
}
