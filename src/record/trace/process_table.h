/* SPDX-License-Identifier: Apache-2.0 */
/* process_table.h - the processes under trace: one entry for each, and one place where their lives
 * are reported. Belongs to the tracer's thread.
 *
 * Whoever keeps something of a process is a stage. The tracer tells the table of a fork, exec, exit
 * or find once; the table decides whom it is about (a pid passes from process to process, and
 * records of the dead come late) and tells the stages, in the order in which they were added.
 *
 * A stage of record/ hangs what it keeps on the entry, in a slot of its own. The stages below (stacks,
 * totals) cannot see this header, and what they keep is not one thing for each process: totals have
 * the kernel's keys (process, op), sets of mappings are shared by parents and children and are kept
 * longer than the process. They stay as they are and are reported through the same list.
 *
 * To add a stage: a slot in the enum if it keeps something, a const struct process_stage, and a line
 * in tracer_open_processes(). */
#pragma once

#include <sys/queue.h>

#include "base/clock.h"
#include "base/macros.h"
#include "stat/sketch.h"

#define PROCESS_TABLE_MAX    32768 /* pids: as many as the kernel half follows, and as many ended */
#define PROCESS_TABLE_STAGES 8

enum process_slot { PROCESS_ROSTER, PROCESS_SLOTS };

struct process_entry {
	uint32_t pid;
	uint64_t
		start_ticks; /* since boot; with the pid it names the process. 0: could not be read */
	wall_time since;     /* when it is known to have lived first */
	wall_time end;       /* if it has ended */
	unsigned ended;      /* ticks since it ended, counted from 1; 0: alive */
	bool is_complete;    /* slow stages know of it */
	struct process_entry *before; /* who had the pid, while records of it may still come */
	void *slots[PROCESS_SLOTS];
	TAILQ_ENTRY(process_entry) link;
};

struct process_stage { /* any may be NULL */
	/* A process came under trace. @parent: the process that forked it, 0 if unknown. */
	void (*on_enter)(void *arg, struct process_entry *p, uint32_t parent, wall_time at);
	void (*on_exec)(void *arg, struct process_entry *p, wall_time at);
	/* It has ended; records of it may still come. The slot may be empty: of some processes only
	 * the end is reported. */
	void (*on_exit)(void *arg, struct process_entry *p);
	/* Its entry goes: free what the slot holds. */
	void (*on_drop)(void *arg, struct process_entry *p);
	/* Entering takes longer than a short process may live: see process_table_enter(). */
	bool is_slow;
};

struct process_table;

/* process_table_new - @root as in discover.h. */
int process_table_new(const char *root, struct process_table **ret);

/* process_table_free - drops all entries, so the stages must still be there. */
DECLARE_FREE(struct process_table, process_table_free)

/* process_table_add - tell @stage too, after those that were added before. */
void process_table_add(struct process_table *t, const struct process_stage *stage, void *arg);

/* What happened to a process at the time @at. A process that is there already is not entered again,
 * and one that has ended does not come back: a record of it was late. Each returns the entry that
 * it was about; NULL without memory or at the ceiling.
 *
 * _found: it was seen alive, or made its first call; @start_ticks 0: not known.
 * _enter: the same, but slow stages are not informed before process_table_complete(). */
struct process_entry *process_table_found(
	struct process_table *t, uint32_t pid, uint64_t start_ticks, wall_time at);
struct process_entry *process_table_fork(
	struct process_table *t, uint32_t parent, uint32_t child, wall_time at);
struct process_entry *process_table_exec(struct process_table *t, uint32_t pid, wall_time at);
struct process_entry *process_table_enter(struct process_table *t, uint32_t pid, wall_time at);
void process_table_complete(struct process_table *t, uint32_t pid, wall_time at);

/* process_table_exit - it has ended. Also reported to the stages if it was never entered. */
void process_table_exit(struct process_table *t, uint32_t pid, wall_time at);

/* process_table_at - the process that made a record at the time @at: the present owner of @pid, or
 * the one before. NULL: nobody is known. */
struct process_entry *process_table_at(const struct process_table *t, uint32_t pid, wall_time at);

/* process_table_called - as process_table_at(), for a record that only traced processes make: one
 * that is not known is entered, and has ended if it cannot be found. */
struct process_entry *process_table_called(struct process_table *t, uint32_t pid, wall_time at);

/* process_table_get - the present owner of @pid, also if it has just ended; NULL: none. */
struct process_entry *process_table_get(const struct process_table *t, uint32_t pid);

/* process_table_has - is @pid traced and alive, as the process with @start_ticks (0: any)? */
bool process_table_has(const struct process_table *t, uint32_t pid, uint64_t start_ticks);

/* process_table_alive - how many live. */
size_t process_table_alive(const struct process_table *t);

/* process_table_next - walk all, also the ended: from NULL until NULL. None may be dropped
 * meanwhile. */
struct process_entry *process_table_next(const struct process_table *t, struct process_entry *p);

/* process_table_tick - once a second: entries whose process ended two ticks ago go, because its
 * records have been read by then. */
void process_table_tick(struct process_table *t);

/* The live table of calls: one row for each op, all processes together. Made anew
 * whenever it is shown. */

#define LIVE_OPS_MAX 256 /* rows: more than there are ops */

struct tracer_op {
	uint8_t source;
	uint16_t op;
	bool nested;
	bool is_estimate; /* not all were counted */
	uint64_t count;
	struct sketch sketch;
};

struct live_ops {
	struct tracer_op rows[LIVE_OPS_MAX];
	size_t count;
};

void live_ops_clear(struct live_ops *t);

/* live_ops_add - calls of a process and their times. */
void live_ops_add(
	struct live_ops *t, unsigned source, unsigned op, bool nested, const struct sketch *calls);

/* live_ops_count - @count events without a duration. */
void live_ops_count(struct live_ops *t, unsigned source, unsigned op, uint64_t count);

/* live_ops_sort - those that took most first, calls inside other calls behind all others. */
void live_ops_sort(struct live_ops *t);
