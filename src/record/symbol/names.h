/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - functions, files and lines of one ELF file.
 *
 * Names come from our own sorted table of .symtab and .dynsym (and of the separate debug file, if
 * one is given); file, line and inlined functions from DWARF through libdw, if there is any. Names
 * are demangled (C++, Rust). Built at the first question; used in the symbol process only. */
#pragma once

#include <elfutils/libdw.h>

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
DECLARE_FREE(struct names, names_close)

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
DECLARE_FREE(struct texts, texts_free)

/* Both take @len bytes at @s and return NULL when the ceiling is reached or memory is out. Results
 * are at most NAMES_TEXT_MAX - 1 bytes long, cut with "…". */
const char *texts_keep(struct texts *t, const char *s, size_t len);
const char *texts_demangled(struct texts *t, const char *mangled, size_t len);

/* Names of generated code, from the /tmp/perf-PID.map that JIT compilers write.
 *
 * Lines "START SIZE NAME", START and SIZE in hexadecimal. Later lines win where they overlap
 * earlier ones; bad lines are skipped and counted. The file is foreign and bounded. */

#define PERFMAP_BYTES_MAX (64u << 20)

struct perfmap;

/* perfmap_read - all of @fd, which stays the caller's; a file longer than PERFMAP_BYTES_MAX is read
 * up to there. */
int perfmap_read(int fd, struct perfmap **ret);
DECLARE_FREE(struct perfmap, perfmap_free)

/* perfmap_at - the name of the code at @address; NULL if there is none. Valid until free. */
const char *perfmap_at(const struct perfmap *p, uint64_t address, uint64_t *ret_from_start);
size_t perfmap_count(const struct perfmap *p);
size_t perfmap_bad_lines(const struct perfmap *p);

/* The functions of one ELF file by address, from .symtab and .dynsym of the file and of
 * its separate debug file.
 *
 * Of several names of one address one is kept: global before local before weak, then the one with
 * fewer underscores in front. */

#define SYMTAB_FUNCTIONS_MAX (8u << 20) /* symbols beyond are left out; 16 bytes each */

struct symtab_function {
	uint64_t vaddr;
	const char *name; /* in the file, without a NUL: see name_len */
	size_t name_len;  /* at least 1; a version ("@@V_1.2") is not part of it */
};

struct symtab;

/* symtab_new - @image and @debug (NULL: none) must outlive it. -ENOMEM. */
int symtab_new(const struct image *image, const struct image *debug, struct symtab **ret);
DECLARE_FREE(struct symtab, symtab_free)

/* symtab_at - the function that holds @vaddr: one whose size says so, or one without a size that no
 * other follows before @vaddr. False if there is none. */
bool symtab_at(const struct symtab *t, uint64_t vaddr, struct symtab_function *ret);

/* symtab_find - a symbol by its name, data included. Goes through all of them. -ENOENT. */
int symtab_find(const struct symtab *t, const char *name, uint64_t *ret_vaddr, uint64_t *ret_size);

size_t symtab_count(const struct symtab *t); /* functions */

/* Source files, lines and inlined functions of an address, from DWARF through libdw.
 *
 * libdw reads the file in its own way and may be brought down by one that was made to do so: that
 * costs the symbol process (child.h). */

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
DECLARE_FREE(struct lines, lines_free)

/* lines_at - the frames at @vaddr, innermost first; if there are more than @max, those in the
 * middle are left out, so that the last is always the function itself. Texts are valid until the
 * next call. *ret_start is the function's first address, 0 if it is not known. Returns their
 * number. */
int lines_at(
	struct lines *l, uint64_t vaddr, struct lines_frame *out, size_t max, uint64_t *ret_start);
