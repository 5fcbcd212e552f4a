/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_table.c - rows of nodes and cohorts: found by a hash of their names, entered, forgotten. Rows
 * whose hashes are the same are chained. See nodes_table.h for the invariants. */
#include "cluster/detect/nodes_table.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/search.h"

static uint64_t hash_names(const char *cluster, unsigned kind, const char *name)
{
	uint64_t h = hash_name(cluster, strlen(cluster));

	return hash_number(h ^ hash_number(hash_name(name, strlen(name)) + kind));
}

struct node *node_find(const struct nodes *n, const char *cluster, const char *node)
{
	struct node *d = idmap_get(&n->by_name, hash_names(cluster, 0, node));

	while (d &&
		(strcmp(d->last.who.node, node) != 0 || strcmp(d->last.who.cluster, cluster) != 0))
		d = d->same_hash;
	return d;
}

bool token_has_room(const struct nodes *n, uint64_t token)
{
	uint32_t max = n->settings.nodes_per_token;

	return !token || !max || (uintptr_t)idmap_get(&n->tokens, token) < max;
}

static void token_drop(struct nodes *n, uint64_t token)
{
	uintptr_t uses = token ? (uintptr_t)idmap_get(&n->tokens, token) : 0;

	if (uses > 1)
		idmap_put(&n->tokens, token, (void *)(uses - 1));
	else if (uses)
		idmap_remove(&n->tokens, token);
}

bool node_set_token(struct nodes *n, struct node *d, uint64_t token)
{
	uintptr_t uses = token ? (uintptr_t)idmap_get(&n->tokens, token) : 0;

	if (d->token == token)
		return true;
	if (!token_has_room(n, token))
		return false;
	if (token && idmap_put(&n->tokens, token, (void *)(uses + 1)) < 0)
		return false;
	token_drop(n, d->token);
	d->token = token;
	return true;
}

static int compare_names(const struct node *d, const char *cluster, const char *node)
{
	int r = strcmp(d->last.who.cluster, cluster);

	return r ? r : strcmp(d->last.who.node, node);
}

struct node *node_add(struct nodes *n, const struct push_who *who, uint64_t token)
{
	_cleanup_free_ struct node *d = calloc(1, sizeof(*d));
	size_t at, max = n->settings.nodes_max;

	if (!d || ARRAY_RESERVE(n->order, n->room, n->count + 1, max) < 0 ||
		ARRAY_RESERVE(n->values, n->values_room, n->count + 1, max) < 0)
		return NULL;
	d->last.who = *who;
	d->hash = hash_names(who->cluster, 0, who->node);
	d->same_hash = idmap_get(&n->by_name, d->hash);
	if (!node_set_token(n, d, token))
		return NULL;
	if (idmap_put(&n->by_name, d->hash, d) < 0) {
		token_drop(n, token);
		return NULL;
	}
	at = LOWER_BOUND(i, n->count, compare_names(n->order[i], who->cluster, who->node) < 0);
	memmove(n->order + at + 1, n->order + at, (n->count - at) * sizeof(*n->order));
	n->order[at] = d;
	n->count++;
	return TAKE(d);
}

struct cohort *cohort_find(
	const struct nodes *n, enum cohort_kind kind, const char *cluster, const char *name)
{
	struct cohort *c = idmap_get(&n->cohorts, hash_names(cluster, kind + 1, name));

	while (c &&
		(c->kind != kind || strcmp(c->name, name) != 0 || strcmp(c->cluster, cluster) != 0))
		c = c->same_hash;
	return c;
}

static struct cohort *cohort_add(
	struct nodes *n, enum cohort_kind kind, const char *cluster, const char *name)
{
	_cleanup_free_ struct cohort *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = kind;
	snprintf(c->cluster, sizeof(c->cluster), "%s", cluster);
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->hash = hash_names(cluster, kind + 1, name);
	c->same_hash = idmap_get(&n->cohorts, c->hash);
	c->heard_ns = c->due_ns = c->deaf_ns = INT64_MIN;
	if (idmap_put(&n->cohorts, c->hash, c) < 0)
		return NULL;
	if (kind == COHORT_CLUSTER) {
		LIST_INSERT_HEAD(&n->clusters, c, sibling);
	} else {
		c->parent = cohort_find(n, COHORT_CLUSTER, cluster, "");
		LIST_INSERT_HEAD(&c->parent->others, c, sibling);
	}
	return TAKE(c);
}

/* A row leaves the chain of those with its hash; @next_of is where a row keeps the next one. */
#define CHAIN_REMOVE(map, row, field)                                                              \
	do {                                                                                       \
		__typeof__(row) first_ = idmap_get((map), (row)->hash), *at_ = &first_;            \
                                                                                                   \
		while (*at_ != (row))                                                              \
			at_ = &(*at_)->field;                                                      \
		*at_ = (row)->field;                                                               \
		if (first_)                                                                        \
			idmap_put((map), (row)->hash, first_); /* replaces: cannot fail */         \
		else                                                                               \
			idmap_remove((map), (row)->hash);                                          \
	} while (0)

static void node_leave(struct nodes *n, struct node *d, enum cohort_kind kind)
{
	struct cohort *c = d->in[kind];

	if (!c)
		return;
	LIST_REMOVE(d, with[kind]);
	d->in[kind] = NULL;
	if (--c->count)
		return;
	CHAIN_REMOVE(&n->cohorts, c, same_hash);
	LIST_REMOVE(c, sibling);
	free(c);
}

static int node_enter(struct nodes *n, struct node *d, enum cohort_kind kind, const char *name)
{
	const char *cluster = d->last.who.cluster;
	struct cohort *c;

	if (d->in[kind] && strcmp(d->in[kind]->name, name) == 0)
		return 0;
	c = cohort_find(n, kind, cluster, name);
	c = c ?: cohort_add(n, kind, cluster, name);
	if (!c)
		return -ENOMEM;
	node_leave(n, d, kind);
	d->in[kind] = c;
	LIST_INSERT_HEAD(&c->members, d, with[kind]);
	c->count++;
	if (kind == COHORT_PEERS) /* what it was among others says nothing about it here */
		memset(d->traces, 0, sizeof(d->traces));
	return 0;
}

int node_join(struct nodes *n, struct node *d)
{
	const struct push_health *h = &d->last;
	char peers[sizeof(d->in[0]->name)], workload[sizeof(d->in[0]->name)];
	int r;

	snprintf(workload, sizeof(workload), "workload:%s", h->workload);
	snprintf(peers, sizeof(peers), "%s\x1f%s\x1f%" PRIu32, h->workload, h->gpu_model,
		h->who.world_size);
	r = node_enter(n, d, COHORT_CLUSTER, "");
	r = r ?: node_enter(n, d, COHORT_WORKLOAD, workload);
	r = r ?: node_enter(n, d, COHORT_PEERS, peers);
	if (r == 0 && h->cohort[0])
		r = node_enter(n, d, COHORT_HASH, h->cohort);
	else if (r == 0)
		node_leave(n, d, COHORT_HASH);
	return r;
}

void nodes_forget_gone(struct nodes *n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->count; i++) {
		if (n->order[i]->is_gone) {
			/* the cluster's cohort last: the others are listed in it */
			for (int kind = COHORT_KIND_COUNT - 1; kind >= 0; kind--)
				node_leave(n, n->order[i], kind);
			CHAIN_REMOVE(&n->by_name, n->order[i], same_hash);
			token_drop(n, n->order[i]->token);
			free(n->order[i]);
		} else {
			n->order[kept++] = n->order[i];
		}
	}
	n->count = kept;
}

void nodes_clear(struct nodes *n)
{
	for (size_t i = 0; i < n->count; i++)
		n->order[i]->is_gone = true;
	nodes_forget_gone(n);
}
