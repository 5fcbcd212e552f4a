/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - what a program offers by the protocol: tools, resources, prompts, as tables.
 *
 * To add a tool: a row with its schemas and a function. The rows, and all they point to, outlive
 * the talk that is made of them; they may be used by several threads at once. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "mcp/rpc.h"

/* The parameters of questions, described once for a server: what assistants are told (JSON Schema),
 * what OpenAPI says, what is accepted and how it is called in errors derive from one table of them. */

enum param_type {
	PARAM_TEXT,
	PARAM_INTEGER,
	PARAM_NUMBER,
	PARAM_FLAG,
	PARAM_INTEGERS, /* one, or a list; in a URL separated by commas */
};

struct param {
	unsigned bit;      /* questions take parameters by their bits; several may share one */
	const char *name;  /* NULL ends a table */
	const char *alias; /* accepted too; NULL: none */
	enum param_type type;
	double least, most;  /* of numbers, if most is not 0; most of a text: in bytes */
	const char *choices; /* "cuda driver nccl"; NULL: any */
	const char *about;
	bool is_extra; /* accepted, but assistants are not told: every word in a list costs them */
};

/* param_type_name - of JSON Schema; an INTEGERS is a string in a URL. */
const char *param_type_name(const struct param *p, bool in_url);

/* param_schema - the JSON Schema of an object with those of @table that @takes has; of @needs the first of each bit is
 * required. The caller's; NULL: no memory.
 * @listed: for a list, without what is_extra and without limits, which errors tell. */
json_t *param_schema(const struct param *table, unsigned takes, unsigned needs, bool listed);

/* param_arguments - a copy of @given with aliases replaced by names; NULL: no memory. */
json_t *param_arguments(const struct param *table, unsigned takes, const json_t *given);
#define REGISTRY_VALUES    100 /* of a completion */
#define REGISTRY_VALUE_MAX 512 /* bytes of a template's variable */

struct registry_tool {
	const char *name;  /* NULL ends the table */
	const char *alias; /* may be called by that name, too; NULL: by none */
	const char *title;
	const char *description;
	/* The arguments, which are checked before run(): parameters, or a JSON Schema. */
	const struct param *params;
	unsigned takes, requires; /* of them; those that must be there */
	const char *input;
	const char *output;      /* JSON Schema of answer->structured; NULL: there is none */
	const char *annotations; /* a JSON object of hints; NULL: none */
	bool is_extra;           /* can be called, but is not listed */
	const char *needs;       /* capability of the client without which it cannot run, or NULL */
	void (*run)(const struct call *c, const json_t *arguments, struct answer *a);
};

/* Appends suggestions for @argument, of which @value is there already. */
typedef void registry_complete(
	const struct call *c, const char *argument, const char *value, json_t *values);

/* Appends {uri, mimeType, text or blob} to @contents. @variable is what a template's part stands
 * for, "" without one. -ENOENT: unknown resource; -EPROTO with @e. */
typedef int registry_read(const struct call *c, const char *uri, const char *variable,
	json_t *contents, struct rpc_error *e);

struct registry_resource {
	const char *uri; /* NULL ends the table; with a {part} it is a template */
	const char *name, *title, *description, *mime;
	registry_read *read;
	registry_complete *complete; /* NULL: no suggestions */
};

struct registry_argument {
	const char *name; /* NULL ends the table */
	const char *description;
	bool required;
};

struct registry_prompt {
	const char *name; /* NULL ends the table */
	const char *title, *description;
	const struct registry_argument *arguments; /* NULL: none */
	/* Appends {role, content} to @messages; arguments are strings, the required ones there. */
	void (*get)(const struct call *c, const json_t *arguments, json_t *messages);
	registry_complete *complete;
};

struct registry {
	const char *name, *title, *version;
	const char *instructions; /* for the model, in a few sentences */
	const struct registry_tool *tools;
	const struct registry_resource *resources;
	const struct registry_resource *templates;
	const struct registry_prompt *prompts;
	size_t page;         /* 0: REGISTRY_PAGE */
	size_t answer_bytes; /* ceiling of a tool's answer; 0: RPC_BYTES_MAX */
	const char *mark;    /* strangers' texts stand between [mark] and [/mark]; NULL: nowhere */
	const char *too_large; /* what to do about an answer over it */
	void *arg;             /* of calls */
	/* Told of every request that was answered, on the thread that did: @name is that of the
	 * tool or prompt, or the URI; NULL: it has none. May be NULL. */
	void (*answered)(void *arg, const char *method, const char *name, uint64_t ns, bool failed);
};

const struct registry_tool *registry_tool_find(const struct registry *o, const char *name);
/* registry_tool_names - "explain, get_steps": those that are listed. */
void registry_tool_names(const struct registry *o, struct buf *b);
const struct registry_prompt *registry_prompt_find(const struct registry *o, const char *name);

/* registry_resource_find - the row of @uri; @variable gets what its {part} stands for. */
const struct registry_resource *registry_resource_find(
	const struct registry *o, const char *uri, char variable[REGISTRY_VALUE_MAX]);

/* A page of a list: {"tools": [...], "nextCursor": "..."}; the caller's. NULL and @e: the cursor is
 * not one of ours. */
json_t *registry_list_tools(const struct registry *o, const json_t *cursor, struct rpc_error *e);
json_t *registry_list_resources(
	const struct registry *o, const json_t *cursor, struct rpc_error *e);
json_t *registry_list_templates(
	const struct registry *o, const json_t *cursor, struct rpc_error *e);
json_t *registry_list_prompts(const struct registry *o, const json_t *cursor, struct rpc_error *e);

/* Does a value have the shape that a JSON Schema describes?
 *
 * The keywords that our schemas use: type (also a list of them), enum, minimum, maximum, minLength,
 * maxLength, maxItems, items, properties, required, additionalProperties: false. Others say nothing
 * here. Schemas are our own, so there is nothing to guard against in them. */

#define SCHEMA_CHECK_SENTENCE 512

/* schema_check - 0; else -EINVAL, and @why gets one sentence that names the place ("limit", or
 * "pids[2]"), what is wanted there and what was given. */
int schema_check(const json_t *schema, const json_t *value, struct buf *why);
