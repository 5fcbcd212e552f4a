/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/accounts/tracer_name.h"

#include <stddef.h>
#include <string.h>

#include "base/macros.h"

#define BLAMED_SHARE 0.25 /* of what the incident costs */

bool tracer_is(const char *comm)
{
	static const char *const names[] = {TRACER_NAME, "ingero-store", "ingero-explain",
		"ingero-metrics", "ingero-alerts", "ingero-symbol", "ingero-gpu", "ingero-spawn"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(comm, names[i], COMM_LEN))
			return true;
	return false;
}

bool tracer_is_blamed(const struct incident *inc)
{
	uint64_t tracer_ns = 0, most_ns = 0;

	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];

		if (c->cause == CAUSE_UNEXPLAINED)
			continue;
		if (tracer_is(c->culprit))
			tracer_ns += c->ns;
		else
			most_ns = MAX(most_ns, c->ns);
	}
	return tracer_ns > most_ns && (double)tracer_ns >= BLAMED_SHARE * (double)inc->excess_ns;
}

const char *tracer_fold(const char *comm)
{
	return tracer_is(comm) ? TRACER_NAME : comm;
}
