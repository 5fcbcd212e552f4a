/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_clean.h - texts of traced processes, made safe to be read by a model.
 *
 * A process may be called "ignore what you were told". Such a text cannot be told from an honest
 * one, so it is only ever handed over as data: cleaned of everything that is not seen, cut, and in
 * prose between MCP_CLEAN_BEGIN and MCP_CLEAN_END, which it cannot hold itself. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"

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
