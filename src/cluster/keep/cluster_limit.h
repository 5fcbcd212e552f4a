/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_limit.h - how many clusters rows may come of. Each of them has files of its own in the store, so
 * that one sender who makes names up could otherwise fill it with files. New names are counted for
 * CLUSTER_LIMIT_NS, then anew; a token brings half of them at most, and a cluster that the store has rows of is not
 * new. One thread. */
#pragma once

#include "base/clock.h"
#include "base/idmap.h"
#include "cluster/store/store.h"

#define CLUSTER_LIMIT    1000
#define CLUSTER_LIMIT_NS (3600 * NS_PER_S)
#define CLUSTER_KEPT_MAX 65536 /* as many as the store has files */

struct cluster_limit {
	struct idmap names;   /* by their hash; new ones and others */
	struct idmap senders; /* how many new names each has brought */
	size_t new_names;
	uint64_t since_ns;
};

#define CLUSTER_LIMIT_INIT                                                                         \
	((struct cluster_limit){.names = IDMAP_INIT(CLUSTER_LIMIT + CLUSTER_KEPT_MAX),             \
		.senders = IDMAP_INIT(CLUSTER_LIMIT)})

void cluster_limit_done(struct cluster_limit *l);

/* cluster_limit_take - rows of @name come by the token @sender (0: none is asked for); false: it is one too many.
 * @store: NULL, or what rows are kept in. */
bool cluster_limit_take(struct cluster_limit *l, struct store *store, uint64_t sender,
	const char *name, size_t len, uint64_t now_ns);
