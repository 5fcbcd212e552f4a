/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - an ELF file as read-only memory, every access checked.
 *
 * The file is foreign: it may be corrupt, truncated while it is mapped, or made to hurt. Nothing
 * here trusts a number in it; a caller gets a range that lies inside the file, or an error. Used in
 * the symbol process (child.h), where a file cut short under the mapping (SIGBUS) costs that
 * process and no other. 64-bit little-endian objects of x86-64 and arm64.
 *
 * Addresses inside a file are file offsets everywhere outside this folder; here they are turned to
 * and from the file's own virtual addresses. */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"

#define IMAGE_BUILD_ID_MAX 20 /* bytes that are kept; longer ones are cut */

struct image_range {
	const uint8_t *data; /* NULL: it has no bytes in the file (.bss) */
	uint64_t size;
	uint64_t vaddr; /* 0: it is not loaded */
};

struct image;

/* image_open - map the file of @fd, which stays the caller's. *ret is released with image_close().
 * -EBADMSG if it is not such an object or its headers lead out of the file; -ENOMEM; of mmap(2). */
int image_open(int fd, struct image **ret, struct errinfo *reterr);

/* image_open_memory - the same over @size bytes at @data, which must outlive it. */
int image_open_memory(const void *data, size_t size, struct image **ret, struct errinfo *reterr);
DECLARE_FREE(struct image, image_close)

unsigned image_machine(const struct image *i); /* EM_X86_64 or EM_AARCH64 */
const uint8_t *image_data(const struct image *i, size_t *ret_size);

/* image_section - the section called @name; -ENOENT if there is none (or no section headers).
 * Compressed sections are -EOPNOTSUPP. */
int image_section(const struct image *i, const char *name, struct image_range *ret);

/* image_section_linked - as image_section(), and the section its sh_link names (a symbol table's
 * strings). */
int image_section_linked(const struct image *i, const char *name, struct image_range *ret,
	struct image_range *ret_linked);

/* image_eh_frame - the unwind information: section .eh_frame, else through the segment
 * PT_GNU_EH_FRAME of an object without section headers. -ENOENT if it has none. */
int image_eh_frame(const struct image *i, struct image_range *ret);

/* image_text - executable segment number @n (from 0); -ENOENT behind the last. */
int image_text(const struct image *i, unsigned n, struct image_range *ret);

/* Virtual address to file offset and back, by the loadable segments. -ENOENT if it is in none (or,
 * for an offset, in no part that has bytes in the file). */
int image_offset(const struct image *i, uint64_t vaddr, uint64_t *ret_offset);
int image_vaddr(const struct image *i, uint64_t offset, uint64_t *ret_vaddr);

/* image_entry - where a program begins; 0: it says nothing. */
uint64_t image_entry(const struct image *i);

/* image_load_base - virtual address at which file offset 0 would be loaded, so that a data symbol's
 * address in a process is: address of the mapping of offset 0 + vaddr - this. -ENOENT if no segment
 * holds the file's start. */
int image_load_base(const struct image *i, uint64_t *ret_vaddr);

/* image_build_id - of the note; -ENOENT if there is none. Returns its length in bytes. */
int image_build_id(const struct image *i, uint8_t out[IMAGE_BUILD_ID_MAX]);
