/* SPDX-License-Identifier: Apache-2.0 */
/* elfsym.c - see elfsym.h. Hostile input: no offset, size or index of the file is used before it
 * was compared with the file's size or its table's count, and everything is read with pread(2) into
 * buffers of fixed size (a mapping would die of SIGBUS when the file is truncated meanwhile).
 *
 * A lookup has two passes, so that a library of a gigabyte needs no more memory than a small one:
 *   1. the string table, in pieces: where do the wanted names stand? A linker lets one string end
 *      inside another ("cudaFree" in "__cudaFree"), so every string is compared by its tail.
 *   2. the symbol table, in pieces: which function has one of these string offsets as its name? */
#include "record/discover/elfsym_private.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/search.h"
#include "base/buf.h"
#include "base/text.h"

#define SECTIONS_MAX  65536
#define TABLE_MAX     (1ULL << 30) /* bytes of one symbol or string table */
#define HITS_PER_NAME 16           /* places in the string table one name may have on average */
#define PIECE         ELFSYM_PIECE

struct search {
	const char *const *names;
	size_t count;
	uint64_t *found;     /* what is wanted of each function; 0: not found yet */
	uint32_t *same_last; /* next name with the same last byte, +1; 0 ends */
	uint32_t first[256]; /* by last byte, +1 */
	struct elfsym_hit *hits;
	size_t hit_count, hit_max;
};

static bool is_inside(uint64_t offset, uint64_t len, uint64_t size)
{
	return offset <= size && len <= size - offset;
}

int elfsym_read(struct elfsym *e, uint64_t offset, void *out, size_t len)
{
	if (!is_inside(offset, len, e->size))
		return -EBADMSG;
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(e->fd, (char *)out + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) /* it has become shorter */
			return -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

static int read_segments(struct elfsym *e, const Elf64_Ehdr *h)
{
	if (h->e_phnum == 0 || h->e_phnum > ELFSYM_SEGMENTS_MAX ||
		h->e_phentsize != sizeof(Elf64_Phdr))
		return -EBADMSG;
	e->segment_count = h->e_phnum;
	return elfsym_read(e, h->e_phoff, e->segments, h->e_phnum * sizeof(Elf64_Phdr));
}

static int read_section(struct elfsym *e, const Elf64_Ehdr *h, uint64_t index, Elf64_Shdr *ret)
{
	uint64_t at;

	if (__builtin_add_overflow(h->e_shoff, index * sizeof(*ret), &at))
		return -EBADMSG;
	return elfsym_read(e, at, ret, sizeof(*ret));
}

/* The table that section @s describes, with the string table it links to. */
static int read_table(struct elfsym *e, const Elf64_Ehdr *h, uint64_t sections, const Elf64_Shdr *s,
	struct elfsym_table *ret)
{
	Elf64_Shdr strings;
	int r;

	if (s->sh_link >= sections || s->sh_entsize != sizeof(Elf64_Sym))
		return -EBADMSG;
	r = read_section(e, h, s->sh_link, &strings);
	if (r < 0)
		return r;
	if (strings.sh_type != SHT_STRTAB || s->sh_size > TABLE_MAX ||
		strings.sh_size > TABLE_MAX || !is_inside(s->sh_offset, s->sh_size, e->size) ||
		!is_inside(strings.sh_offset, strings.sh_size, e->size))
		return -EBADMSG;
	*ret = (struct elfsym_table){.symbols = s->sh_offset,
		.symbols_size = s->sh_size - s->sh_size % sizeof(Elf64_Sym),
		.strings = strings.sh_offset,
		.strings_size = strings.sh_size};
	return 0;
}

static int read_sections(struct elfsym *e, const Elf64_Ehdr *h)
{
	uint64_t count = h->e_shnum;
	Elf64_Shdr s;
	int r;

	if (h->e_shoff == 0)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr))
		return -EBADMSG;
	if (count == 0) { /* too many for the field: the first section's size has the number */
		r = read_section(e, h, 0, &s);
		if (r < 0)
			return r;
		count = s.sh_size;
	}
	if (count > SECTIONS_MAX)
		return -EBADMSG;
	for (uint64_t i = 1; i < count; i++) {
		r = read_section(e, h, i, &s);
		if (r == 0 && s.sh_type == SHT_DYNSYM && !e->dynamic.symbols_size)
			r = read_table(e, h, count, &s, &e->dynamic);
		else if (r == 0 && s.sh_type == SHT_SYMTAB && !e->full.symbols_size)
			r = read_table(e, h, count, &s, &e->full);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_headers(struct elfsym *e)
{
	Elf64_Ehdr h;
	int r = elfsym_read(e, 0, &h, sizeof(h));

	if (r < 0)
		return r;
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
		h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_ident[EI_VERSION] != EV_CURRENT ||
		(h.e_type != ET_DYN && h.e_type != ET_EXEC))
		return -EBADMSG;
	e->machine = h.e_machine;
	e->header = h;
	r = read_segments(e, &h);
	return r < 0 ? r : read_sections(e, &h);
}

int elfsym_open_fd(int fd, struct elfsym **ret, struct errinfo *reterr)
{
	_cleanup_(elfsym_closep) struct elfsym *e = calloc(1, sizeof(*e));
	struct stat st;
	int r;

	if (!e)
		return -ENOMEM;
	e->fd = -1; /* not ours until all is well */
	if (fstat(fd, &st) < 0)
		return errinfo_set(reterr, -errno, "cannot read the library: %m");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return errinfo_set(reterr, -EBADMSG, "not a library file");
	e->size = (uint64_t)st.st_size;
	e->fd = fd;
	r = read_headers(e);
	if (r < 0) {
		e->fd = -1;
		return errinfo_set(reterr, r, "not a 64-bit little-endian ELF library, or damaged");
	}
	*ret = TAKE(e);
	return 0;
}

int elfsym_open(const char *path, struct elfsym **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct errinfo inner = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;

	text_escape_terminal(&b, path);
	if (fd < 0)
		return errinfo_set(reterr, -errno, "%.300s: %m", buf_str(&b));
	r = elfsym_open_fd(fd, ret, &inner);
	if (r < 0) {
		close(fd);
		return errinfo_set(reterr, r, "%.300s: %.100s", buf_str(&b), inner.text);
	}
	return 0;
}

void elfsym_close(struct elfsym *e)
{
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

unsigned elfsym_machine(const struct elfsym *e)
{
	return e->machine;
}

/* ---- lookup ---- */

static int search_init(struct search *s, const char *const *names, size_t count)
{
	*s = (struct search){.names = names, .count = count, .hit_max = count * HITS_PER_NAME};
	s->found = calloc(count + 1, sizeof(*s->found));
	s->same_last = calloc(count + 1, sizeof(*s->same_last));
	s->hits = calloc(s->hit_max + 1, sizeof(*s->hits));
	if (!s->found || !s->same_last || !s->hits)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(names[i]);
		unsigned char last;

		if (len == 0 || len > ELFSYM_NAME_MAX)
			return -EINVAL;
		last = (unsigned char)names[i][len - 1];
		s->same_last[i] = s->first[last];
		s->first[last] = (uint32_t)i + 1;
	}
	return 0;
}

static void search_done(struct search *s)
{
	free(s->found);
	free(s->same_last);
	free(s->hits);
}

/* @end is a NUL of the string table at offset @at; @before bytes of the table precede it in memory.
 */
static int match_tail(struct search *s, const char *end, size_t before, uint64_t at)
{
	if (before == 0)
		return 0;
	for (uint32_t i = s->first[(unsigned char)end[-1]]; i; i = s->same_last[i - 1]) {
		const char *name = s->names[i - 1];
		size_t len = strlen(name);

		if (s->found[i - 1] || len > before || memcmp(end - len, name, len) != 0)
			continue;
		if (s->hit_count == s->hit_max)
			return -EBADMSG;
		s->hits[s->hit_count++] =
			(struct elfsym_hit){.at = (uint32_t)(at - len), .name = i - 1};
	}
	return 0;
}

/* Pass 1. Each piece is preceded in memory by the end of the one before, one name long. */
static int find_strings(struct elfsym *e, const struct elfsym_table *t, struct search *s)
{
	_cleanup_free_ char *data = malloc(ELFSYM_NAME_MAX + PIECE);
	size_t kept = 0;
	int r;

	if (!data)
		return -ENOMEM;
	s->hit_count = 0;
	for (uint64_t at = 0; at < t->strings_size;) {
		size_t len = (size_t)MIN((uint64_t)PIECE, t->strings_size - at);
		char *p = data + kept, *end = p + len, *nul;

		r = elfsym_read(e, t->strings + at, p, len);
		if (r < 0)
			return r;
		for (; (nul = memchr(p, 0, (size_t)(end - p))); p = nul + 1) {
			size_t before = (size_t)(nul - data);

			r = match_tail(s, nul, before, at + before - kept);
			if (r < 0)
				return r;
		}
		at += len;
		kept = MIN((size_t)(end - data), (size_t)ELFSYM_NAME_MAX);
		memmove(data, end - kept, kept);
	}
	return 0;
}

ORDER(compare_hit, struct elfsym_hit, ASCENDING(at))

uint64_t elfsym_file_offset(const struct elfsym *e, uint64_t address, uint32_t flag)
{
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && p->p_flags & flag && address >= p->p_vaddr &&
			address - p->p_vaddr < p->p_filesz &&
			is_inside(p->p_offset, p->p_filesz, e->size))
			return p->p_offset + (address - p->p_vaddr);
	}
	return 0;
}

static void match_symbol(const struct elfsym *e, const Elf64_Sym *sym,
	const struct elfsym_hit *hits, size_t count, elfsym_take *take, void *arg)
{
	struct elfsym_hit key = {.at = sym->st_name};
	const struct elfsym_hit *hit;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF)
		return;
	hit = bsearch(&key, hits, count, sizeof(key), compare_hit);
	if (!hit)
		return;
	/* the same name may have been asked for twice */
	while (hit > hits && hit[-1].at == key.at)
		hit--;
	for (; hit < hits + count && hit->at == key.at; hit++)
		take(arg, hit->name, elfsym_file_offset(e, sym->st_value, PF_X), sym->st_size);
}

/* Pass 2. */
int elfsym_find(struct elfsym *e, const struct elfsym_table *t, struct elfsym_hit *hits,
	size_t count, elfsym_take *take, void *arg)
{
	_cleanup_free_ Elf64_Sym *symbols = calloc(PIECE / sizeof(*symbols), sizeof(*symbols));
	const uint64_t piece = PIECE - PIECE % sizeof(*symbols);

	if (!symbols)
		return -ENOMEM;
	SORT(hits, count, compare_hit);
	for (uint64_t at = 0; at < t->symbols_size;) {
		size_t len = (size_t)MIN(piece, t->symbols_size - at);
		int r = elfsym_read(e, t->symbols + at, symbols, len);

		if (r < 0)
			return r;
		for (size_t i = 0; i < len / sizeof(*symbols); i++)
			match_symbol(e, &symbols[i], hits, count, take, arg);
		at += len;
	}
	return 0;
}

static void take_offset(void *arg, uint32_t name, uint64_t offset, uint64_t size)
{
	struct search *s = arg;

	s->found[name] = s->found[name] ?: offset;
}

static void take_size(void *arg, uint32_t name, uint64_t offset, uint64_t size)
{
	struct search *s = arg;

	if (!s->found[name] && offset)
		s->found[name] = size;
}

/* What @take finds of @names in @table, and in @next (NULL: none) of those not found there. */
static int look_up(struct elfsym *e, const struct elfsym_table *table,
	const struct elfsym_table *next, const char *const *names, size_t count, elfsym_take *take,
	uint64_t *ret_found)
{
	_cleanup_(search_done) struct search s;
	int r = search_init(&s, names, count), found = 0;

	for (; r == 0 && table; table = next, next = NULL) {
		if (table->symbols_size == 0)
			continue;
		r = find_strings(e, table, &s);
		if (r < 0 || s.hit_count == 0)
			continue;
		r = elfsym_find(e, table, s.hits, s.hit_count, take, &s);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		ret_found[i] = s.found[i];
		found += s.found[i] != 0;
	}
	return found;
}

int elfsym_offsets(struct elfsym *e, const char *const *names, size_t count, uint64_t *ret_offsets)
{
	return look_up(e, &e->dynamic, &e->full, names, count, take_offset, ret_offsets);
}

int elfsym_sizes(struct elfsym *e, const char *const *names, size_t count, bool exported,
	uint64_t *ret_sizes)
{
	return look_up(
		e, exported ? &e->dynamic : &e->full, NULL, names, count, take_size, ret_sizes);
}

int elfsym_mentions(struct elfsym *e, const char *name)
{
	_cleanup_(search_done) struct search s;
	int r = search_init(&s, &name, 1);

	r = r ?: find_strings(e, &e->dynamic, &s);
	return r < 0 ? r : s.hit_count > 0;
}

uint64_t elfsym_names_bytes(const struct elfsym *e)
{
	return e->full.strings_size;
}

bool elfsym_is_program(const struct elfsym *e)
{
	return EXISTS(i, e->segment_count, e->segments[i].p_type == PT_INTERP);
}

int elfsym_offset(struct elfsym *e, const char *name, uint64_t *ret_offset)
{
	uint64_t offset;
	int r = elfsym_offsets(e, &name, 1, &offset);

	if (r < 0)
		return r;
	if (r == 0)
		return -ENOENT;
	*ret_offset = offset;
	return 0;
}
