/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_index_private.h - shared by the files that fill a time line's index. */
#pragma once

#include "answer/timeline/timeline_index.h"
#include "answer/timeline/timeline.h"

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

struct timeline_view { /* an answer in the making */
	const struct question *q;
	const struct timeline_index *ix;
	struct timeline_answer *a;
	size_t width;       /* pixels */
	int64_t early_ns;   /* from here on rows are read: those before it that matter are long */
	int64_t first_bin;  /* to be added to bins that are being summed up */
	size_t slices;      /* so far */
	struct idmap lists; /* by lane: where its slices go */
	struct idmap names;
	int op_names[WIRE_SOURCE_MAX * WIRE_OP_MAX]; /* of the answer's names; -1: not yet */
};

/* Numbers of the answer's names; -1: none. */
int timeline_op_name(struct timeline_view *v, unsigned name);
int timeline_peer_name(struct timeline_view *v, unsigned peer);

/* timeline_in_list - whether @list, separated by commas, has @name. */
bool timeline_in_list(const char *list, const char *name);

/* Tracks, from sums or, where few lie in the view, from rows. */
int timeline_draw_sums(struct timeline_view *v);
int timeline_draw_rows(struct timeline_view *v, struct errinfo *reterr);

int timeline_draw_processes(struct timeline_view *v);
int timeline_draw_ranks(struct timeline_view *v);
int timeline_draw_steps(struct timeline_view *v);
int timeline_draw_gpus(struct timeline_view *v);
int timeline_list_incidents(struct timeline_view *v, struct errinfo *reterr);
int timeline_count_calls(struct timeline_view *v, struct errinfo *reterr);
