/* SPDX-License-Identifier: Apache-2.0 */
/* rank_jobs.h - which processes of a recording are ranks of one job: they meet in communicators, directly or through
 * others. */
#pragma once

#include "diagnose/compose/correlate.h"

#define RANK_JOBS_MAX 512 /* processes and communicators of theirs; more are ranks of no job */

struct rank_jobs {
	struct {
		uint64_t comm;
		uint32_t pid, job;
	} members[RANK_JOBS_MAX];
	size_t count;
};

void rank_jobs_find(const struct recording *rec, struct rank_jobs *ret);

/* rank_jobs_meet - whether @pid and @other are different ranks of one job. */
bool rank_jobs_meet(const struct rank_jobs *j, uint32_t pid, uint32_t other);
