/* SPDX-License-Identifier: Apache-2.0 */
/* sql_allow.h - what a guarded statement may touch; private to sql/. */
#pragma once

#include "base/buf.h"
#include "sql/sql.h"

struct sql_allow;

/* sql_allow_new - lists the real tables of @db: no views, no virtual tables. */
int sql_allow_new(sql_db *db, struct sql_allow **ret, struct errinfo *reterr);
void sql_allow_free(struct sql_allow *a);
DEFINE_CLEANUP(struct sql_allow *, sql_allow_free)

/* sql_allow_table - may @name be read? @bare: SQLite asks about a table of which no column is used,
 * and then about names that a WITH clause made up, too. */
bool sql_allow_table(const struct sql_allow *a, const char *name, bool bare, const char *database);
bool sql_allow_function(const char *name);
bool sql_allow_pragma(const struct sql_allow *a, const char *name, const char *argument);

/* sql_allow_hint - for SQLite's message @said about @text: the columns of the tables that @text
 * names, or the tables; nothing if it is about something else. */
void sql_allow_hint(const struct sql_allow *a, sql_db *db, const char *said, const char *text,
	struct buf *hint);
