/* SPDX-License-Identifier: Apache-2.0 */
/* flamegraph.h - a tree of stacks as one SVG that needs nothing else: a picture wherever SVG is
 * shown; in a browser also zoom, search and tooltips. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "answer/flame.h"

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
