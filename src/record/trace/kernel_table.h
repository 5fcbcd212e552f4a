/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_table.h - which kernel a function or handle of a process stands for, and about how often it
 * was launched. Names and counts come from the kernel half, each in its own time; rows go out for
 * functions that were launched. Pure. */
#pragma once

#include "base/macros.h"
#include "model/kernel.h"

#define KERNEL_TABLE_MAX   131072
#define KERNEL_TABLE_SHARE (KERNEL_TABLE_MAX / 4) /* of one process */

struct kernel_table;

/* A row to store; false: no room, it comes again. */
typedef bool kernel_table_sink(void *arg, const struct kernel_row *row);

/* Nobody has told the name of @function: whoever knows may call kernel_table_symbol(). */
typedef void kernel_table_ask(void *arg, uint32_t pid, uint64_t function);

int kernel_table_new(struct kernel_table **ret);
DECLARE_FREE(struct kernel_table, kernel_table_free)

/* kernel_table_name - @function is @name from @at on; one that had another name was a handle that was
 * given back. */
void kernel_table_name(struct kernel_table *t, uint32_t pid, uint64_t function, wall_time at,
	enum kernel_origin origin, const char *name, bool is_cut);

/* kernel_table_alias - @function is the kernel that @other is. */
void kernel_table_alias(
	struct kernel_table *t, uint32_t pid, uint64_t function, uint64_t other, wall_time at);

/* kernel_table_symbol - an answer to kernel_table_ask; ignored where a name is known. */
void kernel_table_symbol(struct kernel_table *t, uint32_t pid, uint64_t function,
	enum kernel_origin origin, const char *name);

/* kernel_table_find - the name of @function; NULL: not known. Valid until the table changes. */
const char *kernel_table_find(const struct kernel_table *t, uint32_t pid, uint64_t function);

/* kernel_table_count - until @at, @function was counted @total times, each standing for @weight / 2 launches. */
void kernel_table_count(struct kernel_table *t, uint32_t pid, uint64_t function, wall_time at,
	uint64_t total, uint64_t weight, kernel_table_ask *ask, void *arg);

/* kernel_table_flush - hands on what has changed since the last time. */
void kernel_table_flush(struct kernel_table *t, kernel_table_sink *sink, void *arg);

/* kernel_table_gone - forget process @pid, after a flush. */
void kernel_table_gone(struct kernel_table *t, uint32_t pid);

/* kernel_table_renew - everything that was launched is handed on again: the store is a new one. */
void kernel_table_renew(struct kernel_table *t);

uint64_t kernel_table_dropped(
	const struct kernel_table *t); /* beyond the ceiling, or a process's share */
