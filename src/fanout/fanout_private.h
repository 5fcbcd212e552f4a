/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_private.h - a question on its way, node by node; private to fanout/. */
#pragma once

#include "fanout/fanout.h"
#include "base/errinfo.h"
#include "sql/sql_table.h"
#include "base/buf.h"
#include "net/client/client.h"

/* Rows of many nodes as one table.
 *
 * The column "node" comes first; if the statement has a column of that name itself, that one serves
 * and stays where it is, and where it is NULL or empty the node's name is put. Nodes whose columns
 * are not those that most nodes have are left out: so a single strange node cannot push out the
 * others, wherever it stands in the list. If no two nodes have the same, none is more right than
 * the others, and all are left out. */

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

/* Whether a node's HTTP reply is an answer, and what is wrong if it is not;
 * private to fanout/. */

/* fanout_reply_check - 0 if @r is a reply of status 200 with JSON. Else -EPROTO, or -ENOENT for
 * status 404, with a sentence about the node. @with_token: one was sent. */
int fanout_reply_check(const struct http_response *r, bool with_token, struct errinfo *reterr);

/* fanout_reply_hint - what a refusal says beyond its reason, bounded; NULL: nothing. The caller
 * frees it. */
char *fanout_reply_hint(const struct http_response *r);

/* fanout_reply_time - reads {"timestamp_ns": N}. -EPROTO if it is not that. */
int fanout_reply_time(const struct http_response *r, int64_t *ret_ns);

/* fanout_reply_copy - appends the reply's JSON, compact and valid whatever came. -EPROTO with a
 * sentence; what @b says. */
int fanout_reply_copy(const struct http_response *r, struct buf *b, struct errinfo *reterr);

struct fanout {
	struct loop *loop;
	struct tls *tls;
	struct http_client *client;
	struct fanout_nodes nodes;
	uint64_t timeout_ns, skew_ns;
	bool with_token;
	struct fanout_run *runs; /* under way */
};

struct fanout_leg { /* of a question: one node's */
	struct fanout_run *run;
	size_t index;
	struct http_call *call, *clock_call; /* under way; NULL: not */
	mono_time deadline;
	struct fanout_clock_sample samples[FANOUT_CLOCK_SAMPLES];
	size_t sample_count;
	bool chains;    /* it does not know incidents */
	char told[256]; /* how the node calls itself; "" */
	char clock_why[200];
	struct fanout_rows rows;
};

struct fanout_run {
	struct fanout *f;
	struct fanout_run *next;
	enum fanout_kind kind;
	size_t limit;
	bool apart, clocks, clocks_after;
	char *path, *body; /* of the request */
	char *query;       /* parameters, for a second path */
	fanout_done *done;
	void *arg;
	struct fanout_leg *legs;
	size_t under_way;       /* calls */
	bool posted, cancelled; /* its end waits on the loop */
	struct fanout_result result;
};

/* fanout_result_finish - from what the legs brought to names, table, order and warnings. */
void fanout_result_finish(struct fanout_run *run);
