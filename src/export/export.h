/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - a loaded recording in formats of other tools. */
#pragma once

#include <stdbool.h>

#include "answer/flame.h"
#include "base/buf.h"
#include "store/nodedb.h"
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
