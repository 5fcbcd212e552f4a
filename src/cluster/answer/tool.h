/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - the questions that the cluster answers, as one table: MCP's tools, /api/v2/tools and its OpenAPI
 * document come from it.
 *
 * To add one: a row with its schemas and a function that asks the store and builds its answer. */
#pragma once

#include <jansson.h>

#include "cluster/store/store.h"
#include "cluster/tenant/tenants.h"
#include "mcp/registry.h"

struct tool_call { /* one call under way, on a thread of its own */
	struct store *store;
	const struct tenant *tenant; /* NULL: everything may be seen */
	int64_t now_ns;
	const json_t *arguments; /* checked against the schema */
	mono_time came;          /* when it was asked: waiting counts; 0: now */
	/* What the answer lacks, as its widest question does; NULL: nobody wants to know. */
	struct store_missing *missing;
};

struct tool {
	const char *name; /* "fleet_cluster_summary"; NULL ends the table */
	const char *title, *description;
	unsigned params, needs; /* of tool_params; those that must be there */
	const char *output;     /* JSON Schema */
	unsigned verb;          /* enum tenant_verb that it needs */
	/* The answer's structured content, the caller's; NULL and *reterr: -EINVAL (arguments), -EACCES
	 * (a cluster that is not the tenant's), or as of store_select(). *ret_text: a few sentences for
	 * people and models. */
	int (*run)(const struct tool_call *c, json_t **ret, struct buf *ret_text,
		struct errinfo *reterr);
};

extern const struct tool cluster_tools[];
extern const struct param tool_params[];

const struct tool *tool_find(const char *name);

/* Names are of letters, digits and _, as models' APIs take them. Before they had dots, which are still taken. */
#define TOOL_ID_MAX 128
#define TOOL_PREFIX "fleet_cluster_"
#define TOOL_DOTTED "fleet.cluster."
