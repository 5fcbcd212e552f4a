/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.h - processes that are not traced but had the CPU or the disk while a traced thread
 * waited for it, or that it waited for themselves, or that use its GPU: where they live (container, cgroup) and the name of the script that they run go to the store, so
 * that a verdict can name them. Nothing else of them is kept. Belongs to the tracer's thread. */
#pragma once

#include "model/event.h"
#include "model/sample.h"
#include "record/trace/process_table.h"
#include "store/write/writer.h"

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

/* What block devices are called: rows of requests have a number, people know a name. */

#define DISKS_MAX 64 /* whoever comes later keeps its number alone */

struct disks {
	struct {
		uint32_t dev;
		char name[COMM_LEN]; /* "": not to be found */
	} items[DISKS_MAX];
	int count;
};

/* disks_name - if @e is a block request, its device's name becomes @e's peer_comm. @root as in discover.h. */
void disks_name(struct disks *d, const char *root, struct event *e);

/* Processes that traced threads wait for and that are not traced themselves: the other end of a
 * pipe, a server on the same machine, whoever holds a lock. Those that are waited for long enough to matter are worth
 * being followed, since only their own threads can tell what they did meanwhile. Pure. */

#define WAITED_FOR_MAX 16 /* processes that are followed for this, in all */

struct waited_for {
	struct waited_process {
		uint32_t pid; /* 0: free */
		uint32_t stays;
		uint64_t ns;
	} items[2 * WAITED_FOR_MAX];
	unsigned followed;
};

/* waited_for_add - a stay of @ns was ended by process @pid. True: from now on it is to be followed; it is
 * forgotten here. */
bool waited_for_add(struct waited_for *w, uint32_t pid, uint64_t ns);
