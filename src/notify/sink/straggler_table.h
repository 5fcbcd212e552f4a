/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_table.h - the nodes that are stragglers now, in the order in which they became that.
 * Of more than the table is made for the longest-standing one leaves, and that is told. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define STRAGGLER_NAME_MAX 256

struct straggler {
	char cluster[STRAGGLER_NAME_MAX], node[STRAGGLER_NAME_MAX];
};

struct straggler_table;

int straggler_table_new(size_t max, struct straggler_table **ret);
void straggler_table_free(struct straggler_table *t);
DEFINE_CLEANUP(struct straggler_table *, straggler_table_free)

/* straggler_table_add - 0; 1 if another one had to leave; -ENOMEM. One that is there stays where it
 * is. */
int straggler_table_add(struct straggler_table *t, const struct straggler *s);
void straggler_table_remove(struct straggler_table *t, const struct straggler *s);

/* straggler_table_next - walks from the oldest on; start with *cursor = NULL. NULL: the end. */
const struct straggler *straggler_table_next(const struct straggler_table *t, const void **cursor);
