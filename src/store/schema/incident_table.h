/* SPDX-License-Identifier: Apache-2.0 */
/* incident_table.h - the table `incidents`: made, described and written as model/incident.h says. */
#pragma once

#include "base/buf.h"
#include "model/incident.h"
#include "sql/sql.h"

#define INCIDENT_TABLE_TEXT (32 << 10) /* bytes of each of these texts, at most */

/* incident_table_create - CREATE TABLE, a column for each field that has one, in their order, and its index. */
void incident_table_create(struct buf *sql);

/* incident_table_note - what each column means, for schema_info. */
void incident_table_note(struct buf *text);

/* incident_table_insert - INSERT with a parameter for each column; what is stored of the incident already is
 * renewed. */
void incident_table_insert(struct buf *sql);

struct incident_origin { /* what an incident does not say of itself */
	const char *id;  /* with the node in front */
	const char *node;
	wall_time detected;
};

/* incident_table_put - runs what incident_table_insert() wrote. */
int incident_table_put(sql_stmt *stmt, const struct incident *i, const struct incident_origin *o,
	struct errinfo *reterr);

/* Each appends one JSON array to @out. */
void incident_json_causes(const struct incident *i, struct buf *out);
void incident_json_evidence(const struct incident *i, const char *node, struct buf *out);
void incident_json_timeline(const struct incident *i, struct buf *out);
void incident_json_fixes(const struct incident *i, struct buf *out);
