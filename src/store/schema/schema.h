/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the tables of the node's store: making them, and telling whose a file is. */
#pragma once

#include "sql/sql.h"

#define NODEDB_SCHEMA 11 /* PRAGMA user_version of files we write */
#define NODEDB_APPLICATION                                                                         \
	0x494e4752 /* PRAGMA application_id, "INGR": by which file(1) and others tell our files */
#define NODEDB_SCHEMA_TEXT "0.11"

enum schema_kind {
	SCHEMA_EMPTY,     /* no tables at all */
	SCHEMA_OURS,      /* 0.11 */
	SCHEMA_PUBLISHED, /* 0.8 to 0.10, made by the published agent */
};

/* schema_create - make all tables and fill those that describe the rest; call inside a batch. */
int schema_create(sql_db *db, struct errinfo *reterr);

/* schema_complete - add the tables, columns, indexes and descriptions that an early file of our
 * schema lacks, found by comparing it with schema_create()'s: while the schema only grows, its
 * number stays. A new column therefore may be NULL or has a default. Call inside a batch. */
int schema_complete(sql_db *db, struct errinfo *reterr);

/* schema_identify - whose tables these are; @path is for the sentence. ret_version ("0.11") may be
 * NULL. Returns 0; -EBADMSG for a newer schema, one before 0.8, or tables that are not ingero's. */
int schema_identify(sql_db *db, const char *path, enum schema_kind *ret_kind, char ret_version[16],
	struct errinfo *reterr);

/* schema_has_table - a real table (no view, no virtual table) called @name: 1, 0 or an error. */
int schema_has_table(sql_db *db, const char *name, struct errinfo *reterr);

/* schema_create_merged - the tables of a file that holds several nodes, without the indexes of
 * `events`, which schema_finish_merged() makes when its rows are in. Call inside a batch. */
#define MERGED_SEQ_BITS 44
int schema_create_merged(sql_db *db, struct errinfo *reterr);
int schema_finish_merged(sql_db *db, struct errinfo *reterr);

/* schema_is_merged - whether `ingero merge` made the file: 1, 0 or an error. */
int schema_is_merged(sql_db *db, struct errinfo *reterr);
