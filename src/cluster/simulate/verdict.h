/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - one made-up cluster, played to the core from its beginning to its end, and whether what
 * was said is what was done. */
#pragma once

#include "cluster/simulate/play.h"

struct verdict {
	enum job_fault fault; /* what was played: a shape may not have every fault */
	uint32_t traits;      /* of a hard job: bits of enum job_trait */
	bool right; /* the worst episode names it; without a fault: nothing was reported */
	uint32_t false_alarms; /* episodes about others */
	uint64_t span_ns, messages, calls;
	int64_t first_late_ns; /* from the beginning: a faulty rank came late to a collective; -1: never */
	int64_t named_ns;     /* likewise: the fault was told; -1: never */
	int64_t shown_ns;     /* likewise: it was shown, perhaps as provisional */
	uint32_t shown_wrong; /* provisional episodes about others */
	uint64_t last_shown;  /* id of the last of these */
	int64_t said_ns;      /* likewise: @said was */
	char shape[192];      /* "data 8, tensor 2, pipeline 4" */
	char truth[96];       /* "rank 3, 45 %, from step 30" */
	char said[512];       /* the first that was wrong, or the worst; "": nothing */
};

struct verdict_how {
	uint32_t begin;   /* the fault begins with this step at the earliest */
	uint32_t stretch; /* steps last so many times as long */
	bool is_hard;     /* job_spec_harden() */
};

/* verdict_of_random - of job_spec_random(@seed, @fault), as @how says. -ENOMEM. */
int verdict_of_random(
	uint64_t seed, enum job_fault fault, const struct verdict_how *how, struct verdict *ret);

/* verdict_of_healthy - one cluster without a fault for @span_ns, in which one random job follows another, each on
 * other clocks; the core lives through all of them. -ENOMEM. */
int verdict_of_healthy(
	uint64_t seed, uint64_t span_ns, const struct verdict_how *how, struct verdict *ret);
