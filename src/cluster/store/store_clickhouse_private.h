/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse_private.h - the store on ClickHouse from inside; private to store/. */
#pragma once

#include <pthread.h>

#include "cluster/store/clickhouse_client.h"
#include "cluster/store/clickhouse_schema.h"
#include "cluster/store/store_clickhouse.h"

struct clickhouse_reached { /* the last row of a partition that a shard has */
	int day;
	uint64_t seq;
};

struct clickhouse_slot { /* of one table on one shard; the filling thread's */
	struct buf rows; /* that wait for the commit */
	size_t row_count;
	struct clickhouse_reached *reached;
	size_t reached_count, reached_room;
};

struct store_clickhouse {
	struct store store;
	struct clickhouse *client;
	struct clickhouse_names names;
	struct clickhouse_account writer, reader; /* reader.user NULL: none */
	char *texts[6];                           /* what these point to */
	uint64_t retention_ns, settle_ns;
	bool exact_quantile; /* the servers have one that is exact */
	bool plain_joins;    /* they must be told that a subquery needs no alias */
	bool no_delay;       /* they must be told not to gather inserts */
	bool slow_drops;     /* they must be told that a table is dropped when nobody uses it */
	bool synced;         /* all of them write through to their disks */

	/* the filling thread's */
	struct clickhouse_slot *slots; /* of shard s and table t: s * TABLE_COUNT + t */
	bool reached_known;
	uint64_t gate;     /* number of the gates that rows go through */
	bool gate_lost;    /* another process has closed them */
	uint64_t taken;    /* position of the last entry that was taken, to be committed */
	uint64_t settling; /* visible position that becomes durable, 0: none */
	uint64_t settling_since_ns;
	uint64_t waiting_rows[TABLE_COUNT];

	pthread_mutex_t lock; /* of what follows */
	struct store_stats stats;
	char **scopes; /* databases for strangers that have been made */
	size_t scope_count, scope_room;
};

#define CLICKHOUSE_TIMEOUT_NS (60 * NS_PER_S) /* of what is not a question */

size_t clickhouse_store_shards(const struct store_clickhouse *s);

/* One statement as the writer on one shard; *ret may be NULL. */
int clickhouse_store_run(struct store_clickhouse *s, size_t shard, const char *query,
	struct sql_table *ret, struct errinfo *reterr);

/* The same statement on all shards at once; @ret is NULL or has a table for each shard, which are the
 * caller's in any case. */
int clickhouse_store_run_all(struct store_clickhouse *s, const char *query, struct sql_table *ret,
	struct errinfo *reterr);

/* clickhouse_grow - what an earlier version made in @database and lacks columns: tables of rows, NAME and @rows
 * behind it ("_local"), get them; what reads them is dropped. Before what is missing is made. */
int clickhouse_grow(
	struct store_clickhouse *s, const char *database, const char *rows, struct errinfo *reterr);

/* store_clickhouse_fill.c */
int clickhouse_fill_take(
	struct store *s, uint64_t position, const void *batch, size_t len, struct errinfo *reterr);
int clickhouse_fill_commit(struct store *s, struct errinfo *reterr);
int clickhouse_fill_seal(struct store *s, struct errinfo *reterr);
/* clickhouse_fill_learn - what each shard has: before the first row, and after whatever failed. */
int clickhouse_fill_learn(struct store_clickhouse *s, struct errinfo *reterr);

/* store_clickhouse_ask.c */
int clickhouse_ask_select(struct store *s, const struct store_scope *scope, const char *question,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr);
int clickhouse_ask_sql(struct store *s, const struct store_scope *scope, const char *text,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr);

/* store_clickhouse_upkeep.c */
int clickhouse_upkeep_run(struct store *s, int64_t now_ns, struct errinfo *reterr);
/* clickhouse_upkeep_count - rows, bytes and parts, as the servers say. */
int clickhouse_upkeep_count(struct store_clickhouse *s, struct errinfo *reterr);
