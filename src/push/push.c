/* SPDX-License-Identifier: Apache-2.0 */
/* push.c - words of push.h. */
#include "push/push.h"

#include "base/hash.h"
#include "base/macros.h"

const char *push_state_id(enum push_state s)
{
	return LIST_IDS(PUSH_STATES)[s];
}

static const struct {
	const char *metric;
	bool more_is_better;
} signals[] = {
#define X(NAME, metric, unit, more) [PUSH_SIGNAL_##NAME] = {metric, more},
	PUSH_SIGNALS(X)
#undef X
};

const char *push_signal_metric(enum push_signal s)
{
	return signals[s].metric;
}

bool push_signal_more_is_better(enum push_signal s)
{
	return signals[s].more_is_better;
}

static const char *const doings[] = {PUSH_DOINGS(LIST_ID)};

const char *push_doing_id(enum push_doing d)
{
	return doings[d];
}

bool push_state_parse(const char *s, enum push_state *ret)
{
	for (enum push_state i = 0; i < PUSH_STATE_COUNT; i++) {
		if (strcmp(push_state_id(i), s) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

bool push_doing_parse(const char *s, enum push_doing *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(doings); i++) {
		if (strcmp(doings[i], s) == 0) {
			*ret = (enum push_doing)i;
			return true;
		}
	}
	return false;
}

/* ---- haste. The calls of a step come close together and far apart in turn, each kind in
 * its own way: a message that is late by what the next step always takes is late all the same. So a call is
 * compared with the longest distance of its kind lately: within an epoch of some steps, or the one before. Who was late
 * is known when the step is over, so what follows is sent as soon. A job whose steps are never alike is sent in haste
 * only now and then. */

#define LEAST      8       /* calls of the rank before anything is called unusual */
#define LEAST_KIND 3       /* likewise of the kind */
#define PART       20      /* of the longest lately: so much longer it must be */
#define LEAST_NS   5000000 /* likewise */
#define EPOCH_NS   INT64_C(2000000000)
#define EPOCH_LONG 2 /* times the longest distance, if that is more */
#define CREDIT     4 /* times in a row; one more after each CREDIT_NS */
#define CREDIT_NS  INT64_C(6000000000)
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

static int64_t longest_of(struct push_haste_kind *k, int64_t now_ns)
{
	if (now_ns >= k->epoch_end_ns) {
		bool is_next =
			now_ns - k->epoch_end_ns < MAX(EPOCH_NS, EPOCH_LONG * k->longest_ns[0]);

		k->longest_ns[1] = is_next ? k->longest_ns[0] : 0;
		k->longest_ns[0] = 0;
		k->epoch_end_ns = now_ns + MAX(EPOCH_NS, EPOCH_LONG * k->longest_ns[1]);
	}
	return MAX(k->longest_ns[0], k->longest_ns[1]);
}

static void hurry(struct push_haste *h, int64_t now_ns)
{
	int64_t full_ns = now_ns - CREDIT * CREDIT_NS;

	if (now_ns < h->hasty_until_ns || h->spent_ns > now_ns - CREDIT_NS)
		return;
	h->spent_ns = MAX(h->spent_ns, full_ns) + CREDIT_NS;
	h->hasty_until_ns = now_ns + FOLLOW_NS;
}

bool push_haste_take(struct push_haste *h, const struct push_call *c)
{
	int64_t apart = c->leave_ns - h->left_ns, longest;
	struct push_haste_kind *k;

	if (c->leave_ns <= h->left_ns) /* still inside, or beside another call */
		return false;
	h->left_ns = c->leave_ns;
	if (h->calls++ == 0)
		return false;
	k = kind_of(h, c);
	longest = longest_of(k, c->leave_ns);
	if (k->calls++ >= LEAST_KIND && h->calls > LEAST && longest &&
		apart > longest + longest / PART + LEAST_NS)
		hurry(h, c->leave_ns);
	k->longest_ns[0] = MAX(k->longest_ns[0], apart);
	return c->leave_ns < h->hasty_until_ns;
}
