/* SPDX-License-Identifier: Apache-2.0 */
/* evidence.h - the timeline, the evidence rows and the SQL that shows them. */
#pragma once

#include "diagnose/sentences/incident_text.h"

/* witness - fills timeline, evidence and evidence_sql of @inc. 0 or -ENOMEM. */
int evidence_put(const struct recording *rec, const struct detection *d,
	const struct slow_episode *s, const struct part_list *l, const struct verdict *v,
	struct incident *inc);

/* evidence_sql_put - the query that shows the evidence rows of @inc, which all lie in [@from_ns,
 * @to_ns]; without any, the calls of its process and op. 0 or -ENOMEM. */
int evidence_sql_put(
	const struct recording *rec, int64_t from_ns, int64_t to_ns, struct incident *inc);
