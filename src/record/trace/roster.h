/* SPDX-License-Identifier: Apache-2.0 */
/* roster.h - what is known of the processes under trace: who they are, and which of their calls are
 * seen. A stage of process_table.h. Belongs to the tracer's thread.
 *
 * Identity is read on first sight and again after exec; a child starts with its parent's, because
 * fork copies the environment. Records of a process may be taken out of the kernel's rings after
 * the record of its exec or end (they travel in different rings): what it was before is kept for a
 * while, and an event gets what held when it began. */
#pragma once

#include "record/trace/process_table.h"
#include "store/write/writer.h"
#include "model/event.h"
#include "model/identity.h"

#define ROSTER_GAPS_MAX 32 /* processes shown with what of them is not seen */

struct roster_gap { /* a process that is not seen completely */
	uint32_t pid;
	uint64_t start_ticks;
	char comm[COMM_LEN];
	bool ended;
	struct process_layers layers;
};

/* Told whenever what is seen of a process has changed. */
typedef void roster_coverage_sink(
	void *arg, uint32_t pid, const char *comm, const struct process_layers *l);

struct roster;

/* The roster as a stage; its argument is the struct roster. */
extern const struct process_stage roster_stage;

/* roster_new - @root as in discover.h; of the processes in @table, to which it is then to be added.
 * @sink may be NULL. */
int roster_new(const char *root, struct process_table *table, roster_coverage_sink *sink, void *arg,
	struct roster **ret);

/* roster_free - after the table, whose entries hold what is known. */
DECLARE_FREE(struct roster, roster_free)

/* roster_store - write what becomes known to @w; NULL: nowhere. */
void roster_store(struct roster *r, struct store_writer *w);

/* roster_found - @e is the kernel's word that a process made its first call (HOST_TARGET_FOUND). If
 * it ended before it could be read, what the kernel knows of it is kept, and that the rest is not
 * known is reported. After process_table_found(). */
void roster_found(struct roster *r, const struct event *e);

/* roster_found_start - when the process of such an event began, as /proc says it. */
uint64_t roster_found_start(const struct event *e);

/* roster_place - complete @e by what is known of its process when it began. Returns the container's
 * id, or "". */
const char *roster_place(struct roster *r, struct event *e);

/* roster_home - where @pid lives, as far as it is known; texts are valid until the roster changes, "": not known. */
struct roster_home {
	const char *pod, *namespace, *container_id;
};
struct roster_home roster_home(const struct roster *r, uint32_t pid);

/* roster_judged - what attach says is seen of @pid. A gap is reported once two judgements in a row
 * agree or the process ends: libraries are loaded one after the other. */
void roster_judged(struct roster *r, uint32_t pid, const struct process_layers *l);

/* roster_groups - the control groups of the processes that run, each once, of those that are known
 * and are not the root. Paths are valid until the roster changes. Returns how many, @max at most.
 *
 * The kernel's number of a group is that of cgroup v2. Where v1 limits CPUs, which is another tree, a process's group is
 * the one of v1, unless that is the root; likewise where it limits memory and v2 knows the root alone. The number of such a group
 * is made of its paths, and larger than any of the kernel's. */
struct roster_group {
	uint64_t cgroup_id;
	const char *
		path; /* as /proc names it, seen from here; of v1 NULL: CPUs are those of the root */
	bool is_v1;   /* path is that of the CPUs' hierarchy */
	const char
		*memory_path; /* of v1, where that limits memory; NULL: not in a group of its own */
	uint32_t pid;         /* one of them */
};
size_t roster_groups(const struct roster *r, struct roster_group *ret, size_t max);

/* roster_tick - once a second: write again what the store had no room for, and see who was moved to another group of v1,
 * which the kernel's number does not tell, or may use other CPUs. */
void roster_tick(struct roster *r);

/* roster_renew - the store is a new one, or has forgotten rows: write again what is written once.
 */
void roster_renew(struct roster *r, wall_time now);

/* roster_finish - report what waits to be reported; before the store is closed. */
void roster_finish(struct roster *r);

/* roster_gaps - processes not seen completely, also those that ended; @ret_more: beyond the list.
 */
const struct roster_gap *roster_gaps(const struct roster *r, size_t *ret_count, uint64_t *ret_more);
