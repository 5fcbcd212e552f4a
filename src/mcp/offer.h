/* SPDX-License-Identifier: Apache-2.0 */
/* offer.h - what a program offers by the protocol: tools, resources, prompts, as tables.
 *
 * To add a tool: a row with its schemas and a function. The rows, and all they point to, outlive
 * the talk that is made of them; they may be used by several threads at once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "mcp/call.h"
#include "mcp/rpc.h"

#define OFFER_PAGE      50  /* elements of a list in one reply, unless the offer says otherwise */
#define OFFER_VALUES    100 /* of a completion */
#define OFFER_VALUE_MAX 512 /* bytes of a template's variable */

struct offer_tool {
	const char *name; /* NULL ends the table */
	const char *title;
	const char *description;
	const char *input;       /* JSON Schema of the arguments: enforced before run() */
	const char *output;      /* of answer->structured; NULL: there is none */
	const char *annotations; /* a JSON object of hints; NULL: none */
	const char *needs;       /* capability of the client without which it cannot run, or NULL */
	void (*run)(const struct call *c, const json_t *arguments, struct answer *a);
};

/* Appends suggestions for @argument, of which @value is there already. */
typedef void offer_complete(
	const struct call *c, const char *argument, const char *value, json_t *values);

/* Appends {uri, mimeType, text or blob} to @contents. @variable is what a template's part stands
 * for, "" without one. -ENOENT: unknown resource; -EPROTO with @e. */
typedef int offer_read(const struct call *c, const char *uri, const char *variable,
	json_t *contents, struct rpc_error *e);

struct offer_resource {
	const char *uri; /* NULL ends the table; with a {part} it is a template */
	const char *name, *title, *description, *mime;
	offer_read *read;
	offer_complete *complete; /* NULL: no suggestions */
};

struct offer_argument {
	const char *name; /* NULL ends the table */
	const char *description;
	bool required;
};

struct offer_prompt {
	const char *name; /* NULL ends the table */
	const char *title, *description;
	const struct offer_argument *arguments; /* NULL: none */
	/* Appends {role, content} to @messages; arguments are strings, the required ones there. */
	void (*get)(const struct call *c, const json_t *arguments, json_t *messages);
	offer_complete *complete;
};

struct offer {
	const char *name, *title, *version;
	const char *instructions; /* for the model, in a few sentences */
	const struct offer_tool *tools;
	const struct offer_resource *resources;
	const struct offer_resource *templates;
	const struct offer_prompt *prompts;
	size_t page;           /* 0: OFFER_PAGE */
	size_t answer_bytes;   /* ceiling of a tool's answer; 0: RPC_BYTES_MAX */
	const char *too_large; /* what to do about an answer over it */
	void *arg;             /* of calls */
	/* Told of every request that was answered, on the thread that did: @name is that of the
	 * tool or prompt, or the URI; NULL: it has none. May be NULL. */
	void (*answered)(void *arg, const char *method, const char *name, uint64_t ns, bool failed);
};

const struct offer_tool *offer_tool_find(const struct offer *o, const char *name);
const struct offer_prompt *offer_prompt_find(const struct offer *o, const char *name);

/* offer_resource_find - the row of @uri; @variable gets what its {part} stands for. */
const struct offer_resource *offer_resource_find(
	const struct offer *o, const char *uri, char variable[OFFER_VALUE_MAX]);

/* A page of a list: {"tools": [...], "nextCursor": "..."}; the caller's. NULL and @e: the cursor is
 * not one of ours. */
json_t *offer_list_tools(const struct offer *o, const json_t *cursor, struct rpc_error *e);
json_t *offer_list_resources(const struct offer *o, const json_t *cursor, struct rpc_error *e);
json_t *offer_list_templates(const struct offer *o, const json_t *cursor, struct rpc_error *e);
json_t *offer_list_prompts(const struct offer *o, const json_t *cursor, struct rpc_error *e);
