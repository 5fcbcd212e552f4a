/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h - the tables of the kernel half that stacks are walked with: filled from here, read
 * there. See wire/stack.h for what they hold. */
#pragma once

#include "record/probe/probe.h"
#include "wire/stack.h"

#define PROBE_SETS_MAX 4096 /* of mappings; set 0 is none */

/* probe_unwind_rule - rule number @id, which tables refer to; before the first that does. */
int probe_unwind_rule(struct probe *p, uint32_t id, const struct unwind_rule *r);

/* probe_unwind_pool - make pool @id with room for @count chunks; *ret_fd is the caller's. Takes
 * some 15 ms: the kernel waits for all running programs. */
int probe_unwind_pool(struct probe *p, uint32_t id, uint32_t count, int *ret_fd);

/* probe_unwind_fill - write chunks into a pool from number @first on; nobody looks there yet. */
int probe_unwind_fill(
	int pool_fd, uint32_t first, const struct unwind_chunk *chunks, uint32_t count);

/* probe_mappings - make or replace set @id. A walk sees the old one or the new one. */
int probe_mappings(struct probe *p, uint32_t id, const struct stack_mappings *m);
void probe_mappings_drop(struct probe *p, uint32_t id);

/* probe_stack_process - process @pid uses set @set and, if not NULL, has this Python. Its children
 * inherit both; the kernel half forgets it at exec and exit. @generation is another number every
 * time that a set's content changes: what the kernel remembers of addresses holds for one. */
int probe_stack_process(struct probe *p, uint32_t pid, uint32_t set, uint32_t generation,
	const struct stack_python *python);

/* probe_stack_set_of - which set the kernel uses for @pid; 0: none. */
uint32_t probe_stack_set_of(const struct probe *p, uint32_t pid);

void probe_stack_tally(const struct probe *p, struct stack_tally *ret);
