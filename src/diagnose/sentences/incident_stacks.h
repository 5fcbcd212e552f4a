/* SPDX-License-Identifier: Apache-2.0 */
/* incident_stacks.h - from which call stacks the slow calls of an incident came. */
#pragma once

#include "diagnose/calls/slow_calls.h"

/* incident_stacks_sum - fills the stacks of @inc: the excess of each, most first. 0 or -ENOMEM. */
int incident_stacks_sum(const struct recording *rec, const struct detection *d,
	const struct slow_episode *s, struct incident *inc);

/* incident_stacks_merge - the same from @list (@n rows of one call each, in any order, reordered here); a
 * row weighs its ns, which may be bytes or a count where time is not the matter. */
void incident_stacks_merge(struct incident_stack *list, size_t n, struct incident *inc);
