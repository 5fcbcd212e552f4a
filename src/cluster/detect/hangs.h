/* SPDX-License-Identifier: Apache-2.0 */
/* hangs.h - collectives in which ranks wait for others that do not come. Pure. */
#pragma once

#include "cluster/detect/calls.h"

#define HANGS_MAX 256

struct hangs {
	struct hang_view items[HANGS_MAX];
	size_t count;
	uint64_t round;
	size_t looked; /* collectives, in this round */
};

/* hangs_find - as it is now. First those whose missing ranks are not themselves waiting elsewhere: the
 * others follow from them. */
void hangs_find(struct calls *c);

/* hangs_is_waited_in - some rank is inside and has not been seen later: at most one collective of a
 * communicator for each of its ranks. */
struct collective;
bool hangs_is_waited_in(const struct collective *x);
/* hangs_is_passed - who is missing there was seen later: nobody will come to it any more. */
bool hangs_is_passed(const struct collective *x);
