/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto.h - a recording for trace viewers: Chrome's JSON as the published agent writes it, and
 * Perfetto's own protobuf, which is smaller, has nanoseconds and opens faster.
 *
 * One process for each node and rank, numbered in the order of their names; threads by their real
 * ids. Written as it is read: memory does not grow with the number of events. */
#pragma once

#include "agent/store/nodedb_stream.h"
#include "base/buf.h"
#include "cli/output.h"

struct perfetto_wish {
	bool proto;
	bool stacks; /* with the call stack of each call */
};

struct perfetto_figures {
	struct nodedb_stream_figures stream;
	uint64_t chains, flows, counters, labels;
	uint64_t bytes;
};

/* perfetto_export - what @f selects, to @o. */
int perfetto_export(const char *path, const struct nodedb_filter *f,
	const struct perfetto_wish *wish, struct output *o, struct perfetto_figures *ret,
	struct errinfo *reterr);
