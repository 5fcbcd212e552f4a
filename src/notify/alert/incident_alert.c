/* SPDX-License-Identifier: Apache-2.0 */
/* incident_alert.c - see incident_alert.h. */
#include "notify/alert/incident_alert.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "model/problem.h"

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

uint64_t incident_alert_id(const struct incident *i)
{
	return hash_bytes(i->id, strlen(i->id));
}

void incident_alert(const struct incident *i, const char *node, struct alert_matter *ret)
{
	static const char *const severities[] = {[SEVERITY_LOW] = "info",
		[SEVERITY_MEDIUM] = "warning",
		[SEVERITY_HIGH] = "error",
		[SEVERITY_CRITICAL] = "critical"};
	const char *problem = problem_row((enum problem)i->problem)->id;

	*ret = (struct alert_matter){.id = incident_alert_id(i),
		.name = "IngeroIncident",
		.class = problem,
		.problem = problem,
		.severity = severities[i->severity],
		.rank = i->culprit_rank,
		.stage = -1,
		.pid = i->pid,
		.confidence = i->confidence,
		.since_ns = i->first.ns,
		.until_ns = i->resolved.ns};
	snprintf(ret->event, sizeof(ret->event), "%s@%.*s", i->id,
		(int)(sizeof(ret->event) - sizeof(i->id) - 1), node);
	COPY(ret->node, node);
	COPY(ret->process, i->comm);
	COPY(ret->text, i->summary);
	COPY(ret->cause, i->root_cause);
	if (i->fix_count)
		COPY(ret->fix, i->fixes[0]);
}
