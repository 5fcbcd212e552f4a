/* SPDX-License-Identifier: Apache-2.0 */
/* elf_fixture.h - ELF objects and .eh_frame sections put together byte by byte, for tests.
 *
 * The object has three segments whose addresses differ from their file offsets by different
 * amounts: headers, code, and the rest. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"

#define FIXTURE_BASE        0x100000u
#define FIXTURE_TEXT_OFFSET 0x1000u
#define FIXTURE_TEXT        0x211000u   /* address of the code */
#define FIXTURE_REST        0x40000000u /* address of .eh_frame and what follows it */
#define FIXTURE_BSS         0x90000000u

/* ---- bytes that grow ---- */

struct bytes {
	uint8_t *data;
	size_t size, max;
};

static inline void bytes_done(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){0};
}
#define _cleanup_bytes_ _cleanup_(bytes_done)

static _unused_ void put(struct bytes *b, const void *data, size_t size)
{
	if (b->size + size > b->max) {
		b->max = 2 * (b->size + size) + 64;
		b->data = realloc(b->data, b->max);
		assert_non_null(b->data);
	}
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

static _unused_ void put_u8(struct bytes *b, uint8_t v)
{
	put(b, &v, sizeof(v));
}

static _unused_ void put_u32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static _unused_ void put_u64(struct bytes *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static _unused_ void put_uleb(struct bytes *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		put_u8(b, (uint8_t)(v | 0x80));
	put_u8(b, (uint8_t)v);
}

static _unused_ void put_zeros(struct bytes *b, size_t size)
{
	while (size--)
		put_u8(b, 0);
}

static _unused_ void put_padding(struct bytes *b, size_t align)
{
	while (b->size % align)
		put_u8(b, 0);
}

/* ---- records of .eh_frame, which is loaded at FIXTURE_REST ---- */

static _unused_ size_t record_begin(struct bytes *b, uint32_t id)
{
	size_t at = b->size;

	put_u32(b, 0);
	put_u32(b, id);
	return at;
}

static _unused_ void record_end(struct bytes *b, size_t at)
{
	uint32_t length;

	put_padding(b, 4);
	length = (uint32_t)(b->size - at - 4);
	memcpy(b->data + at, &length, sizeof(length));
}

/* What compilers begin with: at a function's entry the CFA is the stack pointer, on x86-64 plus 8,
 * and there the return address is below it. Addresses are relative to themselves, 4 bytes. */
static _unused_ size_t put_cie(struct bytes *b, unsigned machine)
{
	static const uint8_t x86_64[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
	static const uint8_t arm64[] = {1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0};
	size_t at = record_begin(b, 0);

	if (machine == EM_X86_64)
		put(b, x86_64, sizeof(x86_64));
	else
		put(b, arm64, sizeof(arm64));
	record_end(b, at);
	return at;
}

static _unused_ void put_fde(struct bytes *b, size_t cie, uint32_t start, uint32_t size,
	const void *program, size_t program_size)
{
	size_t at = record_begin(b, (uint32_t)(b->size + 4 - cie));

	put_u32(b, start - (FIXTURE_REST + (uint32_t)b->size));
	put_u32(b, size);
	put_u8(b, 0); /* no augmentation data */
	put(b, program, program_size);
	record_end(b, at);
}

/* ---- the object ---- */

enum { /* sections, in order */
	FIXTURE_NULL,
	FIXTURE_SECTION_TEXT,
	FIXTURE_SECTION_EH_FRAME,
	FIXTURE_SECTION_BSS,
	FIXTURE_SECTION_SYMTAB,
	FIXTURE_SECTION_STRTAB,
	FIXTURE_SECTION_BUILD_ID,
	FIXTURE_SECTION_PACKED,
	FIXTURE_SECTION_NAMES,
	FIXTURE_SECTIONS,
};

enum { /* segments, in order */
	FIXTURE_LOAD_HEADERS,
	FIXTURE_LOAD_TEXT,
	FIXTURE_LOAD_REST,
	FIXTURE_EH_FRAME_HDR,
	FIXTURE_NOTE,
	FIXTURE_SEGMENTS,
};

struct fixture {
	struct bytes file;
	Elf64_Ehdr *header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections;
	size_t eh_frame; /* its file offset */
};

static inline void fixture_done(struct fixture *f)
{
	bytes_done(&f->file);
}
#define _cleanup_fixture_ _cleanup_(fixture_done)

static _unused_ void fixture_segment(struct fixture *f, unsigned n, uint32_t type, uint32_t flags,
	uint64_t vaddr, size_t offset, size_t size)
{
	f->segments[n] = (Elf64_Phdr){.p_type = type,
		.p_flags = flags,
		.p_offset = offset,
		.p_vaddr = vaddr,
		.p_filesz = size,
		.p_memsz = size,
		.p_align = 4};
}

static _unused_ void fixture_section(
	struct fixture *f, unsigned n, uint32_t type, uint64_t vaddr, size_t offset, size_t size)
{
	static const char names[] = "\0.text\0.eh_frame\0.bss\0.symtab\0.strtab\0"
				    ".note.gnu.build-id\0.packed\0.shstrtab";
	const char *name = names;

	for (unsigned k = 0; k < n; k++)
		name += strlen(name) + 1;
	if (n == FIXTURE_SECTION_NAMES) {
		offset = f->file.size;
		size = sizeof(names);
	}
	f->sections[n] = (Elf64_Shdr){.sh_name = (uint32_t)(name - names),
		.sh_type = type,
		.sh_flags = vaddr ? SHF_ALLOC : 0,
		.sh_addr = vaddr,
		.sh_offset = offset,
		.sh_size = size};
	if (n == FIXTURE_SECTION_NAMES)
		put(&f->file, names, sizeof(names));
}

/* The tables are pointers into the file: nothing may be put behind it afterwards. */
static _unused_ void fixture_tables(struct fixture *f)
{
	f->header = (Elf64_Ehdr *)f->file.data;
	f->segments = (Elf64_Phdr *)(f->file.data + sizeof(Elf64_Ehdr));
	f->sections = (Elf64_Shdr *)(f->segments + FIXTURE_SEGMENTS);
}

static _unused_ void fixture_make(
	struct fixture *f, unsigned machine, const struct bytes *text, const struct bytes *eh_frame)
{
	static const uint8_t note[] = {4, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xde,
		0xad, 0xbe, 0xef, 1, 2, 3, 4};
	static const char symbols[48] = "symbols", strings[] = "\0strings";
	size_t eh, hdr, notes, syms, strs;
	struct bytes *b = &f->file;

	*f = (struct fixture){0};
	put_zeros(b, FIXTURE_TEXT_OFFSET);
	put(b, text->data, text->size);
	put_padding(b, 8);
	f->eh_frame = eh = b->size;
	put(b, eh_frame->data, eh_frame->size);
	put_u32(b, 0);
	put_padding(b, 8);
	hdr = b->size;
	put(b, "\x01\x1b\xff\xff", 4); /* its own table is left out */
	put_u32(b, (uint32_t)(eh - (hdr + 4)));
	notes = b->size;
	put(b, note, sizeof(note));
	syms = b->size;
	put(b, symbols, sizeof(symbols));
	strs = b->size;
	put(b, strings, sizeof(strings));
	/* room for the names, so that the tables stay where they are */
	put_zeros(b, 256);
	b->size -= 256;
	fixture_tables(f);
	fixture_segment(f, FIXTURE_LOAD_HEADERS, PT_LOAD, PF_R, FIXTURE_BASE, 0, 0x800);
	fixture_segment(f, FIXTURE_LOAD_TEXT, PT_LOAD, PF_R | PF_X, FIXTURE_TEXT,
		FIXTURE_TEXT_OFFSET, text->size);
	fixture_segment(f, FIXTURE_LOAD_REST, PT_LOAD, PF_R, FIXTURE_REST, eh, strs - eh);
	fixture_segment(
		f, FIXTURE_EH_FRAME_HDR, PT_GNU_EH_FRAME, PF_R, FIXTURE_REST + hdr - eh, hdr, 8);
	fixture_segment(
		f, FIXTURE_NOTE, PT_NOTE, PF_R, FIXTURE_REST + notes - eh, notes, sizeof(note));
	fixture_section(f, FIXTURE_SECTION_TEXT, SHT_PROGBITS, FIXTURE_TEXT, FIXTURE_TEXT_OFFSET,
		text->size);
	fixture_section(
		f, FIXTURE_SECTION_EH_FRAME, SHT_PROGBITS, FIXTURE_REST, eh, eh_frame->size + 4);
	fixture_section(f, FIXTURE_SECTION_BSS, SHT_NOBITS, FIXTURE_BSS, 0x7fffffff, 0x1000);
	fixture_section(f, FIXTURE_SECTION_SYMTAB, SHT_SYMTAB, 0, syms, sizeof(symbols));
	f->sections[FIXTURE_SECTION_SYMTAB].sh_link = FIXTURE_SECTION_STRTAB;
	fixture_section(f, FIXTURE_SECTION_STRTAB, SHT_STRTAB, 0, strs, sizeof(strings));
	fixture_section(f, FIXTURE_SECTION_BUILD_ID, SHT_NOTE, FIXTURE_REST + notes - eh, notes,
		sizeof(note));
	fixture_section(f, FIXTURE_SECTION_PACKED, SHT_PROGBITS, 0, strs, sizeof(strings));
	f->sections[FIXTURE_SECTION_PACKED].sh_flags = SHF_COMPRESSED;
	fixture_section(f, FIXTURE_SECTION_NAMES, SHT_STRTAB, 0, 0, 0);
	*f->header = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					  ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = (uint16_t)machine,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = FIXTURE_SEGMENTS,
		.e_shoff = (size_t)((uint8_t *)f->sections - b->data),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = FIXTURE_SECTIONS,
		.e_shstrndx = FIXTURE_SECTION_NAMES};
}

static _unused_ void fixture_strip_sections(struct fixture *f)
{
	f->header->e_shoff = 0;
	f->header->e_shnum = f->header->e_shstrndx = 0;
}
