/* SPDX-License-Identifier: Apache-2.0 */
/* detect_sharing.c - several processes on one GPU: a note, LOW, where the driver counts them. What that costs one of them is told
 * by its account (gpu_other.h), and then this note is not needed. Ranks of one job share a GPU on purpose. */
#include <stdio.h>
#include <string.h>

#include "diagnose/findings/detector.h"
#include "diagnose/rows/rank_jobs.h"
#include "base/macros.h"
#include "base/text.h"

/* The reading of GPU @index with most processes; NULL: there is none. */
static const struct gpu_sample *fullest(const struct recording *rec, int64_t index)
{
	const struct gpu_sample *most = NULL;

	for (size_t i = 0; i < rec->gpu_count; i++)
		if (rec->gpus[i].index == index &&
			(!most || rec->gpus[i].processes > most->processes))
			most = &rec->gpus[i];
	return most;
}

static void note(
	const struct detector_input *s, const struct gpu_sample *g, struct incident_list *out)
{
	struct incident *inc = incident_begin(out, PROBLEM_GPU_SHARING);

	incident_id(inc, 0, g->time.ns);
	inc->last = g->time;
	incident_weigh(inc, SEVERITY_LOW, 1, (uint64_t)g->processes, "processes on the GPU");
	incident_complete(inc, s->completeness);
	snprintf(inc->summary, sizeof(inc->summary),
		"%lld processes use GPU %lld; no traced process is known to be slower because of it",
		(long long)g->processes, (long long)g->index);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "GPU %lld is shared",
		(long long)g->index);
	incident_step(inc, g->time.ns, 0, "GPU", "processes", "%lld processes on GPU %lld",
		(long long)g->processes, (long long)g->index);
	incident_sql(inc,
		"SELECT timestamp, gpu, processes FROM gpu_samples WHERE gpu = %lld ORDER BY timestamp",
		(long long)g->index);
	incident_keep(out, inc);
}

/* Of the largest job in the recording; 1: there is none. */
static int64_t most_ranks(const struct recording *rec)
{
	struct rank_jobs jobs;
	size_t most = 1;

	rank_jobs_find(rec, &jobs);
	for (size_t i = 0; i < jobs.count; i++)
		if (jobs.members[i].job == i) /* its first member */
			most = MAX(most, rank_jobs_ranks(rec, &jobs, jobs.members[i].pid));
	return (int64_t)most;
}

int detect_sharing(const struct detector_input *s, struct incident_list *out)
{
	int64_t ranks = s->rec->gpu_count ? most_ranks(s->rec) : 1;
	int64_t gpus[DETECTOR_GPUS_MAX];
	size_t count = detector_gpus(s->rec, gpus);

	for (size_t i = 0; i < count; i++) {
		const struct gpu_sample *g = fullest(s->rec, gpus[i]);

		if (rank_jobs_processes(s->rec, g, ranks) > 1)
			note(s, g, out);
	}
	return 0;
}
