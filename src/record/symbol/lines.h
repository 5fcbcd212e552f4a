/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - source files, lines and inlined functions of an address, from DWARF through libdw.
 *
 * libdw reads the file in its own way and may be brought down by one that was made to do so: that
 * costs the symbol process (child.h). */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

struct lines_frame {
	const char *linkage;  /* the linker's name; NULL: not known */
	const char *function; /* as the source has it; NULL: not known, or there is the other */
	const char *file;     /* as the compiler wrote it; NULL: not known */
	uint32_t line;        /* 0: not known */
};

struct lines;

/* lines_new - from @debug_fd (-1: none) if there is any DWARF in it, else from @fd. Both must
 * outlive it. -ENOENT if neither has any; -ENOMEM. */
int lines_new(int fd, int debug_fd, struct lines **ret);
void lines_free(struct lines *l);
DEFINE_CLEANUP(struct lines *, lines_free)

/* lines_at - the frames at @vaddr, innermost first; if there are more than @max, those in the
 * middle are left out, so that the last is always the function itself. Texts are valid until the
 * next call. *ret_start is the function's first address, 0 if it is not known. Returns their
 * number. */
int lines_at(
	struct lines *l, uint64_t vaddr, struct lines_frame *out, size_t max, uint64_t *ret_start);
