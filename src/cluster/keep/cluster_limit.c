/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_limit.c - see keeper_private.h. */
#include "cluster/keep/keeper_private.h"

#include "base/hash.h"

void cluster_limit_done(struct cluster_limit *l)
{
	idmap_done(&l->names);
	idmap_done(&l->senders);
	l->new_names = 0;
}

static bool take_new(struct cluster_limit *l, uint64_t sender)
{
	uintptr_t brought = (uintptr_t)idmap_get(&l->senders, sender);

	if (l->new_names >= CLUSTER_LIMIT || (sender && brought >= CLUSTER_LIMIT / 2))
		return false;
	if (idmap_put(&l->senders, sender, (void *)(brought + 1)) < 0)
		return false;
	l->new_names++;
	return true;
}

bool cluster_limit_take(struct cluster_limit *l, struct store *store, uint64_t sender,
	const char *name, size_t len, uint64_t now_ns)
{
	uint64_t id = hash_name(name, len);

	if (now_ns - l->since_ns > CLUSTER_LIMIT_NS) {
		cluster_limit_done(l);
		l->since_ns = now_ns;
	}
	if (idmap_get(&l->names, id))
		return true;
	if (!(store && store_has(store, name, len)) && !take_new(l, sender))
		return false;
	return idmap_put(&l->names, id, l) == 0;
}
