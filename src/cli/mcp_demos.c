/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_demos.c - see mcp_demos.h. */
#include "cli/mcp_demos.h"

#include "cli/demo_scenario.h"

void mcp_demos_list(struct mcp_demo out[MCP_DEMOS_MAX])
{
	int n = 0;

	for (; n < MCP_DEMOS_MAX - 1 && demo_scenarios[n].name; n++)
		out[n] = (struct mcp_demo){demo_scenarios[n].name, demo_scenarios[n].title,
			demo_scenarios[n].recording};
	out[n] = (struct mcp_demo){0};
}
