/* SPDX-License-Identifier: Apache-2.0 */
/* play.h - a made-up job and its made-up agents, played to the core in virtual time: what `simulate`,
 * `demo` and tests have in common. */
#pragma once

#include "cluster/detect/fleet.h"
#include "cluster/simulate/job.h"
#include "cluster/simulate/simulation.h"

#define PLAY_TICK_NS 100000000 /* of the core */

struct play_settings {
	struct job_spec job; /* steps 0: no job, only nodes; clocks are its nodes': agents.faults */
	struct job_spec beside; /* another one on the same nodes; steps 0: none */
	/* Nodes 0: as many as the job's ranks need. Ranks and reports are the play's own. */
	struct simulation_settings agents;
	const struct push_report
		*report; /* what the agents of the faulty workers say; NULL: nothing */
	/* Told of each message before the core is; NULL: nobody. */
	void (*watch)(void *arg, const struct simulation_message *m);
	void *watch_arg;
};

struct play;
int play_new(const struct play_settings *s, struct play **ret);
DECLARE_FREE(struct play, play_free)

/* play_until - all that happens before @until_ns happens to @f. 1; 0 if nothing is left; or a negative
 * errno. */
int play_until(struct play *p, struct fleet *f, int64_t until_ns);

/* play_job - what the job was, for those who know the truth. */
const struct job_trace *play_job(const struct play *p);
int64_t play_now(const struct play *p); /* of the last tick */
int64_t play_end(const struct play *p); /* of the job */
/* play_first_late - a faulty rank came late for the first time; -1: never. */
int64_t play_first_late(const struct play *p);

struct play_counts {
	uint64_t messages, refused, calls, duplicate;
};
struct play_counts play_counts(const struct play *p);

/* ---- one made-up cluster, played to the core from its beginning to its end, and whether what
 * was said is what was done. */

struct verdict {
	enum job_fault fault; /* what was played: a shape may not have every fault */
	uint32_t traits;      /* of a hard job: bits of enum job_trait */
	bool right;  /* the worst episode names it; without a fault: nothing was reported */
	double cost; /* of the job's time since the fault begins */
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
