/* SPDX-License-Identifier: Apache-2.0 */
/* incident_stacks.h - from which call stacks the calls of an incident came. */
#pragma once

#include <stddef.h>

#include "model/incident.h"

/* incident_stacks_merge - fills the stacks of @inc, most first, from @list (@n rows of one call each, in any order,
 * reordered here); a row weighs its ns, which may be bytes or a count where time is not the matter. */
void incident_stacks_merge(struct incident_stack *list, size_t n, struct incident *inc);
