/* SPDX-License-Identifier: Apache-2.0 */
/* export_fleet.h - `ingero export --nodes`: events and verdicts of many nodes as one trace. */
#pragma once

#include "cli/fleet.h"
#include "cli/recording_option.h"
#include "export/export.h"

/* `ingero export --format perfetto`: what is asked for, and saying what was done. */

struct export_trace_options {
	const char *output; /* NULL is an error with a sentence */
	const struct time_request *range;
	struct nodedb_filter filter;
	int64_t limit; /* newest events; 0: as many as viewers bear, -1: all */
	struct perfetto_options form;
};

int export_trace(
	const char *path, const struct export_trace_options *options, struct errinfo *reterr);

/* export_fleet - asks the nodes of @f and writes what they have. Of @wish, the range's `since` and
 * the filter's processes count. The exit code (see fanout_verdict()), or a negative errno. */
int export_fleet(
	struct fleet *f, const struct export_trace_options *options, struct errinfo *reterr);
