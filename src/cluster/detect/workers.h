/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - the processes that take part in collectives, each a rank of a job, and what is known of
 * each. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "stat/sketch.h"

struct worker {
	uint32_t id, node, pid;
	int32_t world_rank;
	uint32_t members; /* of communicators that name it */
	int64_t last_ns;  /* when its last call came */
	int64_t enter_ns; /* of its newest call, its node's clock */
	int64_t inside_ns; /* it entered a call of an unknown communicator and has not left; 0: none */
	uint64_t made;     /* calls, Sends and Recvs included */
	uint64_t calls, last_count, waited_ns;
	struct sketch *lag;                       /* NULL: never last */
	int64_t late_since_ns, late_ns;           /* first and last time, cluster's clock */
	uint64_t late_epoch;                      /* when late_by_ns was begun */
	uint64_t late_by_ns[2];                   /* in this epoch, in the one before */
	uint64_t waiting;                         /* round of hangs_find() in which it waits */
	int64_t slower_since_ns, slower_until_ns; /* its job is, as far as is known */
	double slower;                            /* how many times as long it takes */
};

struct workers {
	struct worker **items; /* by id; NULL: free */
	size_t count, room, sketches;
	uint32_t max, used;
	struct idmap by_process;
};

void workers_init(struct workers *w, uint32_t max);
void workers_done(struct workers *w);
/* workers_get - of process @pid on node @node, made if there is none: 1. -ENOBUFS, -ENOMEM. */
int workers_get(struct workers *w, uint32_t node, uint32_t pid, struct worker **ret);
void workers_remove(struct workers *w, struct worker *x);
/* workers_add_lag - it was last by so much. -ENOMEM: it is not counted. */
int workers_add_lag(struct workers *w, struct worker *x, uint64_t lag_ns);
