/* SPDX-License-Identifier: Apache-2.0 */
/* symtab.h - the functions of one ELF file by address, from .symtab and .dynsym of the file and of
 * its separate debug file.
 *
 * Of several names of one address one is kept: global before local before weak, then the one with
 * fewer underscores in front. */
#pragma once

#include "record/symbol/image.h"

#define SYMTAB_FUNCTIONS_MAX (8u << 20) /* symbols beyond are left out; 16 bytes each */

struct symtab_function {
	uint64_t vaddr;
	const char *name; /* in the file, without a NUL: see name_len */
	size_t name_len;  /* at least 1; a version ("@@V_1.2") is not part of it */
};

struct symtab;

/* symtab_new - @image and @debug (NULL: none) must outlive it. -ENOMEM. */
int symtab_new(const struct image *image, const struct image *debug, struct symtab **ret);
void symtab_free(struct symtab *t);
DEFINE_CLEANUP(struct symtab *, symtab_free)

/* symtab_at - the function that holds @vaddr: one whose size says so, or one without a size that no
 * other follows before @vaddr. False if there is none. */
bool symtab_at(const struct symtab *t, uint64_t vaddr, struct symtab_function *ret);

/* symtab_find - a symbol by its name, data included. Goes through all of them. -ENOENT. */
int symtab_find(const struct symtab *t, const char *name, uint64_t *ret_vaddr, uint64_t *ret_size);

size_t symtab_count(const struct symtab *t); /* functions */
