/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the cluster's memory behind one interface: filled from the journal, asked by SQL.
 *
 * Engines: DuckDB in this process (store_duck.h) and ClickHouse over HTTP (store_clickhouse.h). Both hold
 * the tables of space.h under their published names; node_metrics is derived from the points in events, a
 * row a minute, and may have several rows for a minute: readers sum up.
 *
 * Filling: one thread calls store_take() for each journal entry in order, then store_commit(). What was
 * committed is visible to questions; what store_durable() says survives whatever happens, so that the
 * journal may forget it. After a restart filling begins after store_durable(), and no row is there twice.
 *
 * Asking: any thread. Questions are written in the SQL that both engines share, with these in braces,
 * which the engine replaces:
 *   {events} {causal_chains} …   a table, with only the rows of the scope (clusters, times)
 *   {quantile:0.99:x}            of x
 *   {last:x:t}                   x of the row with the greatest t
 *   {div:a:b}                    integer division
 *   {text:x}                     x as text
 * The shared SQL: SELECT with JOIN … USING of two subqueries, GROUP BY, HAVING, ORDER BY, LIMIT, count,
 * sum, min, max, avg, count(DISTINCT), CASE. No WITH, no window functions, no JSON. Texts in it are
 * quoted with store_quote(). */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/store/batch.h"
#include "sql/sql_table.h"

struct store;

struct store_scope {
	const char *const *clusters; /* that may be seen; NULL: all */
	size_t cluster_count;        /* 0 with clusters not NULL: none at all */
	int64_t since_ns, until_ns;  /* by each table's time; 0: open */
};

/* Of whom a cluster is, where the store has a ceiling: shares are of all that an owner has. */
struct store_share {
	const char *cluster;
	uint32_t owner;   /* 1, 2, …; clusters that are not listed are of owner 0 */
	unsigned percent; /* of the ceiling; 0: an equal part of what is left */
};

struct store_limits {
	size_t rows_max, bytes_max; /* more is not read: truncated is set */
	uint64_t timeout_ns;
};
#define STORE_LIMITS                                                                               \
	((struct store_limits){                                                                    \
		.rows_max = 10000, .bytes_max = 8u << 20, .timeout_ns = 10 * NS_PER_S})

/* What was kept and cannot be read any more. */
struct store_missing {
	uint64_t rows, parts; /* of parts that are damaged; rows without those of node_metrics */
	uint64_t requests; /* journal entries that are damaged or gone: their rows are not known */
	int64_t since_ns, until_ns; /* in which they lie; 0: not known */
};

/* Entries of the journal that were acknowledged and can be read no more. */
struct store_loss {
	uint64_t first, last;       /* positions */
	int64_t since_ns, until_ns; /* between which they came in; 0: not known */
};

struct store_stats {
	uint64_t visible, durable; /* journal positions */
	uint64_t rows[TABLE_COUNT];
	uint64_t bytes;        /* on disk */
	uint64_t parts;        /* files, or parts of tables */
	int64_t oldest_ns;     /* 0: nothing is stored */
	uint64_t dropped_rows; /* by retention */
	struct store_missing missing;
	uint64_t checked_bytes; /* of parts, by their sums, since the start */
	int64_t ahead_ns;       /* retention waits: the clock is ahead by so much; 0: it does not */
	int fault;              /* of the last write; 0: it went well */
	char fault_text[256];
};

struct store_ops {
	const char *name; /* "duckdb" */
	void (*free)(struct store *s);
	int (*take)(struct store *s, uint64_t position, const void *batch, size_t len,
		struct errinfo *reterr);
	int (*commit)(struct store *s, struct errinfo *reterr);
	uint64_t (*durable)(struct store *s);
	int (*select)(struct store *s, const struct store_scope *scope, const char *question,
		const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr);
	int (*sql)(struct store *s, const struct store_scope *scope, const char *text,
		const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr);
	int (*share)(struct store *s, const struct store_share *list, size_t count); /* or NULL */
	/* seal: all that is visible becomes durable. */
	int (*seal)(struct store *s, struct errinfo *reterr);
	/* hurry: a seal under way ends soon, and unfinished; or NULL. has: whether sealed rows of the cluster are
	 * there; or NULL, if clusters have no files of their own. */
	void (*hurry)(struct store *s);
	bool (*has)(struct store *s, const char *cluster, size_t len);
	/* upkeep: retention, merging of small parts; a step at a time. 1: there is more to do. */
	int (*upkeep)(struct store *s, int64_t now_ns, struct errinfo *reterr);
	void (*stats)(struct store *s, struct store_stats *ret);
	/* NULL: the engine's own affair. */
	void (*missing)(
		struct store *s, const struct store_scope *scope, struct store_missing *ret);
	int (*lose)(struct store *s, const struct store_loss *l, struct errinfo *reterr);
};

struct store { /* first member of an engine's own struct */
	const struct store_ops *ops;
};

static inline void store_free(struct store *s)
{
	s->ops->free(s);
}
DEFINE_CLEANUP(struct store *, store_free)

/* store_take - the rows of a journal entry; what is not a batch is -EBADMSG and changes nothing. One
 * thread; visible after store_commit(). A failure other than -EBADMSG is the engine's state: nothing since
 * the last commit is kept, and the caller begins again after store_stats()'s visible. */
static inline int store_take(
	struct store *s, uint64_t position, const void *batch, size_t len, struct errinfo *reterr)
{
	return s->ops->take(s, position, batch, len, reterr);
}

static inline int store_commit(struct store *s, struct errinfo *reterr)
{
	return s->ops->commit(s, reterr);
}

/* store_durable - the last position that needs no journal any more. */
static inline uint64_t store_durable(struct store *s)
{
	return s->ops->durable(s);
}

/* store_share - who loses rows first at the ceiling: who has more than its share. An engine without one takes no
 * notice. */
static inline int store_share(struct store *s, const struct store_share *list, size_t count)
{
	return s->ops->share ? s->ops->share(s, list, count) : 0;
}

static inline bool store_has(struct store *s, const char *cluster, size_t len)
{
	return s->ops->has && s->ops->has(s, cluster, len);
}

/* store_select - a question of our own. -ETIMEDOUT, -ENOMEM, -EIO. */
static inline int store_select(struct store *s, const struct store_scope *scope,
	const char *question, const struct store_limits *limits, struct sql_table *ret,
	struct errinfo *reterr)
{
	return s->ops->select(s, scope, question, limits, ret, reterr);
}

/* store_sql - one statement that a stranger wrote, in the engine's own SQL, where it can reach only the
 * scope's rows. -EINVAL it is wrong, not alone or not a query; -EPERM it asks for what it may not;
 * -ETIMEDOUT; -ENOMEM; -E2BIG; -EBUSY too many run already. */
static inline int store_sql(struct store *s, const struct store_scope *scope, const char *text,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	return s->ops->sql(s, scope, text, limits, ret, reterr);
}

/* store_missing - what a question about @scope lacks. */
static inline void store_missing(
	struct store *s, const struct store_scope *scope, struct store_missing *ret)
{
	*ret = (struct store_missing){0};
	if (s->ops->missing)
		s->ops->missing(s, scope, ret);
}

/* store_lose - notes, on disk, what the journal has lost; told again, it counts once. */
static inline int store_lose(struct store *s, const struct store_loss *l, struct errinfo *reterr)
{
	return s->ops->lose ? s->ops->lose(s, l, reterr) : 0;
}

/* store_quote - @text as a literal that both engines read as it is, but for what is not UTF-8 and
 * backslashes, which one of them reads otherwise: these are U+FFFD. */
void store_quote(struct buf *b, const char *text);

/* ---- for engines ---- */

/* What differs between engines' SQL. */
struct store_dialect {
	void (*table)(
		void *arg, struct buf *b, enum store_table t, const struct store_scope *scope);
	/* @1 and @2 stand for the arguments */
	const char *quantile; /* of p and x: "quantile_cont(@2, @1)" */
	const char *last;     /* of x and t */
	const char *div;      /* of a and b */
	const char *text;     /* of x */
};

/* store_expand - @question with what stands in braces replaced. -EINVAL: a brace that is none of ours. */
int store_expand(const struct store_dialect *d, void *arg, const char *question,
	const struct store_scope *scope, struct buf *ret, struct errinfo *reterr);
