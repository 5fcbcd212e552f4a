/* SPDX-License-Identifier: Apache-2.0 */
/* time_finding.h - what a process's time was lost to, by its account: what slow units have more of than
 * ordinary ones, and what every unit has too much of. Facts alone: which of them are incidents, how bad they
 * are and what is said is decided later (compose, sentences). */
#pragma once

#include "diagnose/chains/delay.h"
#include "diagnose/chains/gpu_change.h"
#include "diagnose/findings/detector.h"

enum time_contrast {
	CONTRAST_SLOW,  /* slow units against ordinary ones */
	CONTRAST_WHOLE, /* what all ordinary units consist of */
};

struct time_finding {
	enum time_contrast contrast;
	struct delay delay;
	enum problem problem;
	uint64_t lost_ns; /* of the process's time */
	uint32_t units;   /* in which it was lost */
	double share;     /* of the time in units */
	double confidence;
	uint32_t with;   /* bits of kinds of delays that compose has put into it: the same cause */
	bool is_routine; /* of slow units: judged as what all units have */
	bool is_harmless; /* more work, a pause on purpose, a program that has nothing to do, the tracer */
};

struct time_findings { /* of one process */
	const struct recording *rec;
	const struct step_account *account;
	struct step_account whole; /* its ordinary units alone; borrows */
	struct delay_list slow_delays, whole_delays;
	struct gpu_change gpu;
	struct time_finding items[2 * DELAY_KINDS]; /* in no order that matters */
	int count;
};

/* time_findings_find - 0 or -ENOMEM. */
int time_findings_find(const struct recording *rec, const struct step_account *a,
	double completeness, struct time_findings *ret);

/* time_finding_account - the account that @f is about: with its slow units, or the ordinary ones alone. */
static inline const struct step_account *time_finding_account(
	const struct time_findings *all, const struct time_finding *f)
{
	return f->contrast == CONTRAST_SLOW ? all->account : &all->whole;
}
