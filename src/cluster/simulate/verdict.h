/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - one made-up cluster, played to the core from its beginning to its end, and whether what
 * was said is what was done. */
#pragma once

#include "cluster/simulate/play.h"

struct verdict {
	enum job_fault fault;  /* what was played: a shape may not have every fault */
	bool right;            /* the worst episode names it; without a fault: nothing was said */
	uint32_t false_alarms; /* episodes about others */
	uint64_t span_ns, messages, calls;
	char shape[96]; /* "data 8, tensor 2, pipeline 4" */
	char said[512]; /* the first that was wrong, or the worst; "": nothing */
};

/* verdict_of_random - of job_spec_random(@seed, @fault). -ENOMEM. */
int verdict_of_random(uint64_t seed, enum job_fault fault, struct verdict *ret);
