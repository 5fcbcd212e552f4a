/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_table.h - a file's .eh_frame as a flat table that the kernel half can search.
 *
 * Only rows in which a call instruction can lie are kept, because walks start at a function's entry
 * and pass through return addresses: on arm64 that is known exactly, on x86-64 any byte that could
 * begin a call counts as one. That leaves out nearly all prologues and epilogues. Looked up with
 * return address - 1. Pure. */
#pragma once

#include "record/symbol/image.h"
#include "wire/stack.h"

#define UNWIND_TABLE_ROWS_MAX    (8u << 20)
#define UNWIND_TABLE_RULES_MAX   UNWIND_RULES_MAX
#define UNWIND_TABLE_ENTRIES_MAX (2u << 20) /* functions; libcublasLt has 165,751 */

struct unwind_table {
	uint32_t count;
	uint32_t rule_count;       /* rules[0] is UNWIND_CFA_NONE */
	uint32_t *address;         /* file offsets, strictly ascending */
	uint16_t *rule;            /* index into rules */
	struct unwind_rule *rules; /* distinct */
	uint32_t entries;          /* functions described (FDEs) */
	uint32_t skipped;          /* of these, left out because they made no sense */
	uint64_t inexpressible;    /* rows whose rule is UNWIND_CFA_NONE though the file has one */
	bool cut; /* there was more than the ceilings allow; of the rest nothing is known */
};

/* unwind_table_build - of the whole file. *ret is released with unwind_table_done(). An object
 * without unwind information gives an empty table. -ENOMEM; -EBADMSG if .eh_frame leads nowhere. */
int unwind_table_build(const struct image *i, struct unwind_table *ret, struct errinfo *reterr);
void unwind_table_done(struct unwind_table *t);

/* unwind_table_find - the rule at file offset @offset; NULL before the first row. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t offset);

/* Can a call instruction lie in these bytes of code?
 *
 * Exact on arm64, whose instructions are words. On x86-64 instructions are not told apart: any
 * byte that could begin a call counts, so the answer "no" is sure and "yes" is not. Pure. */

/* Code longer than this is said to hold one without being read: such code nearly always does (of
 * libcublasLt's rows, 5 % fewer would be kept without this limit, and 3 % more with one of 64). */
#define CALL_SITE_SCAN_MAX 256

/* call_site_possible - of @machine (EM_X86_64 or EM_AARCH64), whole inside the @size bytes at
 * @code; @vaddr is their address. */
bool call_site_possible(unsigned machine, const uint8_t *code, uint64_t vaddr, uint64_t size);
