/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.h - the tables of what the agent offers. */
#pragma once

#include "mcp/offer.h"

extern const struct offer_tool mcp_tools[];
extern const struct offer_resource mcp_resources[];
extern const struct offer_resource mcp_templates[];
extern const struct offer_prompt mcp_prompts[];
