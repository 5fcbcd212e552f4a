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
	/* By tool_run(): */
	struct store_scope scope; /* what it asks about, and what of that its token may see */
	const char *cluster;      /* that scope.clusters then points to */
	json_t *answer;           /* its structured content */
	struct buf *text;         /* a few sentences for people and models */
	struct errinfo *err;
};

struct tool {
	const char *name; /* "fleet_cluster_summary"; NULL ends the table */
	const char *title, *description;
	unsigned params, needs; /* of tool_params; those that must be there */
	const char *output;     /* JSON Schema */
	unsigned verb;          /* enum tenant_verb that it needs */
	unsigned
		minutes; /* that are looked back on if since is not given; 0: all, and no "window" */
	/* Fills @c's answer and text. -EINVAL (arguments), -EACCES, or as of store_select(). */
	int (*run)(struct tool_call *c);
};

extern const struct tool cluster_tools[];
extern const struct param tool_params[];

const struct tool *tool_find(const char *name);

/* tool_run - @asked without what tool_run() sets. *ret, the caller's, and *ret_text are untouched or
 * incomplete after a failure: -EINVAL (arguments), -EACCES (a cluster that is not the tenant's), or as of
 * store_select(). */
int tool_run(const struct tool *t, const struct tool_call *asked, json_t **ret,
	struct buf *ret_text, struct errinfo *reterr);

/* Names are of letters, digits and _, as models' APIs take them. Before they had dots, which are still taken. */
#define TOOL_ID_MAX 128
#define TOOL_PREFIX "fleet_cluster_"
#define TOOL_DOTTED "fleet.cluster."
