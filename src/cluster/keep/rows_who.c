/* SPDX-License-Identifier: Apache-2.0 */
/* rows_who.c - who a row is about, by the attributes of its point and its resource. */
#include <string.h>

#include "base/text.h"
#include "cluster/keep/rows_private.h"

/* The names of a role, the one that counts most first. */
static const struct name {
	const char *key;
	uint8_t len;
	uint8_t role;
	bool stays; /* in attrs: it says more than who it is about */
} names[] = {
#define NAME(text, role, stays)                                                                    \
	{                                                                                          \
		text, sizeof(text) - 1, role, stays                                                \
	}
	NAME("ingero.cluster.id", ROLE_CLUSTER, false),
	NAME("cluster_id", ROLE_CLUSTER, false),
	NAME("k8s.cluster.name", ROLE_CLUSTER, true),
	NAME("ingero.node.id", ROLE_NODE, false),
	NAME("node_id", ROLE_NODE, false),
	NAME("host.name", ROLE_NODE, true),
	NAME("k8s.node.name", ROLE_NODE, true),
	NAME("service.instance.id", ROLE_NODE, true),
	NAME("service.name", ROLE_NODE, true),
	NAME("ingero.world_rank", ROLE_RANK, false),
	NAME("ingero.node.rank", ROLE_RANK, false),
	NAME("rank", ROLE_RANK, false),
	NAME("ingero.world_size", ROLE_NRANKS, false),
	NAME("nranks", ROLE_NRANKS, false),
	NAME("world_size", ROLE_NRANKS, false),
	NAME("ingero.causal_chain_id", ROLE_CHAIN, false),
	NAME("causal_chain_id", ROLE_CHAIN, false),
	NAME("ingero.event.id", ROLE_EVENT, false),
	NAME("ingero.event_id", ROLE_EVENT, false),
	NAME("event_id", ROLE_EVENT, false),
	NAME("ingero.agent.boot", ROLE_COUNT, false),
#undef NAME
};

static const struct name *find_name(const struct otlp_attribute *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].len == a->key_len && memcmp(names[i].key, a->key, a->key_len) == 0)
			return &names[i];
	return NULL;
}

static bool is_told(const struct otlp_value *v, enum role role)
{
	int64_t n;

	if (role == ROLE_RANK || role == ROLE_NRANKS)
		return value_int(v, &n) && n >= 0;
	return v->kind == OTLP_TEXT && v->len;
}

void who_add(struct who *w, const struct otlp_attributes *a)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct name *n = find_name(&a->item[i]);
		unsigned weight;

		if (!n || n->role == ROLE_COUNT || !is_told(&a->item[i].value, n->role))
			continue;
		weight = (unsigned)(n - names);
		if (w->told[n->role] && w->weight[n->role] < weight)
			continue;
		w->told[n->role] = &a->item[i].value;
		w->weight[n->role] = weight;
	}
}

bool who_has(const struct otlp_attribute *a)
{
	const struct name *n = find_name(a);

	return n && !n->stays && (n->role == ROLE_COUNT || is_told(&a->value, n->role));
}

bool who_int(const struct who *w, enum role role, int64_t *ret)
{
	return w->told[role] && value_int(w->told[role], ret);
}

bool value_int(const struct otlp_value *v, int64_t *ret)
{
	int64_t n = 0;

	if (v->kind == OTLP_INT) {
		*ret = v->i;
		return true;
	}
	if (v->kind != OTLP_TEXT || !v->len || v->len > 18)
		return false;
	for (size_t i = 0; i < v->len; i++) {
		if (v->text[i] < '0' || v->text[i] > '9')
			return false;
		n = 10 * n + (v->text[i] - '0');
	}
	*ret = n;
	return true;
}

/* A name is a key of tables, a folder perhaps, and shown: plain text that is not cut. */
static bool is_name(const struct otlp_value *v)
{
	uint32_t cp;

	if (v->len >= ROWS_NODE_MAX)
		return false;
	for (size_t i = 0; i < v->len;) {
		int n = text_utf8_next(v->text + i, v->len - i, &cp);

		if (n < 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
			return false;
		i += (size_t)n;
	}
	return true;
}

void who_check(struct who *w, const struct keeper_request *q)
{
	const struct otlp_value *cluster = w->told[ROLE_CLUSTER], *node = w->told[ROLE_NODE];

	w->why = NULL;
	w->refused = false;
	if (!node)
		w->why =
			"it has no node: give the resource one of node_id, host.name, service.instance.id or service.name";
	else if (!is_name(node))
		w->why = "its node's name is longer than 127 bytes or not plain text";
	else if (cluster && !is_name(cluster))
		w->why = "its cluster's name is longer than 127 bytes or not plain text";
	if (w->why)
		return;
	w->node = node->text;
	w->node_len = node->len;
	w->cluster = cluster ? cluster->text : ROWS_CLUSTER;
	w->cluster_len = cluster ? cluster->len : strlen(ROWS_CLUSTER);
	w->refused = q->may_write &&
		     !q->may_write(q->may_write_arg, q->sender, w->cluster, w->cluster_len);
	if (w->refused)
		w->why = "tenant_scoped_bearer_refused: the token is not for its cluster";
}
