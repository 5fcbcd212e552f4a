/* SPDX-License-Identifier: Apache-2.0 */
/* rank_jobs.h - which processes of a recording are ranks of one job: they meet in communicators, directly or through
 * others. */
#pragma once

#include "diagnose/recording.h"

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

/* rank_jobs_same - likewise, also by how they were launched. */
bool rank_jobs_same(
	const struct recording *rec, const struct rank_jobs *j, uint32_t pid, uint32_t other);

/* rank_jobs_ranks - how many ranks the job of @pid has in the recording: at least itself. */
size_t rank_jobs_ranks(const struct recording *rec, const struct rank_jobs *j, uint32_t pid);

/* rank_jobs_processes - how many processes @g counts on its GPU, those of a job with @ranks on it taken as one, and
 * with them the server (MPS) through which they share it; -1: not known. */
int64_t rank_jobs_processes(const struct recording *rec, const struct gpu_sample *g, int64_t ranks);
