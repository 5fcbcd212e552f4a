/* SPDX-License-Identifier: Apache-2.0 */
/* sql_output.h - the rows of a statement as a table for people, lines of JSON or CSV. */
#pragma once

#include "base/buf.h"
#include "sql/sql_table.h"

enum sql_output { SQL_OUTPUT_TABLE, SQL_OUTPUT_JSON, SQL_OUTPUT_CSV };

#define SQL_OUTPUT_CELL 100 /* columns of a table's cell; longer texts are cut, and end in … */

/* sql_output_write - appends @t. Whatever it holds, a table cannot act on a terminal. JSON: one
 * object a line; a name that occurs twice becomes name:2, a blob its hexadecimal digits. CSV: as
 * RFC 4180 says, the names first; with @terminal, control characters are escaped in it too. */
void sql_output_write(
	struct buf *b, const struct sql_table *t, enum sql_output form, bool terminal);
