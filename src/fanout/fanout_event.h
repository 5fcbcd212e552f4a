/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_event.h - events of many nodes as the structs that everything else works with.
 *
 * Asked for by SQL (fanout_event_sql() with FANOUT_SQL, apart), because nodes of every version know
 * that. Columns are found by their names, so that recordings of any schema will do. */
#pragma once

#include "base/buf.h"
#include "model/event.h"
#include "sql/sql_table.h"

struct fanout_event_request {
	uint64_t since_ns; /* so long before a node's newest event; 0: no limit */
	const uint32_t *pids;
	size_t pid_count; /* 0: all */
};

/* fanout_event_sql - appends the statement. It gives the newest first: with a limit on rows the
 * oldest are those that are missing. */
void fanout_event_sql(struct buf *b, const struct fanout_event_request *w);

struct fanout_event {
	size_t node; /* in fanout_events.names */
	struct event event;
};

struct fanout_events { /* in order of their start, once sorted */
	struct fanout_event *items;
	size_t count;
	char **names; /* of nodes */
	size_t name_count;
	size_t skipped; /* rows that make no sense */
};
void fanout_events_done(struct fanout_events *l);

/* fanout_event_read - appends the rows of @t, one node's answer, to @l; rows that do not say of
 * which node they are belong to @name. -EPROTO if @t has not the columns of the statement; -ENOMEM.
 */
int fanout_event_read(const struct sql_table *t, const char *name, struct fanout_events *l);

/* fanout_event_sort - puts them in order. */
void fanout_event_sort(struct fanout_events *l);
