/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_job.h - the ranks of a recording by jobs, and who makes each of them wait (blame/blame.h). */
#pragma once

#include "diagnose/recording.h"
#include "blame/blame.h"
#include "diagnose/accounts/rank_calls.h"

#define RANK_LATE_UNIT "late steps" /* of incidents about a rank whose host is late */

struct straggler_job { /* processes that meet in communicators, directly or through others */
	struct blame_worker *workers;
	size_t worker_count;
	struct blame_call *calls;
	const struct collective_row **rows; /* of calls[i] */
	size_t call_count;
	struct blame blame;
};

struct straggler_jobs {
	struct straggler_job *items; /* blame.confidence 0: it cannot be told who makes it wait */
	size_t count;
	struct rank_calls calls; /* of all of them */
};

/* straggler_jobs_find - 0 and *ret (released with straggler_jobs_done(), also after a failure), or
 * -ENOMEM. @accounts say how long steps are; NULL: not known. */
int straggler_jobs_find(const struct recording *rec, const struct step_report *accounts,
	struct straggler_jobs *ret);
void straggler_jobs_done(struct straggler_jobs *j);

struct window { /* of a thread's time */
	int64_t start_ns, end_ns;
	uint32_t tid;
};

struct doing {
	char text
		[160]; /* "its thread was waiting for a CPU used by hog (pid 7) for 81 % of that" */
	enum account_line line; /* ACCOUNT_UNKNOWN: none has a good part of it */
};

/* doing_describe - the largest line of the account of @windows (ascending, disjoint) of threads of @pid. 0 or -ENOMEM. */
int doing_describe(const struct recording *rec, uint32_t pid, const struct window *windows,
	size_t n, struct doing *ret);
