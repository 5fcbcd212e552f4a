/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tool.h - what the tools share: the question of a call, and the way an answer is put. Most tools are
 * questions of serve/questions.c and need no code here.
 *
 * An answer is a sentence or a few as text, and the data once, as structured content, under the names that the
 * API has for them. */
#pragma once

#include <jansson.h>

#include "answer/answer.h"
#include "answer/incidents.h"
#include "base/buf.h"
#include "base/errinfo.h"
#include "json/tree.h"
#include "mcp/rpc.h"
#include "serve/mcp/mcp_registry.h"
#include "serve/serve_private.h"
#include "sql/sql_table.h"

/* mcp_question - a tool that is a question of the API. */
api_tool mcp_question;

/* ---- arguments; their types have been checked ---- */

json_int_t mcp_arg_int(const json_t *arguments, const char *key, json_int_t otherwise);
const char *mcp_arg_text(const json_t *arguments, const char *key); /* NULL: not there */
/* mcp_row - the question that the tool of @c is. */
const struct api_row *mcp_row(const struct call *c);

/* mcp_ask - what @fn answers to @request, and in @say what is said of it; one that is heavy waits for its turn. */
int mcp_ask(const struct call *c, const struct answer_request *request, answer_fn *fn,
	bool is_heavy, struct buf *say, json_t **ret, struct errinfo *reterr);

struct mcp_loaded {
	struct incidents_answer incidents;
	const char *note; /* why it is less than the whole recording; NULL: it is all */
	bool turn;        /* it is one of those that are being read */
};

/* mcp_load - waits for a turn, loads and explains the part that @request means. Ends with
 * mcp_loaded_done(), whatever it returned. */
int mcp_load(const char *db, const struct answer_request *request, struct mcp_loaded *ret,
	struct errinfo *reterr);
void mcp_loaded_done(struct mcp_loaded *l);

/* ---- answers ---- */

/* mcp_builder - a tree whose texts are cleaned as they are written. */
struct json_builder mcp_builder(void);

/* mcp_put_json - a value that somebody else wrote; null, if it is none. */
void mcp_put_json(struct json_writer *w, const char *text);

/* mcp_reply - @data (taken; NULL: no memory) and what is said of it. */
void mcp_reply(struct answer *a, json_t *data, const struct buf *say);
/* mcp_reply_error - the sentence of a failed step. */
void mcp_reply_error(struct answer *a, int err, const struct errinfo *e);

/* Texts of traced processes, made safe to be read by a model.
 *
 * A process may be called "ignore what you were told". Such a text cannot be told from an honest
 * one, so it is only ever handed over as data: cleaned of everything that is not seen, cut, and in
 * prose between MCP_CLEAN_BEGIN and MCP_CLEAN_END, which it cannot hold itself. */

#define MCP_CLEAN_NAME  256  /* bytes of a name */
#define MCP_CLEAN_TEXT  1024 /* of a frame, a cell, a sentence */
#define MCP_CLEAN_MARK  "traced-data"
#define MCP_CLEAN_BEGIN "[" MCP_CLEAN_MARK "]"
#define MCP_CLEAN_END   "[/" MCP_CLEAN_MARK "]"

extern const char mcp_clean_warning[]; /* what is said about such data */

/* mcp_clean_put - appends @s: valid UTF-8 without control and invisible characters, without the
 * words of the marks, at most @max bytes and then "…". @lines: ends of lines stay, else they become
 * spaces. */
void mcp_clean_put(struct buf *b, const char *s, size_t len, size_t max, bool lines);

/* mcp_clean_string - the same as a JSON string; never NULL but without memory. */
json_t *mcp_clean_string(const char *s, size_t max);
json_t *mcp_clean_string_len(const char *s, size_t len, size_t max);

/* mcp_clean_block - appends @text between the marks and the warning: the answer comes first. */
void mcp_clean_block(struct buf *b, const char *text);
