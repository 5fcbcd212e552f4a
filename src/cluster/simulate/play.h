/* SPDX-License-Identifier: Apache-2.0 */
/* play.h - a made-up job and its made-up agents, played to the core in virtual time: what `simulate`,
 * `demo` and tests have in common. */
#pragma once

#include "cluster/detect/fleet.h"
#include "cluster/simulate/job.h"
#include "cluster/simulate/simulation.h"

#define PLAY_TICK_NS 100000000 /* of the core */

struct play_settings {
	struct job_spec job;    /* steps 0: no job, only nodes */
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
void play_free(struct play *p);
DEFINE_CLEANUP(struct play *, play_free)

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
