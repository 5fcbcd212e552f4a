/* SPDX-License-Identifier: Apache-2.0 */
/* stapsdt.h - static probes of an ELF file (USDT): places that its authors marked, listed in its
 * section .note.stapsdt. */
#pragma once

#include "record/discover/elfsym.h"

struct stapsdt_probe {
	uint64_t offset;    /* of its instruction, in the file */
	uint64_t semaphore; /* file offset of the counter that switches the place on; 0: none */
};

/* stapsdt_find - the places of probe @provider:@name. Returns how many, at most @max; 0 if there
 * are none; -EBADMSG if the notes are damaged, or of pread(2). */
int stapsdt_find(struct elfsym *e, const char *provider, const char *name,
	struct stapsdt_probe *ret, size_t max);

/* What a note says; texts point into it. */
struct stapsdt_note {
	uint64_t address, base, semaphore;
	const char *provider, *name;
};

/* stapsdt_next - the note at *@at of the section's @data; *@at is then behind it. Notes of others
 * are passed over. 1: there is one; 0: no more; -EBADMSG. */
int stapsdt_next(const void *data, size_t len, size_t *at, struct stapsdt_note *ret);
