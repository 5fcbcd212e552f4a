/* SPDX-License-Identifier: Apache-2.0 */
/* people.h - who the workers of a cluster are. A view of one is large, so that they are walked once for an
 * answer. */
#pragma once

#include "cluster/detect/calls.h"

struct who {
	uint32_t worker, pid;
	int32_t rank; /* in the job; -1: not known */
	const char *node;
};

struct people {
	struct who *who; /* by worker */
	size_t count;
};

/* people_list - of @c, until its next change; released with people_done(). -ENOMEM: also then. */
int people_list(const struct calls *c, struct people *ret);
void people_done(struct people *p);

/* people_find - NULL: it has been forgotten. */
const struct who *people_find(const struct people *p, uint32_t worker);
