/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - unwind tables in the kernel: rules shared by all files, rows in chunks, a ceiling. */
#pragma once

#include "record/probe/stack/stack.h"
#include "record/symbol/symbol.h"

#define STACK_TABLES_BYTES (64u << 20)

struct stack_tables;

int stack_tables_new(struct probe *p, struct stack_tables **ret);
void stack_tables_free(struct stack_tables *t);
DEFINE_CLEANUP(struct stack_tables *, stack_tables_free)

struct stack_table {
	uint16_t pool; /* 0: none */
	uint32_t base; /* its first chunk there */
	uint32_t chunks;
	uint32_t indexes; /* see struct stack_mapping */
};

/* stack_tables_add - hand a table to the kernel. -ENOSPC: it would exceed the ceiling of bytes or
 * tables; -ENODATA: it is empty; or of the kernel. */
int stack_tables_add(
	struct stack_tables *t, const struct symbol_unwind *u, struct stack_table *ret);

/* stack_tables_drop - no mapping that the kernel knows refers to it any more. */
void stack_tables_drop(struct stack_tables *t, const struct stack_table *table);

uint64_t stack_tables_bytes(const struct stack_tables *t);

/* stack_chunks - @u as chunks, with rules[u->rule[i]] in place of its own; for the test too. *ret
 * is the caller's (free()). Returns their number. */
int stack_chunks(const struct symbol_unwind *u, const uint16_t *rules, struct unwind_chunk **ret,
	uint32_t *ret_indexes);
