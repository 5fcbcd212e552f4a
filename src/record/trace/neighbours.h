/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.h - processes that are not traced but had the CPU or the disk while a traced thread
 * waited for it, or that it waited for themselves, or that use its GPU: where they live (container, cgroup) and the name of the script that they run go to the store, so
 * that a verdict can name them. Nothing else of them is kept. Belongs to the tracer's thread. */
#pragma once

#include <stdint.h>

#include "record/trace/process_table.h"
#include "store/write/writer.h"
#include "model/event.h"
#include "model/sample.h"

struct neighbours;

/* neighbours_new - @root as in discover.h. */
int neighbours_new(const char *root, struct neighbours **ret);
void neighbours_free(struct neighbours *n);

/* neighbours_see - look whether @e names one, and write to @w what is new of it; NULL: nowhere.
 * Processes in @traced are known better already. Of a wait for a socket of this machine the process behind
 * it is looked for, and becomes @e's peer_pid. */
void neighbours_see(struct neighbours *n, struct event *e, const struct process_table *traced,
	struct store_writer *w);

/* neighbours_share - likewise of those that have a context on the GPU of @s. */
void neighbours_share(struct neighbours *n, const struct gpu_sample *s,
	const struct process_table *traced, struct store_writer *w);

/* neighbours_renew - the store has a new file: all that are met go there again. */
void neighbours_renew(struct neighbours *n);

/* neighbours_tick - once a second: some more may be read. */
void neighbours_tick(struct neighbours *n);
