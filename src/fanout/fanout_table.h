/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_table.h - rows of many nodes as one table.
 *
 * The column "node" comes first; if the statement has a column of that name itself, that one serves
 * and stays where it is, and where it is NULL or empty the node's name is put. Nodes whose columns
 * are not those that most nodes have are left out: so a single strange node cannot push out the
 * others, wherever it stands in the list. If no two nodes have the same, none is more right than
 * the others, and all are left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/errinfo.h"
#include "sql/sql_table.h"

struct fanout_rows { /* what one node answered */
	struct sql_table table;
	bool there;           /* it answered */
	bool truncated;       /* it said that there are more, or gave more than it was asked for */
	bool maybe_more;      /* it gave as many as it was asked for and does not say */
	bool odd;             /* set by the merge: other columns */
	char difference[200]; /* of an odd one: "it has a, b; it lacks c"; "": no two are alike */
	char name[256];       /* of the node, if the answer tells; "" */
};

/* fanout_table_read - @body is a reply of POST /api/v1/query: {columns, rows, …}. Every row must
 * have as many values as there are columns, each a number, text, true, false or null. No more than
 * @limit rows and @bytes_max are kept. -EPROTO with a sentence; -ENOMEM. */
int fanout_table_read(const char *body, size_t len, size_t limit, size_t bytes_max,
	struct fanout_rows *ret, struct errinfo *reterr);
void fanout_rows_done(struct fanout_rows *r);

/* fanout_table_merge - all rows in the order of @nodes, each named by @names[i]. The tables of
 * @nodes are emptied on the way, so that rows are never held twice. If no node is there, *ret has
 * no columns; nor if all are odd. */
int fanout_table_merge(
	struct fanout_rows *nodes, const char *const *names, size_t count, struct sql_table *ret);
