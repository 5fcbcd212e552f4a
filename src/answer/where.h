/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - the place in the program that an incident's slow calls came from. */
#pragma once

#include <stdbool.h>

#include "model/incident.h"
#include "model/stack.h"

struct where {
	const struct stack_frame *frame; /* belongs to the list */
	uint64_t ns;                     /* excess of the calls from there */
	double share;                    /* of the incident's excess, 0..1 */
};

/* where_find - the place (stack_place()) with the most excess; stacks that share it count together.
 * False if no stack of the incident is in @stacks or none names a place. */
bool where_find(const struct incident *inc, const struct stack_list *stacks, struct where *ret);
