/* SPDX-License-Identifier: Apache-2.0 */
/* remediate.h - what a running trace tells programs on this machine that would act on it, over the remediation
 * stream: processes that are kept from their CPUs, what memory of the GPU they hold, and steps of inference
 * that took much longer than usual.
 *
 * Belongs to the tracer's thread and never waits. The socket is opened before privileges are given up, and
 * removed by who still has them (spawn_server_remove()). */
#pragma once

#include "notify/remediate/infer_steps.h"
#include "base/errinfo.h"
#include "model/sample.h"
#include "stream/stream.h"

#define REMEDIATE_SOCKET     "remediate-trace.sock" /* name for socket_path_default() */
#define REMEDIATE_PAUSE_NS   (30 * (int64_t)NS_PER_S)
#define REMEDIATE_GPUS_MAX   64
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
