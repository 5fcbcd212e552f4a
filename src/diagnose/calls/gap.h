/* SPDX-License-Identifier: Apache-2.0 */
/* gap.h - pauses in which a process had given the GPU nothing to do. */
#pragma once

#include "diagnose/calls/attribute.h"
#include "diagnose/units/step.h"

enum idle {             /* what a pause was spent on, mostly */
	IDLE_CPU,       /* ready to run, and another had the CPU */
	IDLE_READ,      /* blocked on the disk, more read than written */
	IDLE_WRITE,     /* likewise, more written, or flushed */
	IDLE_FILES,     /* blocked in the kernel without requests of its own, as on NFS */
	IDLE_NETWORK,   /* asleep in socket calls */
	IDLE_RECLAIM,   /* freeing memory for itself */
	IDLE_ASLEEP,    /* asleep, for something that no probe covers */
	IDLE_HOST_CODE, /* running */
	IDLE_SWAP,      /* in a step that loads a model: detect_swap.h tells of it */
	IDLE_UNKNOWN,   /* nothing stands out, or no switches are recorded */
	IDLE_COUNT
};

struct gap {
	struct span span;   /* excess_ns: beyond what a healthy loop needs */
	size_t wait, next;  /* rows: the call before it, mostly a wait; the call that ended it */
	size_t step;        /* its step; SIZE_MAX: not known */
	size_t part, parts; /* its parts in gap_list.parts */
	uint64_t read, written; /* bytes of its process's requests meanwhile */
	enum idle idle;
};

struct gap_list {
	struct gap *items; /* by process, then by start */
	size_t count;
	struct part_list parts;
	struct attribution_index index;
};

/* gaps_find - fills @ret (released with gaps_done(), also after a failure). 0 or -ENOMEM. */
int gaps_find(const struct recording *rec, const struct step_table *steps, struct gap_list *ret);
void gaps_done(struct gap_list *l);
