/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - functions, files and lines of one ELF file.
 *
 * Names come from our own sorted table of .symtab and .dynsym (and of the separate debug file, if
 * one is given); file, line and inlined functions from DWARF through libdw, if there is any. Names
 * are demangled (C++, Rust). Built at the first question; used in the symbol process only. */
#pragma once

#include <stddef.h>

#include "base/macros.h"
#include "record/symbol/image.h"

#define NAMES_INLINE_MAX 8   /* frames of one address: the function and what is inlined in it */
#define NAMES_TEXT_MAX   512 /* longer names end in "…" */

struct names_frame {
	const char *function; /* NULL: not known */
	const char *file;     /* base name of the source file; NULL: not known */
	uint32_t line;        /* 0: not known */
	uint64_t from_start;  /* bytes from the function's first one; for the outermost frame */
};

struct names;

/* names_open - @image is that of @fd; it, @fd and @debug_fd (-1: none) must outlive this. A debug
 * file of another build id is not used. -ENOMEM; never fails for what is in the files. */
int names_open(const struct image *image, int fd, int debug_fd, struct names **ret);
void names_close(struct names *n);
DEFINE_CLEANUP(struct names *, names_close)

/* names_at - the frames at file offset @offset, innermost first; at least one if anything is known.
 * @is_return: the address is one that a call returns to, so the line is that of the call before it
 * (offset - 1 is asked). Texts are valid until names_close(). Returns their number, 0 if nothing is
 * known. */
int names_at(
	struct names *n, uint64_t offset, bool is_return, struct names_frame out[NAMES_INLINE_MAX]);

/* names_handle - as names_at(), the kernel whose handle is kept in the variable at @vaddr
 * (handles.h). */
int names_handle(struct names *n, uint64_t vaddr, struct names_frame out[NAMES_INLINE_MAX]);

/* names_symbol - the virtual address and size of the symbol called @name, data included.
 * -ENOENT. */
int names_symbol(struct names *n, const char *name, uint64_t *ret_vaddr, uint64_t *ret_size);

size_t names_count(struct names *n); /* functions with a name */

/* Each text once, and each mangled name demangled once. What is handed out stays until
 * texts_free(). */

#define TEXTS_BYTES_MAX (64u << 20) /* texts and the names they were made from */

struct texts;

int texts_new(struct texts **ret); /* -ENOMEM */
void texts_free(struct texts *t);
DEFINE_CLEANUP(struct texts *, texts_free)

/* Both take @len bytes at @s and return NULL when the ceiling is reached or memory is out. Results
 * are at most NAMES_TEXT_MAX - 1 bytes long, cut with "…". */
const char *texts_keep(struct texts *t, const char *s, size_t len);
const char *texts_demangled(struct texts *t, const char *mangled, size_t len);
