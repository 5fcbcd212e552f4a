/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tool.h - what the tools share: arguments, the part of the recording that is meant, and the
 * way an answer is put. Figures come of answer; tools only choose and name them.
 *
 * To add a tool: a function, its declaration here, and its row in mcp_tools.c. */
#pragma once

#include "answer/answer.h"
#include "answer/row.h"
#include "answer/incidents.h"
#include "serve/mcp/mcp_registry.h"
#include "base/errinfo.h"
#include "mcp/call.h"
#include "model/incident_field.h"
#include "sql/sql_table.h"

typedef void mcp_tool(const struct call *c, const json_t *arguments, struct answer *a);

mcp_tool mcp_check, mcp_trace_stats, mcp_causal_chains, mcp_demo_run, mcp_test_report, mcp_sql,
	mcp_stacks, mcp_graph_lifecycle, mcp_graph_frequency, mcp_fleet, mcp_explain,
	mcp_collectives, mcp_gpu_state, mcp_losses, mcp_steps;

/* ---- arguments; their types have been checked ---- */

json_int_t mcp_arg_int(const json_t *arguments, const char *key, json_int_t otherwise);
const char *mcp_arg_text(const json_t *arguments, const char *key); /* NULL: not there */
/* mcp_arg_compact - "tsc"; without it true, unless one thing is looked into ("id"). */
bool mcp_arg_compact(const json_t *arguments);

/* ---- the recording ---- */

/* mcp_answer - replies with what @fn makes of the part that since, pid, pids, source and op mean, or
 * with what was wrong: among that, a process that the recording does not know. */
typedef json_t *mcp_answer_fn(
	const struct question *q, const json_t *arguments, struct errinfo *reterr);
void mcp_answer(const struct call *c, const json_t *arguments, mcp_answer_fn *fn, struct answer *a);

/* MCP_ANSWERS - a tool that is such an answer. */
#define MCP_ANSWERS(tool, fn)                                                                      \
	void tool(const struct call *c, const json_t *arguments, struct answer *a)                 \
	{                                                                                          \
		mcp_answer(c, arguments, fn, a);                                                   \
	}

/* A recording that is loaded takes up to a gigabyte: no more than so many at once in one process. */
#define MCP_READS_MAX  2
#define MCP_READS_WAIT (20 * NS_PER_S) /* for a turn; then -EBUSY */
int mcp_turn_take(struct errinfo *reterr);
void mcp_turn_give(void);

struct mcp_loaded {
	struct incidents_answer incidents;
	const char *note; /* why it is less than the whole recording; NULL: it is all */
	bool turn;        /* it is one of those that are being read */
};

/* mcp_load - waits for a turn, loads and explains the part that is meant. Ends with
 * mcp_loaded_done(), whatever it returned. */
int mcp_load(
	const char *db, const json_t *arguments, struct mcp_loaded *ret, struct errinfo *reterr);
void mcp_loaded_done(struct mcp_loaded *l);

/* ---- answers ---- */

/* mcp_range - {node, from, to, events, note}: what was looked at. NULL and @reterr. */
json_t *mcp_range(const struct question *q, struct errinfo *reterr);
json_t *mcp_range_of(const struct incidents_answer *a, const char *note);

/* mcp_tree - what was written to @w, a writer to a buffer, with the published names and units; NULL: it did
 * not fit. mcp_api - the API's answer likewise; NULL and @reterr. */
json_t *mcp_tree(struct json_writer *w);
json_t *mcp_api(const struct question *q, answer_fn *fn, struct errinfo *reterr);

/* mcp_row - a described row (encode/row.h) as an object; names are cleaned. */
json_t *mcp_row(const struct row_field *f, const void *row, uint32_t leave_out);

json_t *mcp_us(double ns); /* microseconds, with one digit below 10 */

/* mcp_reply - puts @full (taken) into @a, compact if the arguments say so: once, as JSON in text
 * between marks. Every revision and every client passes text on to the model; as structured content
 * the same would be paid for twice, and stand outside the marks. */
void mcp_reply(struct answer *a, const json_t *arguments, json_t *full);

/* mcp_reply_value - the same with a value that is in its form already. */
void mcp_reply_value(struct answer *a, json_t *value);

/* mcp_reply_error - the sentence of a failed step. */
void mcp_reply_error(struct answer *a, int err, const struct errinfo *e);

/* ---- for tools and resources ---- */

/* mcp_incidents - the array of the incidents of @a, each with what @show says, worst first; NULL and
 * @reterr. @id, if not NULL, selects one. */
json_t *mcp_incidents(const struct incidents_answer *a, const char *id, enum incident_show show,
	struct errinfo *reterr);

/* mcp_stack_list - the array of the @limit stacks with most time. */
json_t *mcp_stack_list(const struct question *q, size_t limit, struct errinfo *reterr);

/* mcp_sql_put - the rows of @t as members of @value, unchanged: columns, and rows as arrays
 * ("data") or objects ("rows"). */
void mcp_sql_put(json_t *value, const struct sql_table *t, bool compact);
