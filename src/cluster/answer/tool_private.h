/* SPDX-License-Identifier: Apache-2.0 */
/* tool_private.h - what the tools share: arguments, asking, rows as JSON, and parts of several answers: scores of
 * nodes, incidents, counters. */
#pragma once

#include "base/clock.h"
#include "cluster/answer/tool.h"
#include "cluster/detect/calls.h"

#define TOOL_MINUTE_NS  (60 * (int64_t)NS_PER_S)
#define TOOL_HOUR_NS    (60 * TOOL_MINUTE_NS)
#define TOOL_SENTENCE   (64u << 10) /* ceiling of a tool's text */
#define TOOL_QUESTION   (64u << 10)
#define TOOL_LIMIT      100
#define TOOL_NODE_BYTES 128
#define TOOL_TEXT_BYTES 1024

typedef int tool_fn(struct tool_call *c);
tool_fn tool_summary, tool_stragglers, tool_outliers, tool_history, tool_analysis, tool_cost,
	tool_anomalies, tool_nccl, tool_memcpy, tool_memfrag, tool_launches, tool_blame, tool_steps;

/* ---- arguments: their types have been checked ---- */

double tool_arg_real(const struct tool_call *c, const char *key, double otherwise);
const char *tool_arg_text(const struct tool_call *c, const char *key); /* NULL: not there */

/* tool_limit - the argument "limit". */
size_t tool_limit(const struct tool_call *c, size_t otherwise);

/* ---- asking ---- */

struct tool_question {
	const char *select; /* up to its conditions */
	const char *metric; /* " metric_name = 'metric'", behind a WHERE; NULL: nothing */
	const char *given;  /* "node_id kind": columns that equal an argument where it is given */
	const char *then;   /* GROUP BY and so on; NULL: nothing */
	size_t limit;       /* of rows; 0: none */
	bool from_minute;   /* from the begin of a minute on: of node_metrics */
	const struct store_scope *scope;   /* NULL: the call's */
	const struct store_limits *limits; /* NULL: STORE_LIMITS */
};

/* tool_ask - the rows of @q; done with sql_table_done() also after a failure. */
int tool_ask(const struct tool_call *c, const struct tool_question *q, struct sql_table *ret);

/* tool_limit_time - what is left of @limits since the call came; -ETIMEDOUT: nothing is. */
int tool_limit_time(const struct tool_call *c, struct store_limits *limits);
/* tool_note_missing - what a question about @scope lacks is what the answer lacks. */
void tool_note_missing(const struct tool_call *c, const struct store_scope *scope);
json_t *tool_missing_json(const struct store_missing *m);
/* tool_put_missing - "missing" in an answer that lacks something, and a sentence. */
void tool_put_missing(json_t *answer, const struct store_missing *m, struct buf *text);

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

/* tool_put - members of the answer, as of json_pack(). -ENOMEM. */
int tool_put(struct tool_call *c, const char *fmt, ...);

/* As src/push sends them. */
#define TOOL_SCORE     "ingero.node.health_score"
#define TOOL_IS_SCORE  "metric_name LIKE '%.health_score'" /* that of `stress` too */
#define TOOL_STRAGGLER "ingero.node.straggler_event"

#define TOOL_LOW_SCORE 0.4 /* below it a node is a straggler, unless a caller says otherwise */

/* ---- scores: a row a node ---- */

enum score_column { SCORE_CLUSTER, SCORE_NODE, SCORE_LAST, SCORE_MIN, SCORE_POINTS, SCORE_TS };
int score_ask(const struct tool_call *c, struct sql_table *ret);

/* ---- incidents: a row an incident, as it was told last; newest first ---- */

enum incident_column {
	INCIDENT_CLUSTER,
	INCIDENT_NODE,
	INCIDENT_ID,
	INCIDENT_KIND,
	INCIDENT_SOURCE,
	INCIDENT_RANK,
	INCIDENT_SUMMARY,
	INCIDENT_CAUSE,
	INCIDENT_FIX,
	INCIDENT_CONFIDENCE,
	INCIDENT_LOST,
	INCIDENT_COST,
	INCIDENT_RESOLVED,
	INCIDENT_BEGIN,
	INCIDENT_TS,
	INCIDENT_FIELD, /* the first of those that model/episode_field.h lists */
};
int incident_ask(const struct tool_call *c, size_t limit, struct sql_table *ret);
json_t *incident_json(const struct sql_table *t, size_t row);
/* incident_is_own - a node tells why it is slow itself: that makes it no straggler, and its time is
 * that of one step. What the job lost is told by the cluster. */
bool incident_is_own(const struct sql_table *t, size_t row);

/* ---- counters ---- */

/* What counters named @metrics (NULL-terminated) grew by in the time, a row for each metric, node and set of
 * attributes. Counters only grow: the greatest less the least; of deltas the sum. A counter with one
 * point in the time has not grown as far as is known. */
enum growth_column {
	GROWTH_CLUSTER,
	GROWTH_NODE,
	GROWTH_NAME,
	GROWTH_ATTRIBUTES,
	GROWTH_VALUE, /* of value_double; of a histogram its sum */
	GROWTH_COUNT, /* of value_int: of a histogram its count */
	GROWTH_FIRST,
	GROWTH_LAST, /* times */
	GROWTH_POINTS,
	GROWTH_GREATEST, /* value_double: what a gauge was at most */
};
int growth_ask(const struct tool_call *c, const char *const *metrics, struct sql_table *ret);

/* growth_seconds - between the first and the last point. */
double growth_seconds(const struct sql_table *t, size_t row);

/* growth_attribute - the text of @key in the row's attributes; "" if it has none. */
void growth_attribute(
	const struct sql_table *t, size_t row, const char *key, char *out, size_t size);

/* ---- objects by name ---- */

/* member_object - the object @key of @o, made if it is not there; NULL without memory. */
json_t *member_object(json_t *o, const char *key);
/* member_node - likewise by cluster and node, which it then says itself. */
json_t *member_node(json_t *nodes, const char *cluster, const char *node);
/* member_add - adds to a number that is there, or is 0. */
void member_add(json_t *o, const char *key, double v);
void member_add_int(json_t *o, const char *key, json_int_t v);
double member_real(const json_t *o, const char *key);

/* member_values - the values of @o as an array, greatest @key first, @limit of them. */
json_t *member_values(json_t *o, const char *key, size_t limit);

/* Who makes a job wait, from its stored collectives: for find_stragglers and blame. They are brought
 * together as the cluster does when they come in: matched by communicator and sequence, with the nodes' clocks
 * compared. */

#define LATE_CALLS_MAX    100000 /* the newest; 40 MiB of rows, a tenth of a second */
#define LATE_CLUSTERS_MAX 8      /* in one answer: the busiest */

struct late { /* of one cluster; done with late_done() */
	const char *cluster;
	struct calls *calls;
	size_t rows;      /* calls that were read */
	int64_t since_ns; /* from when on: later than asked for if there were too many */
	bool is_cut;
	struct blame blame;
	struct blame_worker *workers;
	size_t worker_count;
};

/* late_clusters - names of the clusters that have collectives, a row each with their number, busiest first. */
int late_clusters(const struct tool_call *c, struct sql_table *ret);

/* late_load - at most @max calls of @cluster. As of store_select(). */
int late_load(struct late *l, const struct tool_call *c, const char *cluster, size_t max);
void late_done(struct late *l);

/* late_suspect - of worker @w; NULL: nobody blames it. */
const struct blame_suspect *late_suspect(const struct late *l, const struct worker_view *w);
/* late_is_cleared - it was often last, but only because it waited for others. */
bool late_is_cleared(const struct late *l, const struct worker_view *w);
/* late_is_often_last - by itself no blame: last by a millisecond and more, in a tenth of its calls. */
bool late_is_often_last(const struct worker_view *w);

/* late_json - the figures of one rank. */
json_t *late_json(const struct late *l, const struct worker_view *w);
