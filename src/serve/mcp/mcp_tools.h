/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.h - the tables of what the agent offers. */
#pragma once

#include "mcp/registry.h"

extern const struct registry_tool mcp_tools[];
extern const struct registry_resource mcp_resources[];
extern const struct registry_resource mcp_templates[];
extern const struct registry_prompt mcp_prompts[];
