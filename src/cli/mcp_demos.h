/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_demos.h - the demonstrations of `ingero demo`, for MCP's run_demo. */
#pragma once

#include "serve/mcp/mcp_registry.h"

#define MCP_DEMOS_MAX 16

/* mcp_demos_list - fills @out, ended by a row without a name. */
void mcp_demos_list(struct mcp_demo out[MCP_DEMOS_MAX]);
