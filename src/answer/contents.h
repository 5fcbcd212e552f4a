/* SPDX-License-Identifier: Apache-2.0 */
/* contents.h - what a file holds, node by node: process ids of different nodes have nothing in
 * common, so that each is looked at by itself. */
#pragma once

#include "store/nodedb.h"

struct contents {
	struct nodedb_content *items; /* one, or one for each node of a merged recording */
	size_t count;
};

/* contents_load - reads what @f selects; of all nodes if its scope names none. */
int contents_load(const char *path, const struct nodedb_filter *f, struct contents *ret,
	struct errinfo *reterr);
void contents_done(struct contents *c);
