/* SPDX-License-Identifier: Apache-2.0 */
/* push_haste.c - see push_haste.h. The calls of a step come close together and far apart in turn, each kind in
 * its own way: a message that is late by what the next step always takes is late all the same. So a call is
 * compared with the longest distance of its kind in the last one to two epochs. Who was late is known when the
 * step is over, so what follows is sent as soon. */
#include "push/push_haste.h"

#include "base/hash.h"
#include "base/macros.h"

#define LEAST      8       /* calls of the rank before anything is called unusual */
#define LEAST_KIND 3       /* likewise of the kind */
#define PART       20      /* of the longest lately: so much longer it must be */
#define LEAST_NS   5000000 /* likewise */
#define EPOCH_NS   INT64_C(30000000000)
#define FOLLOW_NS  INT64_C(1500000000) /* in which the step ends that somebody was late in */

/* Where there are too many kinds, some are looked at together. */
static struct push_haste_kind *kind_of(struct push_haste *h, const struct push_call *c)
{
	uint64_t key =
		hash_number(hash_number(c->comm) ^ ((uint64_t)(uint32_t)c->peer << 16 | c->op)) | 1;

	for (size_t i = 0; i < PUSH_HASTE_KINDS; i++) {
		struct push_haste_kind *k = &h->kinds[((key >> 1) + i) % PUSH_HASTE_KINDS];

		if (k->key == 0)
			k->key = key;
		if (k->key == key)
			return k;
	}
	return &h->kinds[(key >> 1) % PUSH_HASTE_KINDS];
}

bool push_haste_take(struct push_haste *h, const struct push_call *c)
{
	int64_t apart = c->leave_ns - h->left_ns, epoch = c->leave_ns / EPOCH_NS, longest;
	struct push_haste_kind *k;

	if (c->leave_ns <= h->left_ns) /* still inside, or beside another call */
		return false;
	h->left_ns = c->leave_ns;
	if (h->calls++ == 0)
		return false;
	k = kind_of(h, c);
	if (epoch != k->epoch) {
		k->longest_ns[1] = epoch == k->epoch + 1 ? k->longest_ns[0] : 0;
		k->longest_ns[0] = 0;
		k->epoch = epoch;
	}
	longest = MAX(k->longest_ns[0], k->longest_ns[1]);
	if (k->calls++ >= LEAST_KIND && h->calls > LEAST &&
		apart > longest + longest / PART + LEAST_NS)
		h->hasty_until_ns = c->leave_ns + FOLLOW_NS;
	k->longest_ns[0] = MAX(k->longest_ns[0], apart);
	return c->leave_ns < h->hasty_until_ns;
}
