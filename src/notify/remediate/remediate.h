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
#include "stream/stream.h"

/* ---- steps of inference and those that took much longer than is usual. Pure.
 *
 * A step is the time between the ends of two waits for the GPU on the same stream of a process, up to a
 * minute. Its baseline is that stream's own: a moving average (a twentieth of the newest) and the p95 of the
 * last INFER_WINDOW steps. After the warm-up a step beyond 1.5, 2 or ratio times that p95 is an outlier, and
 * no part of the baseline. Nothing is learned, and nothing found, while an incident of the process that
 * explains it lasts (infer_pause()). */

#define INFER_STREAMS 1024 /* that are followed; the one longest without a step goes */
#define INFER_WINDOW  128

struct infer_settings {
	unsigned warmup; /* steps, at least 1 */
	double ratio;    /* of the largest bucket, over 2 */
};

enum infer_bucket { INFER_ORDINARY, INFER_1_5X, INFER_2X, INFER_RATIO };

struct infer_stream {
	uint32_t pid;
	uint64_t stream, cgroup_id;
	struct placement place;
	int64_t last_ns; /* end of the last wait */
	uint64_t count;  /* steps that were learned */
	double mean_ns;
	uint64_t window[INFER_WINDOW]; /* the newest, by turns */
	uint64_t p95_ns;
};

struct infer_steps {
	struct infer_settings settings;
	struct idmap streams;    /* hash of pid and stream -> struct infer_stream */
	struct idmap paused;     /* pid -> struct infer_pause */
	uint64_t outliers[4];    /* by enum infer_bucket */
	uint64_t steps, ignored; /* seen; longer than a minute, or while paused */
};

void infer_init(struct infer_steps *s, const struct infer_settings *settings);
void infer_done(struct infer_steps *s);

struct infer_outlier {
	const struct infer_stream *of;
	enum infer_bucket bucket;
	uint64_t step_ns;
	wall_time end;
};

/* infer_take - a call, or the end of a process. True: it ended a step that is an outlier, *ret. */
bool infer_take(struct infer_steps *s, const struct event *e, struct infer_outlier *ret);

/* infer_pause - nothing is learned of @pid until @until. */
void infer_pause(struct infer_steps *s, uint32_t pid, wall_time until);

/* infer_bucket_name - "1.5x", "2x", "3x": of the last, the ratio as it was set. */
#define INFER_NAME_MAX 24
const char *infer_bucket_name(
	const struct infer_steps *s, enum infer_bucket b, char out[INFER_NAME_MAX]);

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

/* ---- what memory of the GPU each process has allocated and not freed, from its own calls. Pure.
 *
 * Known are allocations whose pointer is in the call's record (cudaMalloc, cuMemAlloc, managed and pitched
 * ones), made since the trace began. What PyTorch keeps after a tensor is freed is still allocated. */

#define BALANCE_PROCESSES 1024
#define BALANCE_ALLOCS    8192 /* of a process, by default; beyond them the oldest are forgotten */

struct balance_process {
	uint32_t pid;
	int32_t device; /* of the last allocation */
	char comm[COMM_LEN];
	uint64_t bytes, last_bytes; /* allocated now; by the last call */
	struct idmap allocs;        /* pointer -> struct balance_alloc */
	bool changed;               /* since balance_next() saw it */
};

struct balance {
	struct idmap processes; /* pid -> struct balance_process */
	size_t allocs_max;
};

void balance_init(struct balance *b, size_t allocs_max);
void balance_done(struct balance *b);

/* balance_take - a call, or the end of a process; others are none of its business. */
void balance_take(struct balance *b, const struct event *e);

/* balance_next - the next process whose memory has changed since it was last given; NULL: no more. */
struct balance_process *balance_next(struct balance *b, size_t *cursor);

/* balance_ages - how long the oldest allocations of @pid have lived at @now, in ms, the oldest first, at most
 * @max of them. Returns how many. */
size_t balance_ages(
	const struct balance *b, uint32_t pid, wall_time now, uint64_t *ret, size_t max);
