/* SPDX-License-Identifier: Apache-2.0 */
/* elfsym_private.h - an open ELF file, shared by the files that look into it: elfsym.c (headers,
 * functions by name), elfsym_search.c (by a part of it), stapsdt.c (static probes). Nobody else
 * includes it. */
#pragma once

#include <elf.h>

#include "record/discover/elfsym.h"

#define ELFSYM_SEGMENTS_MAX 256
#define ELFSYM_PIECE        (64 << 10) /* of a table that is read at a time */

struct elfsym_table {
	uint64_t symbols, symbols_size, strings, strings_size; /* symbols_size 0: absent */
};

struct elfsym {
	int fd;
	uint64_t size;
	unsigned machine;
	Elf64_Ehdr header;
	Elf64_Phdr segments[ELFSYM_SEGMENTS_MAX];
	size_t segment_count;
	struct elfsym_table dynamic, full; /* .dynsym and .symtab */
};

struct elfsym_hit {
	uint32_t at; /* offset in the string table */
	uint32_t name;
};

typedef void elfsym_take(void *arg, uint32_t name, uint64_t offset, uint64_t size);

/* elfsym_find - hands every function of @t that has the string of a hit as its name to @take, with
 * its file offset (0: it has none), its size and the hit's name. Sorts @hits. */
int elfsym_find(struct elfsym *e, const struct elfsym_table *t, struct elfsym_hit *hits,
	size_t count, elfsym_take *take, void *arg);

/* elfsym_file_offset - of an address in a loaded segment that has @flag (PF_X, PF_W); 0 if none has
 * it in the file. */
uint64_t elfsym_file_offset(const struct elfsym *e, uint64_t address, uint32_t flag);
