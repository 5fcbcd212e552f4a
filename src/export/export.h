/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - a loaded recording in formats of other tools. */
#pragma once

#include "answer/flame.h"
#include "base/buf.h"
#include "base/output.h"
#include "store/nodedb.h"
#include "store/read/nodedb_reader.h"
#include "wire/names.h"

enum export_format { EXPORT_FLAMEGRAPH, EXPORT_FOLDED };

struct export_options {
	enum export_format format;
	bool count;                   /* calls; else their time */
	const struct wire_op_row *op; /* NULL: all calls */
	const char *name;             /* of the recording, for a title */
};

struct export_stats {
	uint64_t calls, ns;     /* of what was exported */
	uint64_t without_stack; /* calls among them */
	size_t stacks;          /* different ones */
	uint64_t left_out;      /* ns or calls that found no room */
};

/* export_stacks - appends @c's call stacks to @b as @wish says; c->stacks must be loaded.
 * -ENODATA with a sentence if no call has one; -E2BIG if @b cannot hold it; -ENOMEM. */
int export_stacks(const struct nodedb_content *c, const struct export_options *options,
	struct buf *b, struct export_stats *ret, struct errinfo *reterr);

/* folded_text - appends a line for every place where calls ended; values are divided by @unit,
 * rounded, and at least 1. Check b->err. */
void folded_text(struct buf *b, const struct flame *f, uint64_t unit);

/* A tree of stacks as one SVG that needs nothing else: a picture wherever SVG is
 * shown; in a browser also zoom, search and tooltips. */

#define FLAMEGRAPH_BYTES_MAX (2u << 20)

struct flamegraph {
	const char *title;    /* escaped here */
	const char *subtitle; /* what the width means, what was left out */
	bool is_count;        /* values are calls; else nanoseconds */
};

/* flamegraph_svg - appends the document to @b, at most FLAMEGRAPH_BYTES_MAX: frames narrower than
 * 0.3 of the picture's pixels are left out, and more if there are too many; the picture says so.
 * The outermost frame is on top. 0; -ENODATA if the tree is empty; -ENOMEM or b->err. */
int flamegraph_svg(struct buf *b, const struct flame *f, const struct flamegraph *g);

/* A recording for trace viewers: Chrome's JSON as the published agent writes it, and
 * Perfetto's own protobuf, which is smaller, has nanoseconds and opens faster.
 *
 * One process for each node and rank, numbered in the order of their names; threads by their real
 * ids. Written as it is read: memory does not grow with the number of events. */

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
