/* SPDX-License-Identifier: Apache-2.0 */
/* eh_frame.h - the records of .eh_frame: one entry per function (FDE), each with the record of what
 * it shares with others (CIE).
 *
 * Versions 1, 3 and 4; augmentations of z, R, P, L, S, B and G. An entry whose address is relative
 * to something only a running process knows is refused. Pure. */
#pragma once

#include "record/symbol/cursor.h"
#include "record/symbol/image.h"

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
