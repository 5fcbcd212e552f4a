/* SPDX-License-Identifier: Apache-2.0 */
/* rows_private.h - the parts of rows.h: rows.c has the walk and events, rows_push.c who a row is about, and what our
 * agents push besides. */
#pragma once

#include "cluster/keep/rows.h"
#include "otlp/otlp_read.h"

/* What attributes say about a row. */
enum role { ROLE_CLUSTER, ROLE_NODE, ROLE_RANK, ROLE_NRANKS, ROLE_CHAIN, ROLE_EVENT, ROLE_COUNT };

struct who {
	const struct otlp_value *told[ROLE_COUNT]; /* NULL: not told */
	unsigned weight[ROLE_COUNT]; /* of the name it was told under: the least counts */
	const char *cluster, *node;
	size_t cluster_len, node_len;
	const char *why; /* its rows are rejected */
	bool refused;    /* because of may_write */
};

struct rows_walk {
	const struct keeper_request *q;
	int64_t now_ns;
	const struct seen *seen;
	struct rows *rows;
	size_t resource;     /* number of the resource that the next is of */
	bool resource_tells; /* it has attributes for attrs */
	struct who who;      /* as the resource tells it */
	struct buf json;
	bool pushed;   /* a record of our agents is among them */
	size_t unread; /* of these: events all the same, but nothing else */
	int err;       /* -ENOMEM: all is given up */
};

/* who_add - what @a says, where it says more than is known. */
void who_add(struct who *w, const struct otlp_attributes *a);
/* who_check - sets the names, or why not. */
void who_check(struct who *w, const struct keeper_request *q);
/* who_has - whether an attribute has a column of its own. */
bool who_has(const struct otlp_attribute *a);
/* who_int - of a role; false: not told. */
bool who_int(const struct who *w, enum role role, int64_t *ret);

/* value_int - a whole number, also one in a text. */
bool value_int(const struct otlp_value *v, int64_t *ret);

/* rows_begin - a row of any table but node_metrics: all begin with a time, that of reception, cluster and node. */
void rows_begin(struct rows_walk *x, enum store_table t, int64_t ts_ns, const struct who *who);

/* rows_push - batches of calls and reports; one that cannot be read is rejected. */
int rows_push(struct rows_walk *x, struct errinfo *reterr);

/* rows_record_is_new - of a record of our agents. False: the same was told before, in the same words, in whatever
 * request; or x->err. */
bool rows_record_is_new(struct rows_walk *x, const struct who *who, const struct otlp_record *r);
/* rows_chain - a record named ingero.causal_chain. */
void rows_chain(struct rows_walk *x, const struct who *who, const struct otlp_record *r);
