/* SPDX-License-Identifier: Apache-2.0 */
/* stapsdt.c - see elfsym.h. A note (SystemTap's layout, version 3):
 *
 *   u32 name size 8, u32 size of the rest, u32 type 3, "stapsdt\0"
 *   u64 address of the instruction, u64 base, u64 address of the semaphore or 0
 *   provider\0 name\0 arguments\0, padded to four bytes
 *
 * Addresses were written when the section .stapsdt.base was at `base`; what moved it since (prelink)
 * moved them too. The file is foreign: no size of it is used before it was compared. */
#include "record/discover/elfsym.h"

#include "record/discover/elfsym_private.h"

#define NOTES_MAX   (1u << 20) /* bytes; CPython's are 600 */
#define SECTION_MAX 4096       /* looked through for a name */
#define NOTE_TYPE   3
#define NOTE_OWNER  "stapsdt"

static int read_header(struct elfsym *e, uint64_t index, Elf64_Shdr *ret)
{
	uint64_t at;

	if (__builtin_add_overflow(e->header.e_shoff, index * sizeof(*ret), &at))
		return -EBADMSG;
	return elfsym_read(e, at, ret, sizeof(*ret));
}

/* The section called @name. -ENOENT if there is none. */
static int find_section(struct elfsym *e, const char *name, Elf64_Shdr *ret)
{
	uint64_t count = MIN(e->header.e_shnum, SECTION_MAX), at;
	char text[32];
	Elf64_Shdr names, s;
	int r;

	if (!e->header.e_shoff || e->header.e_shstrndx >= count)
		return -ENOENT;
	r = read_header(e, e->header.e_shstrndx, &names);
	for (uint64_t i = 1; r == 0 && i < count; i++) {
		r = read_header(e, i, &s);
		if (r < 0 || __builtin_add_overflow(names.sh_offset, s.sh_name, &at))
			break;
		/* a name too near to the file's end is none of ours */
		if (s.sh_name >= names.sh_size || elfsym_read(e, at, text, strlen(name) + 1) < 0)
			continue;
		if (memcmp(text, name, strlen(name) + 1) == 0) {
			*ret = s;
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

/* The text at *@at, which ends before @end; NULL if it does not. */
static const char *take_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, 0, (size_t)(end - text));

	if (nul)
		*at = nul + 1;
	return nul ? text : NULL;
}

/* The contents of one note of ours. */
static int parse_note(const char *data, size_t len, struct stapsdt_note *ret)
{
	const char *at = data + 3 * sizeof(uint64_t), *end = data + len;
	struct stapsdt_note n;

	if (len < 3 * sizeof(uint64_t))
		return -EBADMSG;
	memcpy(&n.address, data, sizeof(n.address));
	memcpy(&n.base, data + 8, sizeof(n.base));
	memcpy(&n.semaphore, data + 16, sizeof(n.semaphore));
	n.provider = take_text(&at, end);
	n.name = n.provider ? take_text(&at, end) : NULL;
	if (!n.name)
		return -EBADMSG;
	*ret = n;
	return 1;
}

int stapsdt_next(const void *data, size_t len, size_t *at, struct stapsdt_note *ret)
{
	while (len - *at >= sizeof(Elf64_Nhdr)) {
		const char *p = (const char *)data + *at;
		size_t left = len - *at - sizeof(Elf64_Nhdr), owner, rest;
		Elf64_Nhdr h;

		memcpy(&h, p, sizeof(h));
		p += sizeof(h);
		owner = ((size_t)h.n_namesz + 3) & ~(size_t)3;
		if (owner > left || h.n_descsz > left - owner)
			return -EBADMSG;
		rest = MIN(((size_t)h.n_descsz + 3) & ~(size_t)3, left - owner);
		*at += sizeof(h) + owner + rest;
		if (h.n_type == NOTE_TYPE && h.n_namesz == sizeof(NOTE_OWNER) &&
			memcmp(p, NOTE_OWNER, sizeof(NOTE_OWNER)) == 0)
			return parse_note(p + owner, h.n_descsz, ret);
	}
	return 0;
}

static void add_probe(const struct elfsym *e, const struct stapsdt_note *n, uint64_t moved,
	struct stapsdt_probe *out, size_t *count)
{
	struct stapsdt_probe p = {.offset = elfsym_file_offset(e, n->address + moved, PF_X)};

	if (n->semaphore)
		p.semaphore = elfsym_file_offset(e, n->semaphore + moved, PF_W);
	/* without its counter the place is never reached */
	if (p.offset && (p.semaphore || !n->semaphore))
		out[(*count)++] = p;
}

int stapsdt_find(struct elfsym *e, const char *provider, const char *name,
	struct stapsdt_probe *ret, size_t max)
{
	_cleanup_free_ char *data = NULL;
	Elf64_Shdr notes, base;
	struct stapsdt_note n;
	size_t at = 0, count = 0;
	bool has_base;
	int r = find_section(e, ".note.stapsdt", &notes);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (notes.sh_size > NOTES_MAX)
		return -EBADMSG;
	has_base = find_section(e, ".stapsdt.base", &base) == 0;
	data = malloc(notes.sh_size + 1);
	if (!data)
		return -ENOMEM;
	r = elfsym_read(e, notes.sh_offset, data, notes.sh_size);
	while (r >= 0 && count < max && (r = stapsdt_next(data, notes.sh_size, &at, &n)) > 0)
		if (!strcmp(n.provider, provider) && !strcmp(n.name, name))
			add_probe(e, &n, has_base ? base.sh_addr - n.base : 0, ret, &count);
	return r < 0 ? r : (int)count;
}
