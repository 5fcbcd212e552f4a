/* SPDX-License-Identifier: Apache-2.0 */
/* eh_frame.h - the records of .eh_frame: one entry per function (FDE), each with the record of what
 * it shares with others (CIE).
 *
 * Versions 1, 3 and 4; augmentations of z, R, P, L, S, B and G. An entry whose address is relative
 * to something only a running process knows is refused. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/symbol/image.h"
#include "wire/stack.h"

/* Reading numbers from foreign bytes, front to back.
 *
 * A read that would leave the bytes marks the cursor bad, and then every read gives 0: a caller
 * reads a whole record and asks once. Little-endian. Each byte is read once, so what was checked is
 * what is used even if the bytes change meanwhile. */

/* How a pointer in .eh_frame is written: the low four bits are its format, the next three what it
 * is relative to. */
enum eh_pointer {
	EH_ABSOLUTE = 0x00,
	EH_ULEB = 0x01,
	EH_UDATA2 = 0x02,
	EH_UDATA4 = 0x03,
	EH_UDATA8 = 0x04,
	EH_SLEB = 0x09,
	EH_SDATA2 = 0x0a,
	EH_SDATA4 = 0x0b,
	EH_SDATA8 = 0x0c,
	EH_FORMAT = 0x0f,
	EH_PC_RELATIVE = 0x10,
	EH_DATA_RELATIVE = 0x30,
	EH_ALIGNED = 0x50, /* absolute, at the next multiple of 8 */
	EH_BASE = 0x70,
	EH_INDIRECT = 0x80, /* the value is the address of the pointer */
	EH_OMITTED = 0xff,
};

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct cursor cursor_of(const uint8_t *data, uint64_t size)
{
	/* no bytes may be nowhere: nothing is added to NULL */
	return (struct cursor){.at = data, .end = size ? data + size : data};
}

static inline uint64_t cursor_left(const struct cursor *c)
{
	return (uint64_t)(c->end - c->at);
}

uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);

/* LEB128; a number of more than 64 bits is bad. */
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);

/* cursor_block - the next @size bytes as a cursor of their own, which is bad if there are fewer. */
struct cursor cursor_block(struct cursor *c, uint64_t size);

/* cursor_pointer - an address. @vaddr is that of the next byte, @data_base what EH_DATA_RELATIVE
 * counts from. Other bases, and a pointer to a pointer, are bad: what they lead to is only known in
 * a running process. */
uint64_t cursor_pointer(
	struct cursor *c, uint8_t encoding, uint64_t vaddr, const uint64_t *data_base);

#define EH_FRAME_CIE_MAX                                                                           \
	512 /* bytes; real ones have 20 to 40. Each entry has its CIE read anew.                   \
	     */

struct eh_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t encoding; /* of addresses: enum eh_pointer */
	bool sized;       /* entries say how much augmentation data they have */
	bool is_signal;
	struct cursor program; /* what is so at the start of every function */
};

struct eh_entry {
	uint64_t start, size; /* virtual addresses; they do not wrap, and size is not 0 */
	struct cursor program;
	struct eh_cie cie;
};

struct eh_frame {
	struct image_range section;
	uint64_t next; /* offset of the next record */
};

struct eh_frame eh_frame_of(const struct image_range *section);

/* eh_frame_next - 1 and the offset of the next entry's record; 0 behind the last; -EBADMSG if a
 * record leads out of the section, and then there is no further one. */
int eh_frame_next(struct eh_frame *f, uint64_t *ret_record);

/* eh_frame_entry - read the entry at @record, an offset from eh_frame_next(). -EBADMSG if it, or
 * the CIE it names, makes no sense. */
int eh_frame_entry(const struct eh_frame *f, uint64_t record, struct eh_entry *ret);

/* eh_frame_address - an address as the entry's CIE encodes it, read from one of its cursors. */
uint64_t eh_frame_address(const struct eh_frame *f, const struct eh_cie *cie, struct cursor *c);

/* The program of an entry in .eh_frame (DW_CFA_…), run row by row.
 *
 * A row is a stretch of code in which the caller's registers are found by one rule. The rule is
 * given in the form the kernel half walks by; what that form cannot say is UNWIND_CFA_NONE. Only
 * the stack pointer, the frame pointer and the return address are followed. Pure. */

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
