/* SPDX-License-Identifier: Apache-2.0 */
/* tool_parts.h - parts of several tools' answers: scores of nodes, incidents, counters. */
#pragma once

#include "cluster/answer/tool_private.h"

/* As src/push sends them. */
#define TOOL_SCORE     "ingero.node.health_score"
#define TOOL_IS_SCORE  "metric_name LIKE '%.health_score'" /* that of `stress` too */
#define TOOL_STRAGGLER "ingero.node.straggler_event"

#define TOOL_LOW_SCORE 0.4 /* below it a node is a straggler, unless a caller says otherwise */

/* ---- scores: a row a node ---- */

enum score_column { SCORE_CLUSTER, SCORE_NODE, SCORE_LAST, SCORE_MIN, SCORE_POINTS, SCORE_TS };
int score_ask(const struct tool_call *c, const struct tool_scope *s, struct sql_table *ret,
	struct errinfo *reterr);

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
int incident_ask(const struct tool_call *c, const struct tool_scope *s, size_t limit,
	struct sql_table *ret, struct errinfo *reterr);
json_t *incident_json(const struct sql_table *t, size_t row);
/* incident_is_own - a node tells why it is slow itself: that makes it no straggler, and its time is
 * that of one step. What the job lost is told by the cluster. */
bool incident_is_own(const struct sql_table *t, size_t row);

/* ---- counters ---- */

/* What counters named @metrics (NULL-terminated) grew by in @s, a row for each metric, node and set of
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
int growth_ask(const struct tool_call *c, const struct tool_scope *s, const char *const *metrics,
	struct sql_table *ret, struct errinfo *reterr);

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
