/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_share.c - how much of the probing one user gets, but root: a number of places, and files a second. */
#include "record/attach/coverage_private.h"
#include "base/log.h"

#define INTAKE_MAX  16
#define INTAKE_RATE 4 /* a second */

static struct intake *intake_of(struct coverage *c, uid_t owner, mono_time now)
{
	struct intake *oldest = &c->intakes[0];

	for (size_t i = 0; i < INTAKES; i++) {
		if (c->intakes[i].owner == owner)
			return &c->intakes[i];
		if (c->intakes[i].since.ns < oldest->since.ns)
			oldest = &c->intakes[i];
	}
	*oldest = (struct intake){.owner = owner, .files = INTAKE_MAX, .since = now};
	return oldest;
}

bool coverage_may_take(struct coverage *c, uid_t owner)
{
	mono_time now = mono_now();
	struct intake *n;

	if (!owner || !c->probe)
		return true;
	n = intake_of(c, owner, now);
	n->files += (double)(now.ns - n->since.ns) / (double)NS_PER_S * INTAKE_RATE;
	n->files = MIN(n->files, (double)INTAKE_MAX);
	n->since = now;
	if (n->files >= 1) {
		n->files--;
		return true;
	}
	if (!n->has_waited)
		log_warning("user %u maps libraries faster than they can be probed without keeping "
			    "others waiting: the rest is probed at %d files a second",
			(unsigned)owner, INTAKE_RATE);
	n->has_waited = true;
	return false;
}

bool coverage_has_share(const struct coverage *c, uid_t owner)
{
	size_t n = 0;

	if (!owner)
		return false;
	for (size_t i = 0; i < COVERAGE_MAX; i++)
		n += c->probed[i].used && c->probed[i].owner == owner;
	return n >= COVERAGE_USER_MAX;
}
