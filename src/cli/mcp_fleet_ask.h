/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fleet_ask.h - the nodes of ingero.yaml, for MCP's query_fleet. */
#pragma once

#include "fanout/fanout.h"

/* mcp_fleet_ask - reads ingero.yaml and asks its nodes, on a loop of its own, so that any thread
 * may. -ENOENT with a sentence if it names none. */
int mcp_fleet_ask(
	const struct fanout_question *q, struct fanout_result *ret, struct errinfo *reterr);
