/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the program `ingero`: the rows that commands.c lists; each is defined in its cmd_X.c.
 *
 * To add a command: write cmd_X.c with its settings struct, option table, run function and row;
 * declare the row here; list it in commands.c at its place in `ingero help`. */
#pragma once

#include "base/errinfo.h"
#include "command/program.h"
#include "fanout/fanout.h"
#include "serve/mcp/mcp_registry.h"

extern const struct program ingero_program;

extern const struct command cmd_annotate;
extern const struct command cmd_cert;
extern const struct command cmd_check;
extern const struct command cmd_dashboard;
extern const struct command cmd_demo;
extern const struct command cmd_diff;
extern const struct command cmd_explain;
extern const struct command cmd_export;
extern const struct command cmd_fleet_push;
extern const struct command cmd_mcp;
extern const struct command cmd_merge;
extern const struct command cmd_migrate;
extern const struct command cmd_query;
extern const struct command cmd_straggler_sink;
extern const struct command cmd_rates;
extern const struct command cmd_trace;

/* */

/* The demonstrations of `ingero demo`, for MCP's run_demo. */

#define MCP_DEMOS_MAX 16

/* mcp_demos_list - fills @out, ended by a row without a name. */
void mcp_demos_list(struct mcp_demo out[MCP_DEMOS_MAX]);

/* The nodes of ingero.yaml, for MCP's query_fleet. */

/* mcp_fleet_ask - reads ingero.yaml and asks its nodes, on a loop of its own, so that any thread
 * may. -ENOENT with a sentence if it names none. */
int mcp_fleet_ask(
	const struct fanout_question *q, struct fanout_result *ret, struct errinfo *reterr);
