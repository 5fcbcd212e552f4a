/* SPDX-License-Identifier: Apache-2.0 */
/* export_trace.h - `ingero export --format perfetto`: what is asked for, and saying what was done.
 */
#pragma once

#include "export/perfetto.h"
#include "cli/range.h"

struct export_trace_options {
	const char *output; /* NULL is an error with a sentence */
	const struct time_request *range;
	struct nodedb_filter filter;
	int64_t limit; /* newest events; 0: as many as viewers bear, -1: all */
	struct perfetto_options form;
};

/* export_trace_print - on stderr: how much was written, and what was left out. */
void export_trace_print(const struct export_trace_options *w, const struct perfetto_stats *f);

int export_trace(
	const char *path, const struct export_trace_options *options, struct errinfo *reterr);
