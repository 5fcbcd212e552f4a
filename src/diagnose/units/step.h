/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - the steps of a job, found from its stream of calls without any annotation. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "diagnose/recording.h"
#include "base/macros.h"

struct step { /* from the return of one closing wait to that of the next */
	int64_t start_ns, end_ns;
	size_t event; /* the wait that closes it */
};

struct step_list { /* of one process */
	uint32_t pid, tid;
	const struct step *items; /* in order of time */
	size_t count;
	uint64_t ordinary_ns; /* median duration */
	double confidence;    /* 0..1, see step.c */
};

struct step_table {
	struct step_list *lists; /* by pid */
	size_t count;
	struct step *steps; /* of all lists */
};

/* steps_find - fills @ret (released with steps_done(), also after a failure). A process whose rows
 * are a selection, or whose waits repeat in no pattern, has no list. 0 or -ENOMEM. */
int steps_find(const struct recording *rec, struct step_table *ret);
void steps_done(struct step_table *t);

/* steps_of - the steps of @pid; NULL: none are known. */
const struct step_list *steps_of(const struct step_table *t, uint32_t pid);
