/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_load.h - ranks that all come in time while their GPUs do not: one has more work than its peers, or the load
 * moves from rank to rank. */
#pragma once

#include "diagnose/findings/straggler_job.h"
#include "diagnose/findings/detector.h"

/* straggler_load_report - load that moves (nobody is named for it), else the rank whose GPU is late. 0 or -ENOMEM. */
int straggler_load_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out);

/* straggler_link_report - an incident for each link and collective that the job waits for though all its ranks are on time; it
 * names no rank. */
void straggler_link_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out);

/* What the ranks' steps say about the work that they give their GPUs (straggler_work.c). */
struct straggler_work {
	uint32_t late; /* worker with more of it than its peers; UINT32_MAX: none */
	double launches,
		usual; /* of a step: its own, and before or of its peers; 0: it is not these */
	double bytes, usual_bytes; /* likewise copied */
	double received,
		usual_received; /* likewise of other ranks: the one with the expert that most is sent to */
	const char *
		kernel; /* the one most launched of those that it alone runs since then; NULL: none */
	struct straggler_extra { /* collectives that steps did not have before */
		uint64_t comm;   /* 0: there are none */
		uint16_t op;
		uint64_t bytes;           /* of the largest */
		double calls;             /* more in a step, of each that takes part */
		uint32_t worker, workers; /* the first that takes part, and how many do */
	} extra;
	/* CPUs that its threads waited for, on average, since then and before; 0: it is not that. */
	double starved, starved_before;
	/* All come in time with the same work and wait longer, while their GPUs' memory is less busy than before. */
	bool is_idle;
	uint64_t wait_ns, usual_wait_ns; /* for the GPU, in a step */
	uint64_t lost_ns;                /* that ranks waited longer for their GPUs; 0: not known */
	double share;
	uint32_t steps;   /* in which */
	int64_t since_ns; /* 0: all of them */
	bool moves; /* other ranks have the largest input in every step, and steps last as it is large */
	uint64_t moved_ns;
	double moved_share;
};

int straggler_work_find(const struct recording *rec, const struct step_report *accounts,
	const struct straggler_job *j, struct straggler_work *ret); /* 0 or -ENOMEM */

/* Private to straggler_work.c and straggler_added.c. */
#define WORK_RANKS_MAX   256
#define WORK_STEPS_LEAST 6 /* steps whose launches are known */

struct work_rank {
	const struct step_account *a;
	uint32_t worker;
	double launches[2]; /* of ordinary and slow steps; 0: not known */
	double bytes[2];
	double received[2]; /* bytes of Recvs, on average */
};

/* work_step_of - the step of @a that @ns lies in; SIZE_MAX: none. */
size_t work_step_of(const struct step_account *a, int64_t ns);
/* work_outlier - of @n values the index of one that is clearly the highest, and at least @least; @n: none is. */
size_t work_outlier(const double *values, size_t n, double least);
/* work_find_added - what is more since steps are slow. 0 or -ENOMEM. */
int work_find_added(const struct recording *rec, const struct straggler_job *j,
	const struct work_rank *ranks, size_t n, struct straggler_work *ret);
