/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_snapshot.h - short questions to a store that need not load it, for those who answer while
 * others wait. Read-only, as nodedb_read(); all that is asked of one is as of one moment.
 *
 * To add a list: a value here, its row in nodedb_list.c. */
#pragma once

#include "store/nodedb.h"
#include "sql/sql_table.h"

struct nodedb_snapshot;

/* nodedb_snapshot - opens @path and calls @fn. If a writer came in between, once more: @fn starts
 * afresh at each call. Returns what @fn returned, or why it could not be opened. */
typedef int nodedb_snapshot_fn(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr);
int nodedb_snapshot_read(
	const char *path, nodedb_snapshot_fn *fn, void *arg, struct errinfo *reterr);

const char *nodedb_snapshot_schema(const struct nodedb_snapshot *l); /* "0.11" */
bool nodedb_snapshot_is_ours(const struct nodedb_snapshot *l); /* else of the published agent */
const char *nodedb_snapshot_path(const struct nodedb_snapshot *l);

/* nodedb_snapshot_range - of everything that has a time, not of events alone; 0, 0: nothing has. */
int nodedb_snapshot_range(
	struct nodedb_snapshot *l, struct nodedb_range *ret, struct errinfo *reterr);

#define NODEDB_LIST_MAX   100000u
#define NODEDB_LIST_BYTES (32u << 20)

enum nodedb_list {       /* columns are named as the API's keys */
	NODEDB_SESSIONS, /* newest first */
	NODEDB_NODES,
	NODEDB_PROCESSES,    /* first seen in the range, newest first */
	NODEDB_COVERAGE,     /* of the newest session of each process */
	NODEDB_CALLS,        /* by pid, in the range: calls, ns of those not nested */
	NODEDB_OP_SUMS,      /* by operation, in minutes of the range: calls, ns, min, max */
	NODEDB_CHAINS,       /* newest first */
	NODEDB_WORST_CHAINS, /* the same, worst first */
	NODEDB_SEVERITIES,   /* of chains: how many */
	NODEDB_ACTIVE,       /* of incidents seen in the range and not over: how many */
	NODEDB_INCIDENTS,    /* stored while tracing, the last seen first; of any time */
	NODEDB_SNAPSHOTS,    /* newest first */
	NODEDB_GPU_SAMPLES,  /* newest first; node, gpu, uuid, name, pci, timestamp, GPU_FIELDS */
	NODEDB_OVERHEAD,     /* newest first */
	NODEDB_GRAPH_EVENTS, /* newest first */
	NODEDB_KERNELS,      /* by name, most launches first; of whole processes */
	NODEDB_ACCOUNTING,
	NODEDB_LOSSES,
	NODEDB_CPU_LOSSES,
	NODEDB_CALL_GAPS, /* longest first */
	NODEDB_PRUNED,
	NODEDB_STACK_TOTALS, /* source, op, hash, n, ns, min, max, "pid name", rows; most time first */
	NODEDB_LIST_COUNT
};

/* nodedb_snapshot_list - up to @limit rows (0: NODEDB_LIST_MAX); further ones set the table's
 * truncated. A table that the file lacks has none (and no columns). On success *ret is the caller's
 * (sql_table_done()). */
int nodedb_snapshot_list(struct nodedb_snapshot *l, enum nodedb_list list, const struct scope *s,
	size_t limit, struct sql_table *ret, struct errinfo *reterr);

/* nodedb_snapshot_count - events in the scope, but no more than @max + 1. */
int nodedb_snapshot_count(struct nodedb_snapshot *l, const struct scope *s, uint64_t max,
	uint64_t *ret, struct errinfo *reterr);

struct nodedb_totals {
	uint64_t events, chains, sessions;
	bool events_exact; /* else by the numbers of the first and last row */
};
int nodedb_snapshot_totals(
	struct nodedb_snapshot *l, struct nodedb_totals *ret, struct errinfo *reterr);

/* nodedb_snapshot_caveats - fills in unclean, unclean_ns, launch_watched and launch_error of @books, the rest stays. */
int nodedb_snapshot_caveats(
	struct nodedb_snapshot *l, struct accounting *books, struct errinfo *reterr);

/* nodedb_snapshot_has - whether the table is there and has a row. */
int nodedb_snapshot_has(struct nodedb_snapshot *l, const char *table, struct errinfo *reterr);

/* nodedb_snapshot_aggregates - calls @fn for each bucket of the scope (scope.c says which belong to
 * it, scope_bucket_ns() of which width they are), the newest first. Ours only: a published file has
 * none. No more than NODEDB_LIST_MAX, the newest; *ret_truncated says that there are more. @fn
 * returns 0 or an error that ends it. */
typedef int nodedb_aggregate_fn(void *arg, const struct aggregate *a);
int nodedb_snapshot_aggregates(struct nodedb_snapshot *l, const struct scope *s,
	nodedb_aggregate_fn *fn, void *arg, bool *ret_truncated, struct errinfo *reterr);

/* nodedb_snapshot_collectives - rows of the scope by time; *ret is the caller's (free()). */
int nodedb_snapshot_collectives(struct nodedb_snapshot *l, const struct scope *s,
	struct collective_row **ret, size_t *ret_count, bool *ret_truncated,
	struct errinfo *reterr);

/* nodedb_snapshot_stack - the stack of @hash, the caller's (free()); NULL if it is not there or
 * damaged. */
int nodedb_snapshot_stack(
	struct nodedb_snapshot *l, uint64_t hash, struct stack **ret, struct errinfo *reterr);
