/* SPDX-License-Identifier: Apache-2.0 */
/* requests.h - units of a process that makes a thread for each piece of work that it is given, as servers do: the
 * thread's life, if it has used the GPU. Time in which there is none is nobody's loss.
 *
 * Threads overlap. A unit is from the end of one, or its own beginning where that is later, to the end of the next:
 * what the process needs for one more, accounted for by the thread that ends it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "diagnose/rows/timeline.h"

struct request {
	int64_t start_ns, end_ns;
	uint32_t tid;
};

struct requests {
	struct request *items; /* one after the other, with gaps */
	size_t count, room;
};

/* requests_find - those of @pid; none: too few, or most of its work on the GPU is in none. Released with
 * requests_done(), also after a failure. 0 or -ENOMEM. */
int requests_find(const struct timeline *t, uint32_t pid, struct requests *ret);
void requests_done(struct requests *r);
