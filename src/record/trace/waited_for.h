/* SPDX-License-Identifier: Apache-2.0 */
/* waited_for.h - processes that traced threads wait for and that are not traced themselves: the other end of a
 * pipe, a server on the same machine, whoever holds a lock. Those that are waited for long enough to matter are worth
 * being followed, since only their own threads can tell what they did meanwhile. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAITED_FOR_MAX 16 /* processes that are followed for this, in all */

struct waited_for {
	struct waited_process {
		uint32_t pid; /* 0: free */
		uint32_t stays;
		uint64_t ns;
	} items[2 * WAITED_FOR_MAX];
	unsigned followed;
};

/* waited_for_add - a stay of @ns was ended by process @pid. True: from now on it is to be followed; it is
 * forgotten here. */
bool waited_for_add(struct waited_for *w, uint32_t pid, uint64_t ns);
