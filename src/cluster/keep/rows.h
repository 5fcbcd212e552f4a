/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - what a request of OTLP says, as rows of the tables. No I/O.
 *
 * Every point, record and span is a row of events. Who it is about is said by attributes, of the point or
 * else of its resource:
 *   cluster_id   ingero.cluster.id, cluster_id, k8s.cluster.name; without one: "default"
 *   node_id      ingero.node.id, node_id, host.name, k8s.node.name, service.instance.id, service.name;
 *                without any it is rejected
 *   rank         ingero.node.rank, ingero.world_rank, rank
 *   nranks       ingero.world_size, nranks, world_size
 *   causal_chain_id, event_id   also with "ingero." before them, or ingero.event.id
 * All others are kept in attrs, as a JSON object. One without a time happened when it came. A number that
 * is none (NaN, infinite), a name that does not fit and a time more than a day ahead reject it.
 *
 * What agents push besides: batches of calls are rows of collectives too, reports rows of steps and
 * incidents, and records named ingero.causal_chain rows of causal_chains, with attributes named as its
 * columns. */
#pragma once

#include "base/errinfo.h"
#include "base/idmap.h"
#include "cluster/keep/keeper.h"
#include "cluster/keep/seen.h"

#define ROWS_NODE_MAX  128 /* bytes of a cluster's or node's name with a NUL */
#define ROWS_CLUSTER   "default"
#define ROWS_BYTES_MAX JOURNAL_ENTRY_MAX

struct rows { /* begins as zeros, but for batch.bytes.max; rows_done() afterwards */
	struct batch batch;
	size_t taken, rejected, refused; /* refused: rejected, because of may_write */
	bool untimed;          /* some had no time of their own: its bytes do not tell it */
	bool waits;            /* part of it is being written: it has to come again */
	struct seen_key *keys; /* of what in it counts once */
	size_t key_count, key_room;
	struct idmap known; /* them, by their first bytes */
	char why[256];      /* of the first that was rejected */
};
void rows_done(struct rows *r);

/* rows_read - @seen says what was taken before; NULL: nothing was. -EBADMSG, -E2BIG, -ENOMEM. */
int rows_read(const struct keeper_request *q, int64_t now_ns, const struct seen *seen,
	struct rows *ret, struct errinfo *reterr);
