/* SPDX-License-Identifier: Apache-2.0 */
/* elfsym.h - functions of an ELF library by name, as offsets in the file, which is what a uprobe
 * wants. Reads only: the file is foreign and may be anything.
 *
 * 64-bit little-endian objects; symbols from .dynsym first, then .symtab; symbol versions are
 * ignored (the first definition wins); indirect functions (IFUNC) are skipped because their address
 * is that of a resolver. Objects whose section headers were stripped have no symbols here. */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"

#define ELFSYM_NAME_MAX     255 /* longest name that can be looked up */
#define ELFSYM_PATTERNS_MAX 16

struct elfsym;

/* elfsym_open - check the headers of @path. On success *ret is the caller's (elfsym_close()).
 * -EBADMSG if it is not such an object or its headers lead out of the file; else of open(2). */
int elfsym_open(const char *path, struct elfsym **ret, struct errinfo *reterr);

/* elfsym_open_fd - as elfsym_open(); @fd becomes the reader's on success. */
int elfsym_open_fd(int fd, struct elfsym **ret, struct errinfo *reterr);
DECLARE_FREE(struct elfsym, elfsym_close)

/* elfsym_offsets - looks @count names up in one pass over each symbol table.
 * ret_offsets[i] is the file offset of names[i], 0 if there is no such function. Memory does not
 * grow with the file. Returns how many were found; -EBADMSG (damaged tables), -EINVAL (an empty or
 * too long name), -ENOMEM or of pread(2), and then ret_offsets is untouched. */
int elfsym_offsets(struct elfsym *e, const char *const *names, size_t count, uint64_t *ret_offsets);

/* elfsym_offset - one name; -ENOENT if there is no such function. */
int elfsym_offset(struct elfsym *e, const char *name, uint64_t *ret_offset);

/* elfsym_sizes - as elfsym_offsets(), the sizes in bytes: those of exported functions, or of all in
 * .symtab. 0 also for a function without one: assembled, like the stubs that only lead to another
 * library's function of their name. */
int elfsym_sizes(struct elfsym *e, const char *const *names, size_t count, bool exported,
	uint64_t *ret_sizes);

/* elfsym_mentions - is @name among the names of exported and imported symbols? 1 or 0; errors as
 * elfsym_offsets(). Reads the names alone, which are some kilobytes of most files. */
int elfsym_mentions(struct elfsym *e, const char *name);

/* elfsym_names_bytes - how large the names of .symtab are; 0: the file was stripped. */
uint64_t elfsym_names_bytes(const struct elfsym *e);

/* elfsym_is_program - is it started, rather than loaded by others? */
bool elfsym_is_program(const struct elfsym *e);

/* elfsym_search - functions by a part of their names. A pattern that ends in * stands for every
 * exported function that begins with the rest of it, with ** for one that is not exported, too; any other for the function of that name and
 * the copies of it that compilers make (name.isra.0), exported or not.
 * ret_found[i] is the file offset of one match and ret_pattern[i] its pattern's number; a place is
 * found once. Returns how many, at most @max; errors as elfsym_offsets(). */
int elfsym_search(struct elfsym *e, const char *const *patterns, size_t count,
	uint64_t *ret_offsets, uint32_t *ret_patterns, size_t max);

/* elfsym_linked - what the dynamic linker is told: the folders of DT_RPATH and DT_RUNPATH (as they are written,
 * with colons between) to @folders, the names of DT_NEEDED, each with a NUL behind it, to @names.
 * -ENOENT if it is linked statically; -EBADMSG; of pread(2). */
struct buf;
int elfsym_linked(struct elfsym *e, struct buf *folders, struct buf *names);

/* elfsym_read - @len bytes of the file at @offset; -EBADMSG past its end. */
int elfsym_read(struct elfsym *e, uint64_t offset, void *out, size_t len);

unsigned elfsym_machine(const struct elfsym *e); /* EM_X86_64, EM_AARCH64, … */

/* ---- static probes of an ELF file (USDT): places that its authors marked, listed in its
 * section .note.stapsdt. */

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
