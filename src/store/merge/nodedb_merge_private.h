/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_private.h - one merge under way; shared by the files nodedb_merge_*.c. */
#pragma once

#include "store/merge/nodedb_merge.h"
#include "store/read/nodedb_reader.h"

struct merge_node {
	char name[MERGE_NODE_LEN];
	size_t len;
	int64_t number;   /* from 1 */
	int64_t align_ns; /* added to its times in the output */
	int64_t undo_ns;  /* added to its times in the source at hand, to have its own clock's */
};

struct merge_session { /* a session's id in the source at hand, and in the output */
	int64_t from, to;
};

struct merge_source {
	struct reader reader;
	struct nodedb_content content; /* what loaders count in */
	struct pid_names names;
	struct merge_node *only; /* whose the rows are that do not say; NULL: several nodes */
	bool is_merged, is_copy; /* copy: of a recording that is in the output already */
	struct merge_session *sessions; /* by from */
	size_t session_count, session_room;
	struct merge_report report;
};

struct merge_sync { /* a process waited for its GPU; by the node's own clock */
	int64_t node;
	uint32_t pid;
	int64_t start_ns, end_ns;
};

struct merge {
	const struct merge_options *options;
	sql_db *out;
	struct merge_node *nodes[MERGE_NODES_MAX];
	size_t node_count;
	struct merge_node *last_node; /* that a row had: mostly the next one's too */
	struct merge_source source;   /* the one at hand */
	size_t source_index;
	int64_t orphans; /* sessions without a row, numbered downwards */
	uint64_t odd_ids;
	struct merge_sync *syncs; /* of all sources */
	size_t sync_count, sync_room;
	struct merge_result result;
};

/* ---- values (nodedb_merge_row.c) ---- */

/* merge_columns - those of @t that are copied: whose row first, then the others in their order. */
size_t merge_columns(const struct table *t, struct column ret[TABLE_COLUMNS_MAX]);

/* merge_select - compiles the SELECT of @columns of the source's @table; *ret_stmt is NULL if it
 * has no such table. */
int merge_select(struct merge *m, const char *table, const struct column *columns, size_t count,
	sql_stmt **ret_stmt, struct errinfo *reterr);

/* merge_row - the row that @stmt stands on; values stay valid until its next step. *ret_node is
 * whose it is. 1; 0 if it makes no sense (counted); negative if there are too many nodes. */
int merge_row(struct merge *m, const struct column *columns, size_t count, sql_stmt *stmt,
	struct sql_value *values, struct merge_node **ret_node, struct errinfo *reterr);

/* merge_insert - compiles INSERT OR IGNORE of @columns into the output's @table. @extra names
 * further columns (", row"), @extras how many. */
int merge_insert(struct merge *m, const char *table, const struct column *columns, size_t count,
	const char *extra, int extras, sql_stmt **ret_stmt, struct errinfo *reterr);

/* ---- sources and nodes (nodedb_merge_source.c) ---- */

/* merge_node - the node called @name; made if it is new. */
int merge_node(struct merge *m, const char *name, size_t len, struct merge_node **ret,
	struct errinfo *reterr);

/* merge_source_open - m->source is the file @index, with its nodes known; done with
 * merge_source_close(). */
int merge_source_open(struct merge *m, size_t index, sql_db **ret_sql, struct sql_stamp *ret_stamp,
	struct errinfo *reterr);
void merge_source_close(struct merge *m);

/* merge_sessions - copies the sessions; later rows that name one get its new id. */
int merge_sessions(struct merge *m, struct errinfo *reterr);
int merge_session_id(struct merge *m, int64_t from, int64_t *ret);

/* ---- tables ---- */

int merge_events(struct merge *m, struct errinfo *reterr);
int merge_stacks(struct merge *m, struct errinfo *reterr);
int merge_chains(struct merge *m, struct errinfo *reterr);
int merge_incidents(struct merge *m, struct errinfo *reterr);
int merge_aggregates(struct merge *m, struct errinfo *reterr);
int merge_collectives(struct merge *m, struct errinfo *reterr);
int merge_other_tables(struct merge *m, struct errinfo *reterr);

/* merge_syncs - keeps in mind when processes waited for their GPUs. */
int merge_syncs(struct merge *m, struct errinfo *reterr);
/* merge_clocks - finds the offsets by these and the collectives in the output, and with wish->align applies
 * them to the latter and to what is copied from now on. */
int merge_clocks(struct merge *m, struct errinfo *reterr);
