/* SPDX-License-Identifier: Apache-2.0 */
/* tool_private.h - what the tools share: arguments, what may be seen, asking, rows as JSON. */
#pragma once

#include "base/clock.h"
#include "cluster/answer/tool.h"

#define TOOL_MINUTE_NS  (60 * (int64_t)NS_PER_S)
#define TOOL_HOUR_NS    (60 * TOOL_MINUTE_NS)
#define TOOL_SENTENCE   (64u << 10) /* ceiling of a tool's text */
#define TOOL_QUESTION   (64u << 10)
#define TOOL_LIMIT      100
#define TOOL_NODE_BYTES 128
#define TOOL_TEXT_BYTES 1024

typedef int tool_fn(
	const struct tool_call *c, json_t **ret, struct buf *ret_text, struct errinfo *reterr);

tool_fn tool_summary, tool_stragglers, tool_outliers, tool_history, tool_analysis, tool_cost,
	tool_anomalies, tool_nccl, tool_memcpy, tool_memfrag, tool_launches, tool_blame, tool_steps;

/* ---- arguments: their types have been checked ---- */

json_int_t tool_arg_int(const struct tool_call *c, const char *key, json_int_t otherwise);
double tool_arg_real(const struct tool_call *c, const char *key, double otherwise);
const char *tool_arg_text(const struct tool_call *c, const char *key); /* NULL: not there */

struct tool_scope { /* what a call asks about, and what of it its token may see */
	struct store_scope store;
	const char *cluster; /* that store.clusters then points to */
};

/* tool_scope_init - of cluster_id, since and until; @since_ns ago if that is not said, 0: all.
 * -EACCES: the cluster is not the tenant's. -EINVAL. */
int tool_scope_init(
	struct tool_scope *s, const struct tool_call *c, int64_t since_ns, struct errinfo *reterr);

/* tool_scope_minutes - the same from the begin of a minute on: of node_metrics. */
struct store_scope tool_scope_minutes(const struct tool_scope *s);

/* tool_scope_json - {since, until, cluster_id}: what was looked at. */
json_t *tool_scope_json(const struct tool_scope *s, const struct tool_call *c);

/* ---- asking ---- */

/* tool_ask - the rows of @question, which is freed; done with sql_table_done() also after a failure. */
int tool_ask(const struct tool_call *c, const struct store_scope *scope, struct buf *question,
	struct sql_table *ret, struct errinfo *reterr);
int tool_ask_limited(const struct tool_call *c, const struct store_scope *scope,
	struct buf *question, const struct store_limits *limits, struct sql_table *ret,
	struct errinfo *reterr);

/* tool_limit_time - what is left of @limits since the call came; -ETIMEDOUT: nothing is. */
int tool_limit_time(const struct tool_call *c, struct store_limits *limits, struct errinfo *reterr);
/* tool_note_missing - what a question about @scope lacks is what the answer lacks. */
void tool_note_missing(const struct tool_call *c, const struct store_scope *scope);
json_t *tool_missing_json(const struct store_missing *m);
/* tool_put_missing - "missing" in an answer that lacks something, and a sentence. */
void tool_put_missing(json_t *answer, const struct store_missing *m, struct buf *text);

/* tool_where - " AND column = 'value'" of each argument of that name that is given. */
void tool_where(struct buf *question, const struct tool_call *c, const char *const *columns);
/* tool_equals - "column = 'value'". */
void tool_equals(struct buf *question, const char *column, const char *value);

/* ---- rows ---- */

bool tool_is_null(const struct sql_table *t, size_t row, int column);
int64_t tool_int(const struct sql_table *t, size_t row, int column);      /* NULL: 0 */
double tool_real(const struct sql_table *t, size_t row, int column);      /* NULL: 0 */
const char *tool_text(const struct sql_table *t, size_t row, int column); /* NULL: "" */
bool tool_same(const struct sql_table *t, size_t row, int column, const char *text);

/* tool_cell - as JSON; texts that are not UTF-8 are made so. */
json_t *tool_cell(const struct sql_table *t, size_t row, int column);
/* tool_row - an object: @keys by column, what is NULL is left out. */
json_t *tool_row(const struct sql_table *t, size_t row, const char *const *keys);
json_t *tool_rows(const struct sql_table *t, const char *const *keys);

/* tool_time - @ns as RFC 3339; null for 0. */
json_t *tool_time(int64_t ns);
/* tool_json_text - any text as a JSON string. */
json_t *tool_json_text(const char *text);

/* tool_say - a name in a sentence: what it could do to a reader is escaped. */
void tool_say(struct buf *b, const char *name);

/* tool_say_text - likewise a sentence that was stored. */
void tool_say_text(struct buf *b, const char *text);

/* tool_done - *ret is @answer; -ENOMEM if a part of it could not be made. */
int tool_done(json_t *answer, json_t **ret);
