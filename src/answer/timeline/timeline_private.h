/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_private.h - shared by the files that draw a time line. */
#pragma once

#include "answer/timeline/timeline.h"

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
