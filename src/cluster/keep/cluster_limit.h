/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_limit.h - how many clusters rows may come of. Each of them has files of its own in the store, so
 * that one sender who makes names up could otherwise fill it with files. Names are counted for
 * CLUSTER_LIMIT_NS, then anew. One thread. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/idmap.h"

#define CLUSTER_LIMIT    1000
#define CLUSTER_LIMIT_NS (3600 * NS_PER_S)

struct cluster_limit {
	struct idmap names; /* by their hash */
	uint64_t since_ns;
};

#define CLUSTER_LIMIT_INIT ((struct cluster_limit){.names = IDMAP_INIT(CLUSTER_LIMIT)})

void cluster_limit_done(struct cluster_limit *l);

/* cluster_limit_take - rows of @name come; false: it is one too many. */
bool cluster_limit_take(struct cluster_limit *l, const char *name, size_t len, uint64_t now_ns);
