/* SPDX-License-Identifier: Apache-2.0 */
/* rank_wait.h - what a process waits for its collectives since its steps became slower. */
#pragma once

#include "diagnose/units/step.h"

struct rank_wait {
	uint64_t excess_ns;               /* beyond what as many steps waited before */
	uint64_t step_ns;                 /* of that, in each step */
	const struct collective_row *row; /* the longest of these waits */
};

/* rank_wait_find - 1 and *ret if the process of @l waits longer for collectives since step @index,
 * and a rank of theirs may be missing in the recording; 0 if not, or -ENOMEM. */
int rank_wait_find(const struct recording *rec, const struct step_list *l, size_t index,
	struct rank_wait *ret);
