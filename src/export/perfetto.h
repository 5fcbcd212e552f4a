/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto.h - a recording for trace viewers: Chrome's JSON as the published agent writes it, and
 * Perfetto's own protobuf, which is smaller, has nanoseconds and opens faster.
 *
 * One process for each node and rank, numbered in the order of their names; threads by their real
 * ids. Written as it is read: memory does not grow with the number of events. */
#pragma once

#include "store/read/nodedb_stream.h"
#include "base/buf.h"
#include "base/output.h"

struct steps_answer;

struct perfetto_options {
	bool proto;
	bool stacks;                      /* with the call stack of each call */
	const struct steps_answer *steps; /* a line for the steps of each process; NULL: none */
};

struct perfetto_stats {
	struct nodedb_stream_stats stream;
	uint64_t chains, counters, labels, steps;
	uint64_t bytes;
};

/* perfetto_write - what @source gives, to @o. @source calls the functions of @sink in their order
 * and says how much it was; from elsewhere than a recording its events come without a stream, so
 * that wish->stacks must not be set. @last_ns: the latest moment, where labels end. */
typedef int perfetto_source(void *arg, const struct nodedb_sink *sink,
	struct nodedb_stream_stats *ret, struct errinfo *reterr);
int perfetto_write(perfetto_source *source, void *arg, int64_t last_ns,
	const struct perfetto_options *options, struct output *o, struct perfetto_stats *ret,
	struct errinfo *reterr);

/* perfetto_export - what @f selects of the recording at @path, to @o. */
int perfetto_export(const char *path, const struct nodedb_filter *f,
	const struct perfetto_options *options, struct output *o, struct perfetto_stats *ret,
	struct errinfo *reterr);
