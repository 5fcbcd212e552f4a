/* SPDX-License-Identifier: Apache-2.0 */
/* store_clickhouse_private.h - the store on ClickHouse from inside; private to store/. */
#pragma once

#include <pthread.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "cluster/store/retention_clock.h"
#include "cluster/store/store.h"
#include "cluster/store/store_clickhouse.h"

/* The tables on ClickHouse servers, as SQL and as bytes; private to store/.
 *
 * On each shard, in the store's database:
 *   NAME_local    the rows of this shard, ordered by cluster, node and time; two more columns,
 *                 journal_day (the partition) and journal_seq (which row of which journal entry)
 *   NAME          all rows: over all shards, or of the only one
 *   journal_local the journal position that has been written for good
 *   NAME_gate_G   where rows of NAME_local come in, by way of NAME_pass_G; G is a number of the process
 *                 that fills. Without it an insert fails, however late it is
 * and for a stranger's SQL, which may see a set of clusters only, a database with the same NAMEs that
 * holds these clusters' rows.
 *
 * node_metrics is computed from events when it is asked. */

#define CLICKHOUSE_DAY_NS   (86400 * (int64_t)NS_PER_S)
#define CLICKHOUSE_DAY_MAX  65535 /* the year 2149; what is later lies in this partition */
#define CLICKHOUSE_SEQ_BITS 24    /* of a row's number in its entry; the position is above */

struct clickhouse_names {
	const char *database,
		*cluster; /* as in store_clickhouse_settings; the cluster may be NULL */
};

const char *clickhouse_type(enum column_type type); /* "Int64" */

/* clickhouse_schema_next - statement number @i that makes what is missing on a shard, into @b: false
 * when there are no more. @synced: the server writes through to its disk if it is asked to. */
bool clickhouse_schema_next(struct buf *b, const struct clickhouse_names *n, bool synced, size_t i);

/* clickhouse_scope_next - likewise, of the database @name with the rows of the scope's clusters. */
bool clickhouse_scope_next(struct buf *b, const struct clickhouse_names *n, const char *name,
	const struct store_scope *scope, size_t i);

/* clickhouse_put_table - the rows of the scope as a subquery, for store_dialect's table. */
void clickhouse_put_table(struct buf *b, const struct clickhouse_names *n, enum store_table t,
	const struct store_scope *scope);

/* clickhouse_gate_next - statement number @i that makes the gates of number @gate. */
bool clickhouse_gate_next(struct buf *b, const struct clickhouse_names *n, uint64_t gate, size_t i);

/* clickhouse_put_insert - the statement before rows of @t as clickhouse_put_row() writes them. */
void clickhouse_put_insert(
	struct buf *b, const struct clickhouse_names *n, enum store_table t, uint64_t gate);
void clickhouse_put_row(struct buf *b, const struct batch_row *row, uint64_t seq);

int clickhouse_day(const struct batch_row *row); /* its partition */

static inline uint64_t clickhouse_seq(uint64_t position, size_t row)
{
	return position << CLICKHOUSE_SEQ_BITS | row;
}

/* Asks ClickHouse servers over HTTP and waits for their answers; private to store/.
 *
 * From any thread: each ask takes a loop of its own that is kept for the next. A connection is made for
 * each ask, since the servers close idle ones and a statement that was sent into a closing connection may
 * have run or not. A password is not sent without TLS to another machine. */

#define CLICKHOUSE_BODY_MAX (48u << 20) /* bytes of one insert */

struct clickhouse; /* the servers */

struct clickhouse_account {
	const char *user, *password; /* the password may be NULL */
};

/* clickhouse_new - @shards are URLs. -EINVAL with a sentence: one of them is none. */
int clickhouse_new(
	const char *const *shards, size_t count, struct clickhouse **ret, struct errinfo *reterr);
DECLARE_FREE(struct clickhouse, clickhouse_free) /* when no ask is under way */

size_t clickhouse_shard_count(const struct clickhouse *c);

struct clickhouse_ask {
	size_t shard;
	const struct clickhouse_account *account;
	const char *query;
	const char *settings; /* "&name=value…", escaped; NULL: none */
	const void *rows;     /* of an INSERT; NULL: none */
	size_t rows_len;
	uint64_t timeout_ns;
	size_t answer_max;
	/* results */
	int err; /* 0; what http_done() says; or by ClickHouse's own error, see clickhouse_client.c */
	struct errinfo e;
	struct buf answer; /* whole, or err is set */
};

/* clickhouse_ask_all - all at once; returns when each has its result: 0, or the err of the first that
 * failed, with its sentence. The answers are the caller's in any case. */
int clickhouse_ask_all(
	struct clickhouse *c, struct clickhouse_ask *asks, size_t count, struct errinfo *reterr);
void clickhouse_ask_done(struct clickhouse_ask *a);

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
	struct retention_clock clock; /* the filling thread's */
	bool exact_quantile;          /* the servers have one that is exact */
	bool plain_joins;             /* they must be told that a subquery needs no alias */
	bool no_delay;                /* they must be told not to gather inserts */
	bool slow_drops; /* they must be told that a table is dropped when nobody uses it */
	bool synced;     /* all of them write through to their disks */

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

/* A stranger's statement before it is sent to ClickHouse, and as whom; private to
 * store/.
 *
 * What holds a stranger is the server: a user who may only read, and only in a database that has the rows
 * of his clusters. The look at the text is a second wall, which lets through only what is known, and gives better
 * sentences. */

#define CLICKHOUSE_TEXT_MAX (64u << 10) /* bytes of a statement */
#define CLICKHOUSE_NAME_MAX 200         /* of a database or user: it becomes the name of a file */

/* clickhouse_guard_check - -EINVAL: not one query; -EPERM: it names what is not for strangers; -E2BIG. */
int clickhouse_guard_check(const char *text, struct errinfo *reterr);

/* clickhouse_guard_name - @base with the scope's clusters behind it, the same for the same clusters and
 * never for others: "ingero" and {"b", "a-1"} are "ingero__a_2d1__b". A scope of all clusters is @base.
 * -EPERM: it has none; -E2BIG: too many. */
int clickhouse_guard_name(
	const char *base, const struct store_scope *scope, struct buf *ret, struct errinfo *reterr);

/* ClickHouse's TabSeparatedWithNamesAndTypes as a table; private to store/. */

/* clickhouse_tsv_read - integers, reals and texts by the columns' types; what is neither a number nor a
 * text is text as it stands. NaN and infinities are NULL. Rows beyond @limits are left out: truncated is
 * set. -EBADMSG: it is not that format. *ret is the caller's (sql_table_done()). */
int clickhouse_tsv_read(const char *text, size_t len, const struct store_limits *limits,
	struct sql_table *ret, struct errinfo *reterr);
