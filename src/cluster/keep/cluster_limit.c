/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_limit.c - see cluster_limit.h. */
#include "cluster/keep/cluster_limit.h"

#include "base/hash.h"

void cluster_limit_done(struct cluster_limit *l)
{
	idmap_done(&l->names);
}

bool cluster_limit_take(struct cluster_limit *l, const char *name, size_t len, uint64_t now_ns)
{
	uint64_t id = hash_bytes(name, len);

	if (now_ns - l->since_ns > CLUSTER_LIMIT_NS) {
		idmap_done(&l->names);
		l->since_ns = now_ns;
	}
	return idmap_get(&l->names, id) || idmap_put(&l->names, id, l) == 0;
}
