/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tool.h - what the tools share: arguments, the part of the recording that is meant, and the
 * way an answer is put.
 *
 * To add a tool: a function, its declaration here, and its row in mcp_tools.c. */
#pragma once

#include "agent/serve/mcp_offer.h"
#include "agent/store/nodedb.h"
#include "base/errinfo.h"
#include "mcp/call.h"
#include "sql/sql_table.h"

#define MCP_PIDS_MAX 64

typedef void mcp_tool(const struct call *c, const json_t *arguments, struct answer *a);

mcp_tool mcp_check, mcp_trace_stats, mcp_causal_chains, mcp_demo_run, mcp_test_report, mcp_sql,
	mcp_stacks, mcp_graph_lifecycle, mcp_graph_frequency, mcp_fleet, mcp_explain,
	mcp_collectives, mcp_gpu_state, mcp_losses;

/* ---- arguments; their types have been checked ---- */

json_int_t mcp_arg_int(const json_t *arguments, const char *key, json_int_t otherwise);
const char *mcp_arg_text(const json_t *arguments, const char *key); /* NULL: not there */
/* mcp_arg_compact - "tsc"; without it true, unless one thing is looked into ("id"). */
bool mcp_arg_compact(const json_t *arguments);

struct mcp_part { /* of the recording */
	struct nodedb_filter filter;
	uint32_t pids[MCP_PIDS_MAX];
	pid_t writer; /* records it now: without `since` only the last 5 minutes are meant */
	bool turn;    /* it is one of those that are being read */
};

/* A recording that is read takes up to a gigabyte: no more than so many at once in one process. */
#define MCP_READS_MAX  2
#define MCP_READS_WAIT (20 * NS_PER_S) /* for a turn; then -EBUSY */

/* mcp_part_find - from since, pid, pids and op. -EINVAL with a sentence. */
int mcp_part_find(
	const char *db, const json_t *arguments, struct mcp_part *ret, struct errinfo *reterr);

/* mcp_part_read - waits for a turn, finds and loads it. The turn ends with mcp_part_done(). */
int mcp_part_read(const char *db, const json_t *arguments, struct mcp_part *part,
	struct nodedb_content *ret, struct errinfo *reterr);

void mcp_part_done(struct mcp_part *part);

/* ---- answers ---- */

/* mcp_range - {node, from, to, events, live}: what was looked at. */
json_t *mcp_range(const struct nodedb_content *c, const struct mcp_part *part);

/* mcp_reply - puts @full (taken) into @a: as structured content, and as text between marks, both
 * compact if the arguments say so. @prose is the text if not compact; NULL: an outline. */
void mcp_reply(struct answer *a, const json_t *arguments, json_t *full, const char *prose);

/* mcp_reply_value - the same with a value that is in its form already; without @prose the text is
 * the value as JSON. */
void mcp_reply_value(struct answer *a, json_t *value, const char *prose);

/* mcp_reply_error - the sentence of a failed step. */
void mcp_reply_error(struct answer *a, int err, const struct errinfo *e);

/* ---- incidents, for tools and resources ---- */

/* mcp_incidents - the array of all incidents of @content, full, worst first; NULL and @reterr. @id,
 * if not NULL, selects one. @prose, if not NULL, gets the report of the same. */
json_t *mcp_incidents(const struct nodedb_content *content, const char *id, struct buf *prose,
	struct errinfo *reterr);

/* mcp_stack_list - the array of the @limit stacks with most time. */
json_t *mcp_stack_list(const struct nodedb_content *content, const json_t *arguments, size_t limit,
	struct errinfo *reterr);

/* mcp_sql_put - the rows of @t as members of @value, unchanged: columns, and rows as arrays
 * ("data") or objects ("rows"). */
void mcp_sql_put(json_t *value, const struct sql_table *t, bool compact);
