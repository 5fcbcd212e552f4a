/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker_call.h - one question to a process of its own, whichever engine runs in it: a turn, a start, the
 * question, the answer, the end. For those who make such workers: sql/sql_worker.c, duck/duck_worker.c. */
#pragma once

#include <pthread.h>

#include "sql/sql_worker.h"
#include "sql/sql_worker_wire.h"

struct sql_worker_kind {
	const char *name; /* of the process, as argv[0] */
	unsigned at_once;
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t freed;
	struct sql_worker_stats stats;
};
#define SQL_WORKER_KIND(kind_name, count)                                                          \
	{                                                                                          \
		.name = (kind_name), .at_once = (count), .mutex = PTHREAD_MUTEX_INITIALIZER,       \
		.freed = PTHREAD_COND_INITIALIZER                                                  \
	}

struct sql_worker_call {
	int (*send)(int socket, const void *arg); /* the question; negative errno */
	const void *arg;
	uint64_t deadline_ns;                /* of the monotonic clock */
	const struct sql_guard_rules *rules; /* no more than these is taken */
};

/* sql_worker_call - 0: *res is what the worker said, and may be an error. -EBUSY no turn came in time;
 * -ETIMEDOUT; -ECANCELED as of sql_worker_watch(); -EPROTO the process ended or answered what cannot be. */
int sql_worker_call(struct sql_worker_kind *k, const struct sql_worker_call *c,
	struct sql_wire_result *res, struct errinfo *reterr);

struct sql_worker_stats sql_worker_kind_stats(struct sql_worker_kind *k);

/* sql_worker_ceilings - @asked with what is 0 or more than in @most replaced; of time only 0 is. */
struct sql_guard_rules sql_worker_ceilings(
	const struct sql_guard_rules *asked, const struct sql_guard_rules *most);
