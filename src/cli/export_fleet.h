/* SPDX-License-Identifier: Apache-2.0 */
/* export_fleet.h - `ingero export --nodes`: events and verdicts of many nodes as one trace. */
#pragma once

#include "cli/export_trace.h"
#include "cli/fleet.h"

/* export_fleet - asks the nodes of @f and writes what they have. Of @wish, the range's `since` and
 * the filter's processes count. The exit code (see fanout_verdict()), or a negative errno. */
int export_fleet(
	struct fleet *f, const struct export_trace_options *options, struct errinfo *reterr);
