/* SPDX-License-Identifier: Apache-2.0 */
/* remediate.h - what a running trace tells programs on this machine that would act on it, over the remediation
 * stream: processes that are kept from their CPUs, what memory of the GPU they hold, and steps of inference
 * that took much longer than usual.
 *
 * Belongs to the tracer's thread and never waits. The socket is opened before privileges are given up, and
 * removed by who still has them (spawn_server_remove()). */
#pragma once

#include "base/errinfo.h"
#include "base/idmap.h"
#include "model/event.h"
#include "model/sample.h"
#include "notify/remediate/infer_steps.h"
#include "stream/stream.h"

#define REMEDIATE_SOCKET     "remediate-trace.sock" /* name for socket_path_default() */
#define REMEDIATE_KV_TOP     5
#define REMEDIATE_KV_TOP_MAX STREAM_ALLOCS

struct remediate_settings { /* texts are the caller's */
	const char *path;   /* of the socket */
	gid_t group;        /* whose members may read it; SOCKET_NO_GROUP: none */
	const char *node, *cluster;
	bool inference; /* steps are followed */
	struct infer_settings steps;
	size_t kv_top;     /* ages of the oldest allocations told with an outlier; 0: none */
	size_t allocs_max; /* allocations that are followed of a process */
	/* An outlier, as it was published; may be NULL. */
	void (*outlier)(void *arg, const struct stream_message *m);
	void *arg;
};

struct remediate;

int remediate_open(
	const struct remediate_settings *s, struct remediate **ret, struct errinfo *reterr);
void remediate_close(struct remediate *r);

/* What the tracer saw. */
void remediate_event(struct remediate *r, const struct event *e);
void remediate_gpu(struct remediate *r, const struct gpu_sample *s);
/* remediate_launches - as straggle_launches(). */
void remediate_launches(struct remediate *r, uint32_t pid, const char *comm, uint64_t count);
/* remediate_incident - one that explains what @pid's steps lose lasts. */
void remediate_incident(struct remediate *r, uint32_t pid, wall_time now);

void remediate_second(struct remediate *r, wall_time now); /* a second is over */
void remediate_poll(struct remediate *r);                  /* often: who connects, who leaves */

struct stream_stats remediate_stats(const struct remediate *r);
const struct infer_steps *remediate_steps(const struct remediate *r);

/* Processes that launch less than they used to while others have their CPUs. Pure.
 *
 * Once a second, for each process: its launches against their moving average (a fifth of the newest). After
 * three seconds of warm-up a process straggles if it launched under 70 % of that and its threads were kept
 * from a CPU at least five times in that second; it goes on while they are kept from it so often, and the
 * average stands still meanwhile. A process that launches nothing for 30 s is forgotten. */
#define STRAGGLE_PREEMPTORS 16

struct straggle_process {
	uint32_t pid;
	char comm[COMM_LEN];
	struct placement place;
	uint64_t launches, before; /* as told now, and at the end of the last second */
	bool told;                 /* in this second */
	double ordinary;           /* launches a second */
	unsigned seconds, idle;    /* of the average; without launches */
	uint64_t switches;         /* in this second: kept from a CPU */
	uint32_t preemptors[STRAGGLE_PREEMPTORS];
	size_t preemptor_count;
	bool is_straggling;
	int64_t since_ns; /* it is */
};

struct straggle {
	struct idmap processes; /* pid -> struct straggle_process */
};

void straggle_init(struct straggle *s);
void straggle_done(struct straggle *s);

/* straggle_take - a stay off CPU, or the end of a process. */
void straggle_take(struct straggle *s, const struct event *e);

/* straggle_launches - @count more of @pid's launches since the trace began are these; may be called several
 * times a second, for several functions. */
void straggle_launches(struct straggle *s, uint32_t pid, const char *comm, uint64_t count);

struct straggle_verdict {
	const struct straggle_process *process;
	double drop_pct;
	bool sustained; /* it was one already a second ago */
};

/* straggle_second - a second is over. @fn is told of those that straggle; what it is given is valid during
 * its call. */
void straggle_second(struct straggle *s, wall_time now,
	void (*fn)(void *arg, const struct straggle_verdict *v), void *arg);
