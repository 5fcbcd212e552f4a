/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fleet_ask.c - see mcp_fleet_ask.h. */
#include "cli/mcp_fleet_ask.h"

#include <errno.h>

#include "cli/fleet.h"

int mcp_fleet_ask(
	const struct fanout_question *q, struct fanout_result *ret, struct errinfo *reterr)
{
	_cleanup_(fleet_done) struct fleet fleet = {0};
	struct fleet_options nothing_else = FLEET_OPTIONS_INIT;
	int r = fleet_open(&nothing_else, NULL, &fleet, reterr);

	if (r < 0)
		return r;
	if (!fleet.fanout)
		return errinfo_set(reterr, -ENOENT,
			"no other nodes are configured: list them under fleet.nodes in ingero.yaml");
	return fanout_wait(fleet.fanout, q, ret, reterr);
}
