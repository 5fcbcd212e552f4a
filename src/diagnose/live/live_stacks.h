/* SPDX-License-Identifier: Apache-2.0 */
/* live_stacks.h - the stacks that rows of the last minutes refer to, in bounded memory: of too many,
 * those that no row has named for longest go. Belongs to one thread. */
#pragma once

#include "model/stack.h"

#define LIVE_STACKS_MAX   4096u
#define LIVE_STACKS_BYTES (8u << 20) /* of all together: 2 kB each is usual */

struct live_stack_use {
	uint64_t used; /* by the number of the last use */
	size_t bytes;
};

struct live_stacks {
	struct stack_list list;
	struct live_stack_use *uses; /* of each in the list */
	size_t list_room, use_room;
	size_t bytes;
	uint64_t clock; /* uses so far */
};

/* live_stacks_add - takes over @s, whose block has @bytes, also on failure; one of the same hash is
 * replaced. 0 or -ENOMEM. */
int live_stacks_add(struct live_stacks *l, struct stack *s, size_t bytes);

/* live_stacks_use - a row refers to @hash; one that is not there is nothing. */
void live_stacks_use(struct live_stacks *l, uint64_t hash);
void live_stacks_done(struct live_stacks *l);
