/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/rows/rank_jobs.h"

#include <string.h>

#include "base/macros.h"
#include "diagnose/rows/home.h"

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

bool rank_jobs_same(
	const struct recording *rec, const struct rank_jobs *j, uint32_t pid, uint32_t other)
{
	const struct process_home *a = home_of(rec, pid), *b = home_of(rec, other);

	if (rank_jobs_meet(j, pid, other))
		return true;
	return a && b && a->rank >= 0 && b->rank >= 0 && a->rank != b->rank && a->script[0] &&
	       !strcmp(a->script, b->script);
}

size_t rank_jobs_ranks(const struct recording *rec, const struct rank_jobs *j, uint32_t pid)
{
	size_t n = 1;

	for (size_t i = 0; i < j->count; i++) {
		bool is_first = true;

		for (size_t k = 0; k < i; k++)
			is_first = is_first && j->members[k].pid != j->members[i].pid;
		n += is_first && rank_jobs_meet(j, pid, j->members[i].pid);
	}
	if (n > 1)
		return n;
	for (size_t i = 0; i < rec->home_count; i++)
		n += rank_jobs_same(rec, j, pid, rec->homes[i].pid);
	return n;
}

static int64_t mps_servers(const struct recording *rec, const struct gpu_sample *g)
{
	int64_t n = 0;

	for (int k = 0; k < GPU_PROCESSES_NAMED; k++)
		n += gpu_sample_process(g, k) && home_is_mps_server(rec, gpu_sample_process(g, k));
	return MIN(n, MAX(g->processes - 1, INT64_C(0)));
}

int64_t rank_jobs_processes(const struct recording *rec, const struct gpu_sample *g, int64_t ranks)
{
	int64_t processes = g->processes - mps_servers(rec, g);

	if (ranks < 2 || processes < 1)
		return processes;
	return processes <= ranks + 1 ? 1 : processes - ranks;
}
