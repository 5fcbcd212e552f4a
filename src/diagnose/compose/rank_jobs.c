/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/compose/rank_jobs.h"

#include "base/macros.h"

/* A communicator that was made before the trace has no name: those of as many ranks are taken for one. */
static uint64_t comm_of(const struct collective_row *r)
{
	return r->c.comm_hash ? r->c.comm_hash : (uint64_t)(uint32_t)r->c.nranks;
}

static void note(struct rank_jobs *j, uint32_t pid, uint64_t comm)
{
	for (size_t i = 0; i < j->count; i++)
		if (j->members[i].pid == pid && j->members[i].comm == comm)
			return;
	if (j->count == RANK_JOBS_MAX)
		return;
	j->members[j->count].comm = comm;
	j->members[j->count].pid = pid;
	j->members[j->count].job = (uint32_t)j->count;
	j->count++;
}

/* Members with a process or a communicator in common are of the job with the lower number. */
static bool join(struct rank_jobs *j)
{
	bool joined = false;

	for (size_t a = 0; a < j->count; a++)
		for (size_t b = 0; b < a; b++) {
			uint32_t lower = MIN(j->members[a].job, j->members[b].job);

			if (j->members[a].job == j->members[b].job ||
				(j->members[a].pid != j->members[b].pid &&
					j->members[a].comm != j->members[b].comm))
				continue;
			j->members[a].job = j->members[b].job = lower;
			joined = true;
		}
	return joined;
}

void rank_jobs_find(const struct recording *rec, struct rank_jobs *ret)
{
	ret->count = 0;
	for (size_t i = 0; i < rec->collective_count; i++)
		if (rec->collectives[i].c.nranks > 1)
			note(ret, rec->collectives[i].pid, comm_of(&rec->collectives[i]));
	while (join(ret))
		;
}

bool rank_jobs_meet(const struct rank_jobs *j, uint32_t pid, uint32_t other)
{
	for (size_t a = 0; pid != other && a < j->count; a++)
		for (size_t b = 0; j->members[a].pid == pid && b < j->count; b++)
			if (j->members[b].pid == other && j->members[a].job == j->members[b].job)
				return true;
	return false;
}
