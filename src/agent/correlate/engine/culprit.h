/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.h - from the parts of slow calls to named causes: who, how much, in how many calls. */
#pragma once

#include "agent/correlate/engine/attribute.h"

/* culprit_blame_disk - names, for the BLOCK_IO parts of @l, the process that kept each device busy
 * meanwhile: the one (or the ones of one name) with the most bytes x time in flight, if that is at
 * least what @victim_pid had in flight itself; else the victim. 0 or -ENOMEM. */
int culprit_blame_disk(const struct recording *rec, const struct attribution_index *x,
	struct part_list *l, uint32_t victim_pid);

/* culprit_sum - fills the incident's causes from @l: one row per cause and culprit, processes of
 * the same name together, largest first, UNEXPLAINED being what is left of excess_ns; also sets
 * explained. Rows beyond the ceiling are folded into one per cause, of many. */
int culprit_sum(const struct part_list *l, struct incident *inc);
