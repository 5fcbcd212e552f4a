/* SPDX-License-Identifier: Apache-2.0 */
/* witness.h - the timeline, the evidence rows and the SQL that shows them. */
#pragma once

#include "agent/correlate/narrate.h"

/* witness - fills timeline, evidence and evidence_sql of @inc. 0 or -ENOMEM. */
int witness(const struct recording *rec, const struct detection *d, const struct stretch *s,
	const struct part_list *l, const struct verdict *v, struct incident *inc);
