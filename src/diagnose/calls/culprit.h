/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.h - from the parts of slow calls to named causes: who, how much, in how many calls. */
#pragma once

#include "diagnose/calls/attribute.h"

/* culprit_blame_disk - shares the BLOCK_IO parts of @l that are requests out among the processes
 * which kept each device busy meanwhile, those of one name and container together, @victim_pid
 * itself among them: by bytes x time in flight, from 10 % of it on. 0 or -ENOMEM. */
int culprit_blame_disk(const struct recording *rec, const struct attribution_index *x,
	struct part_list *l, uint32_t victim_pid);

/* culprit_sum - fills the incident's causes from @l: one row per cause and culprit, processes of
 * the same name and container together, largest first, UNEXPLAINED being what is left of excess_ns; also sets
 * explained. Rows beyond the ceiling are folded into one per cause, of many. */
int culprit_sum(const struct recording *rec, struct part_list *l, struct incident *inc);
