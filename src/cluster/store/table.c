/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see table.h. */
#include "cluster/store/table.h"

#include "base/macros.h"

#define COLUMN(NAME, name, type, help) {name, COLUMN_##type, help},
static const struct table_column events[] = {EVENTS_COLUMNS(COLUMN)};
/* The forms of an incident's fields. */
#define COLUMN_U32      COLUMN_INT
#define COLUMN_U64      COLUMN_INT
#define COLUMN_I32      COLUMN_INT
#define COLUMN_SHARE    COLUMN_REAL
#define COLUMN_SEVERITY COLUMN_TEXT
#define COLUMN_PROBLEM  COLUMN_TEXT
#define ADDED(NAME, form, member, column, key, renew, show, absent, unit, meaning)                 \
	{column, COLUMN_##form, meaning},
static const struct table_column chains[] = {CHAINS_COLUMNS(COLUMN) INCIDENT_ADDED(ADDED)};
static const struct table_column metrics[] = {METRICS_COLUMNS(COLUMN)};
static const struct table_column collectives[] = {COLLECTIVES_COLUMNS(COLUMN)};
#define EPISODE_U32                                    INT
#define EPISODE_U64                                    INT
#define EPISODE_TIME                                   TIME
#define EPISODE_REAL                                   REAL
#define EPISODE_TEXT                                   TEXT
#define EPISODE_OP                                     TEXT
#define EPISODE_COMM                                   TEXT
#define EPISODE_COLUMN(NAME, form, member, name, help) COLUMN_OF(NAME, name, EPISODE_##form, help)
#define COLUMN_OF(NAME, name, type, help)              COLUMN(NAME, name, type, help)
static const struct table_column incidents[] = {
	INCIDENTS_COLUMNS(COLUMN) EPISODE_FIELDS(EPISODE_COLUMN)};
static const struct table_column steps[] = {STEPS_COLUMNS(COLUMN)};

#define TABLE(name, columns, PREFIX)                                                               \
	{                                                                                          \
		name, columns, ARRAY_SIZE(columns), PREFIX##_TS, PREFIX##_CLUSTER, PREFIX##_NODE   \
	}

STATIC_ASSERT(ARRAY_SIZE(incidents) <= TABLE_COLUMNS_MAX);
STATIC_ASSERT(ARRAY_SIZE(chains) <= TABLE_COLUMNS_MAX && ARRAY_SIZE(events) <= TABLE_COLUMNS_MAX);

const struct table_desc store_tables[TABLE_COUNT] = {
	[TABLE_EVENTS] = TABLE("events", events, EVENTS),
	[TABLE_CHAINS] = TABLE("causal_chains", chains, CHAINS),
	[TABLE_METRICS] = TABLE("node_metrics", metrics, METRICS),
	[TABLE_COLLECTIVES] = TABLE("collectives", collectives, COLLECTIVES),
	[TABLE_INCIDENTS] = TABLE("incidents", incidents, INCIDENTS),
	[TABLE_STEPS] = TABLE("steps", steps, STEPS),
};
