/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_index_private.h - shared by the files that fill a time line's index. */
#pragma once

#include "answer/timeline/timeline_index.h"

/* timeline_find_node - the number of a node's name; made if it is new. */
uint16_t timeline_find_node(struct timeline_index *ix, const char *name, size_t len);

/* timeline_process_id - for maps; never 0. */
static inline uint64_t timeline_process_id(uint16_t node, uint32_t pid)
{
	return ((uint64_t)node << 32 | pid) + 1;
}

/* Each replaces what an earlier call has loaded, and leaves it on failure. Processes come after the
 * others, which name some; entries last. */
int timeline_load_buckets(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr);
int timeline_load_collectives(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr);
int timeline_load_gpus(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr);
int timeline_load_processes(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr);
int timeline_list_entries(struct timeline_index *ix);
