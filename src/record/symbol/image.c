// SPDX-License-Identifier: Apache-2.0
/* image.c - see image.h. Headers are copied out of the mapping before they are checked, so that a
 * file which changes under it cannot make a checked number another one.
 *
 * Invariants: every range that is handed out lies inside [data, data + size). Segments that lead
 * out of the file are cut there at open (separate debug files have such ones); sections that do
 * are an error when they are asked for. */
#include "record/symbol/image.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "record/symbol/eh_frame.h"

#define SEGMENTS_MAX 256
#define SECTIONS_MAX 65536

struct image {
	const uint8_t *data;
	size_t size;
	bool mapped; /* data is to be unmapped */
	uint16_t machine;
	uint64_t entry;
	Elf64_Phdr segments[SEGMENTS_MAX]; /* file sizes are cut to the file */
	size_t segment_count;
	uint64_t sections; /* where their headers are; 0: there are none */
	uint64_t section_count;
	struct image_range names; /* of sections */
};

static bool is_inside(uint64_t offset, uint64_t size, uint64_t whole)
{
	return offset <= whole && size <= whole - offset;
}

/* ---- opening ---- */

static int copy_segments(struct image *i, const Elf64_Ehdr *h)
{
	if (h->e_phnum == 0)
		return 0;
	if (h->e_phnum > SEGMENTS_MAX || h->e_phentsize != sizeof(Elf64_Phdr) ||
		!is_inside(h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), i->size))
		return -EBADMSG;
	i->segment_count = h->e_phnum;
	memcpy(i->segments, i->data + h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr));
	for (size_t n = 0; n < i->segment_count; n++) {
		Elf64_Phdr *p = &i->segments[n];

		p->p_filesz = MIN(p->p_filesz, p->p_memsz);
		p->p_filesz = p->p_offset >= i->size ? 0 : MIN(p->p_filesz, i->size - p->p_offset);
		if (p->p_vaddr + p->p_filesz < p->p_vaddr)
			p->p_filesz = 0;
	}
	return 0;
}

static Elf64_Shdr section_header(const struct image *i, uint64_t index)
{
	Elf64_Shdr s;

	memcpy(&s, i->data + i->sections + index * sizeof(s), sizeof(s));
	return s;
}

static int section_range(const struct image *i, const Elf64_Shdr *s, struct image_range *ret)
{
	bool has_bytes = s->sh_type != SHT_NOBITS;

	if (s->sh_flags & SHF_COMPRESSED)
		return -EOPNOTSUPP;
	if (has_bytes && !is_inside(s->sh_offset, s->sh_size, i->size))
		return -EBADMSG;
	*ret = (struct image_range){
		.data = has_bytes ? i->data + s->sh_offset : NULL,
		.size = s->sh_size,
		.vaddr = s->sh_flags & SHF_ALLOC ? s->sh_addr : 0,
	};
	return 0;
}

/* Numbers that are too large for the header's fields stand in section 0. */
static int find_sections(struct image *i, const Elf64_Ehdr *h)
{
	uint64_t names = h->e_shstrndx;
	Elf64_Shdr s;

	if (h->e_shoff == 0)
		return 0;
	if (h->e_shentsize != sizeof(s) || !is_inside(h->e_shoff, sizeof(s), i->size))
		return -EBADMSG;
	i->sections = h->e_shoff;
	s = section_header(i, 0);
	i->section_count = h->e_shnum ? h->e_shnum : s.sh_size;
	if (names == SHN_XINDEX)
		names = s.sh_link;
	if (i->section_count > SECTIONS_MAX ||
		!is_inside(h->e_shoff, i->section_count * sizeof(s), i->size))
		return -EBADMSG;
	if (i->section_count == 0 || names == SHN_UNDEF) {
		i->sections = 0;
		return 0;
	}
	if (names >= i->section_count)
		return -EBADMSG;
	s = section_header(i, names);
	return s.sh_type == SHT_STRTAB ? section_range(i, &s, &i->names) : -EBADMSG;
}

static int read_headers(struct image *i)
{
	Elf64_Ehdr h;
	int r;

	if (i->size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, i->data, sizeof(h));
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
		h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_ident[EI_VERSION] != EV_CURRENT ||
		(h.e_type != ET_DYN && h.e_type != ET_EXEC) ||
		(h.e_machine != EM_X86_64 && h.e_machine != EM_AARCH64))
		return -EBADMSG;
	i->machine = h.e_machine;
	i->entry = h.e_entry;
	r = copy_segments(i, &h);
	return r < 0 ? r : find_sections(i, &h);
}

static int open_bytes(
	const void *data, size_t size, bool mapped, struct image **ret, struct errinfo *reterr)
{
	_cleanup_free_ struct image *i = calloc(1, sizeof(*i));
	int r;

	if (!i)
		return -ENOMEM;
	i->data = data;
	i->size = size;
	i->mapped = mapped;
	r = read_headers(i);
	if (r < 0)
		return errinfo_set(reterr, -EBADMSG,
			"not a 64-bit ELF program or library of x86-64 or arm64, or damaged");
	*ret = TAKE(i);
	return 0;
}

int image_open_memory(const void *data, size_t size, struct image **ret, struct errinfo *reterr)
{
	return open_bytes(data, size, false, ret, reterr);
}

int image_open(int fd, struct image **ret, struct errinfo *reterr)
{
	struct stat st;
	void *data;
	int r;

	if (fstat(fd, &st) < 0)
		return errinfo_set(reterr, -errno, "cannot read the file: %m");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return errinfo_set(reterr, -EBADMSG, "not a file with content");
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return errinfo_set(reterr, -errno, "cannot map the file: %m");
	r = open_bytes(data, (size_t)st.st_size, true, ret, reterr);
	if (r < 0)
		munmap(data, (size_t)st.st_size);
	return r;
}

void image_close(struct image *i)
{
	if (i->mapped)
		munmap((void *)i->data, i->size);
	free(i);
}

unsigned image_machine(const struct image *i)
{
	return i->machine;
}

uint64_t image_entry(const struct image *i)
{
	return i->entry;
}

const uint8_t *image_data(const struct image *i, size_t *ret_size)
{
	*ret_size = i->size;
	return i->data;
}

/* ---- sections ---- */

static bool section_is_called(const struct image *i, const Elf64_Shdr *s, const char *name)
{
	size_t size = strlen(name) + 1;

	return i->names.data && is_inside(s->sh_name, size, i->names.size) &&
	       memcmp(i->names.data + s->sh_name, name, size) == 0;
}

static int find_section(const struct image *i, const char *name, Elf64_Shdr *ret)
{
	for (uint64_t n = 1; i->sections && n < i->section_count; n++) {
		Elf64_Shdr s = section_header(i, n);

		if (s.sh_type != SHT_NULL && section_is_called(i, &s, name)) {
			*ret = s;
			return 0;
		}
	}
	return -ENOENT;
}

int image_section(const struct image *i, const char *name, struct image_range *ret)
{
	Elf64_Shdr s;
	int r = find_section(i, name, &s);

	return r < 0 ? r : section_range(i, &s, ret);
}

int image_section_linked(const struct image *i, const char *name, struct image_range *ret,
	struct image_range *ret_linked)
{
	struct image_range range, linked;
	Elf64_Shdr s, l;
	int r = find_section(i, name, &s);

	if (r < 0)
		return r;
	if (s.sh_link == SHN_UNDEF || s.sh_link >= i->section_count)
		return -EBADMSG;
	l = section_header(i, s.sh_link);
	r = section_range(i, &s, &range);
	r = r ?: section_range(i, &l, &linked);
	if (r < 0)
		return r;
	*ret = range;
	*ret_linked = linked;
	return 0;
}

/* ---- segments ---- */

static struct image_range segment_range(const struct image *i, const Elf64_Phdr *p)
{
	return (struct image_range){
		.data = p->p_filesz ? i->data + p->p_offset : NULL,
		.size = p->p_filesz,
		.vaddr = p->p_vaddr,
	};
}

int image_text(const struct image *i, unsigned n, struct image_range *ret)
{
	for (size_t k = 0; k < i->segment_count; k++) {
		const Elf64_Phdr *p = &i->segments[k];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || p->p_filesz == 0 || n-- > 0)
			continue;
		*ret = segment_range(i, p);
		return 0;
	}
	return -ENOENT;
}

/* The bytes from @vaddr to the end of its loadable segment. */
static int bytes_at(const struct image *i, uint64_t vaddr, struct image_range *ret)
{
	for (size_t k = 0; k < i->segment_count; k++) {
		const Elf64_Phdr *p = &i->segments[k];

		if (p->p_type != PT_LOAD || vaddr < p->p_vaddr || vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		*ret = segment_range(i, p);
		ret->data += vaddr - p->p_vaddr;
		ret->size -= vaddr - p->p_vaddr;
		ret->vaddr = vaddr;
		return 0;
	}
	return -ENOENT;
}

int image_offset(const struct image *i, uint64_t vaddr, uint64_t *ret_offset)
{
	struct image_range range;
	int r = bytes_at(i, vaddr, &range);

	if (r < 0)
		return r;
	*ret_offset = (uint64_t)(range.data - i->data);
	return 0;
}

int image_vaddr(const struct image *i, uint64_t offset, uint64_t *ret_vaddr)
{
	for (size_t k = 0; k < i->segment_count; k++) {
		const Elf64_Phdr *p = &i->segments[k];

		if (p->p_type == PT_LOAD && offset >= p->p_offset &&
			offset - p->p_offset < p->p_filesz) {
			*ret_vaddr = p->p_vaddr + (offset - p->p_offset);
			return 0;
		}
	}
	return -ENOENT;
}

int image_load_base(const struct image *i, uint64_t *ret_vaddr)
{
	return image_vaddr(i, 0, ret_vaddr);
}

/* ---- unwind information ---- */

/* Cuts @range behind the record of length 0, which ends .eh_frame. */
static void cut_at_terminator(struct image_range *range)
{
	struct cursor c = cursor_of(range->data, range->size);

	while (cursor_left(&c)) {
		uint64_t length = cursor_u32(&c);

		if (length == 0)
			break;
		cursor_block(&c, length == UINT32_MAX ? cursor_u64(&c) : length);
	}
	range->size -= cursor_left(&c);
}

/* Through the table that the linker makes for the unwinder at run time: version, three encodings,
 * pointer to .eh_frame. */
static int eh_frame_by_segment(
	const struct image *i, const Elf64_Phdr *header, struct image_range *ret)
{
	struct image_range range = segment_range(i, header);
	struct cursor c = cursor_of(range.data, range.size);
	uint8_t version = cursor_u8(&c), encoding = cursor_u8(&c);
	uint64_t vaddr;

	cursor_u16(&c); /* how its own table is encoded */
	vaddr = cursor_pointer(&c, encoding, header->p_vaddr + 4, &header->p_vaddr);
	if (c.bad || version != 1 || bytes_at(i, vaddr, &range) < 0)
		return -EBADMSG;
	cut_at_terminator(&range);
	*ret = range;
	return 0;
}

int image_eh_frame(const struct image *i, struct image_range *ret)
{
	struct image_range range;
	int r = image_section(i, ".eh_frame", &range);

	if (r == 0 && range.data) {
		*ret = range;
		return 0;
	}
	if (r != -ENOENT)
		return r < 0 ? r : -ENOENT;
	for (size_t k = 0; k < i->segment_count; k++)
		if (i->segments[k].p_type == PT_GNU_EH_FRAME)
			return eh_frame_by_segment(i, &i->segments[k], ret);
	return -ENOENT;
}

/* ---- build id ---- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Notes: sizes of name and content, type; name and content, each padded to @align. */
static int build_id_in(const struct image_range *notes, uint64_t align, uint8_t *out)
{
	struct cursor c;

	if (!notes->data)
		return -ENOENT;
	c = cursor_of(notes->data, notes->size);
	while (cursor_left(&c) >= sizeof(Elf64_Nhdr)) {
		uint32_t name_size = cursor_u32(&c), size = cursor_u32(&c), type = cursor_u32(&c);
		struct cursor name, content;
		bool is_ours;

		/* the last content's padding may be missing */
		name = cursor_block(&c, round_up(name_size, align));
		content = cursor_block(&c, MIN(round_up(size, align), cursor_left(&c)));
		is_ours = type == NT_GNU_BUILD_ID && name_size == sizeof(ELF_NOTE_GNU) &&
			  !name.bad && memcmp(name.at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0;
		if (is_ours && size > 0 && size <= cursor_left(&content)) {
			size = MIN(size, (uint32_t)IMAGE_BUILD_ID_MAX);
			memcpy(out, content.at, size);
			return (int)size;
		}
	}
	return -ENOENT;
}

int image_build_id(const struct image *i, uint8_t out[IMAGE_BUILD_ID_MAX])
{
	struct image_range notes;
	int r = -ENOENT;

	/* The section first: a debug file's segments lead nowhere. */
	if (image_section(i, ".note.gnu.build-id", &notes) == 0)
		r = build_id_in(&notes, 4, out);
	for (size_t k = 0; k < i->segment_count && r < 0; k++) {
		const Elf64_Phdr *p = &i->segments[k];

		notes = segment_range(i, p);
		if (p->p_type == PT_NOTE)
			r = build_id_in(&notes, p->p_align == 8 ? 8 : 4, out);
	}
	return r;
}
