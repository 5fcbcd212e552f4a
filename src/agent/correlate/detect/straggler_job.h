/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_job.h - the ranks of a recording as one job: who makes it wait (blame/blame.h). */
#pragma once

#include "agent/correlate/engine/correlate.h"
#include "blame/blame.h"

struct straggler_job {
	struct blame_worker *workers; /* each process that communicates */
	size_t worker_count;
	struct blame_call *calls;
	const struct collective_row **rows; /* of calls[i] */
	size_t call_count;
	struct blame blame;
};

/* straggler_job_find - 1 and *ret (released with straggler_job_done(), also after a failure) if
 * the job has Sends and Recvs, or communicators of some of its processes, so that who is last may
 * have waited itself; 0 if one communicator tells all, or too little is recorded; or -ENOMEM. */
int straggler_job_find(const struct recording *rec, struct straggler_job *ret);
void straggler_job_done(struct straggler_job *j);

struct detector_input;
struct incident_list;
/* straggler_job_report - an incident for each that is to blame. 0 or -ENOMEM. */
int straggler_job_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out);
