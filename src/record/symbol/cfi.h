/* SPDX-License-Identifier: Apache-2.0 */
/* cfi.h - the program of an entry in .eh_frame (DW_CFA_…), run row by row.
 *
 * A row is a stretch of code in which the caller's registers are found by one rule. The rule is
 * given in the form the kernel half walks by; what that form cannot say is UNWIND_CFA_NONE. Only
 * the stack pointer, the frame pointer and the return address are followed. Pure. */
#pragma once

#include "record/symbol/eh_frame.h"
#include "wire/stack.h"

#define CFI_REMEMBER_MAX 8 /* states; compilers nest one */

enum cfi_tracked { CFI_SP, CFI_FP, CFI_RA, CFI_TRACKED };

struct cfi_register {
	uint8_t kind; /* enum cfi_kind */
	int64_t offset;
};

struct cfi_state {
	uint8_t cfa; /* enum cfi_cfa */
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct cfi_register at[CFI_TRACKED];
};

struct cfi {
	const struct eh_frame *frame;
	const struct eh_entry *entry;
	const struct cfi_machine *machine;
	struct cursor program;
	uint64_t address; /* start of the row in the making */
	uint64_t next;    /* where the program went on to */
	bool in_cie, done;
	struct cfi_state state, initial;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
	unsigned depth;
};

struct cfi_row {
	uint64_t start, end; /* virtual addresses */
	struct unwind_rule rule;
};

/* cfi_begin - @f and @e must outlive the run. @machine: EM_X86_64 or EM_AARCH64. -EBADMSG if what
 * the CIE says makes no sense. */
int cfi_begin(struct cfi *c, unsigned machine, const struct eh_frame *f, const struct eh_entry *e);

/* cfi_next - 1 and the next row; rows follow each other without gaps over the whole entry. 0 behind
 * the last. -EBADMSG if the program makes no sense. */
int cfi_next(struct cfi *c, struct cfi_row *ret);
