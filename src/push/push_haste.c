/* SPDX-License-Identifier: Apache-2.0 */
/* push_haste.c - see push_haste.h. The calls of a step come close together and far apart in turn, so it is
 * the longest distance that is remembered, less of it with each call. */
#include "push/push_haste.h"

#include "base/macros.h"

#define LEAST     8    /* calls before anything is called unusual */
#define FACTOR    1.25 /* longer than the longest lately */
#define LEAST_NS  10e6 /* likewise, and it must be worth it */
#define FORGOTTEN 0.99 /* is left of the longest with each call */

bool push_haste_take(struct push_haste *h, const struct push_call *c)
{
	double apart = (double)(c->leave_ns - h->left_ns);
	bool unusual;

	if (c->leave_ns <= h->left_ns) /* still inside, or beside another call */
		return false;
	h->left_ns = c->leave_ns;
	if (h->calls++ == 0)
		return false;
	unusual = h->calls > LEAST && apart > FACTOR * h->longest_ns + LEAST_NS;
	h->longest_ns = MAX(FORGOTTEN * h->longest_ns, apart);
	return unusual;
}
