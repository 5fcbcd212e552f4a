/* SPDX-License-Identifier: Apache-2.0 */
/* push_haste.c - see push_haste.h. The calls of a step come close together and far apart in turn, so it is
 * the longest distance of the last one to two epochs that a new one is compared with. */
#include "push/push_haste.h"

#include "base/macros.h"

#define LEAST    8       /* calls before anything is called unusual */
#define PART     20      /* of the longest lately: so much longer it must be */
#define LEAST_NS 5000000 /* likewise */
#define EPOCH_NS INT64_C(30000000000)

bool push_haste_take(struct push_haste *h, const struct push_call *c)
{
	int64_t apart = c->leave_ns - h->left_ns, epoch = c->leave_ns / EPOCH_NS, longest;
	bool unusual;

	if (c->leave_ns <= h->left_ns) /* still inside, or beside another call */
		return false;
	h->left_ns = c->leave_ns;
	if (h->calls++ == 0)
		return false;
	if (epoch != h->epoch) {
		h->longest_ns[1] = epoch == h->epoch + 1 ? h->longest_ns[0] : 0;
		h->longest_ns[0] = 0;
		h->epoch = epoch;
	}
	longest = MAX(h->longest_ns[0], h->longest_ns[1]);
	unusual = h->calls > LEAST && apart > longest + longest / PART + LEAST_NS;
	h->longest_ns[0] = MAX(h->longest_ns[0], apart);
	return unusual;
}
