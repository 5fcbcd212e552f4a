/* SPDX-License-Identifier: Apache-2.0 */
/* symtab.c - see names.h. libdwfl's own look-up goes through all symbols each time (2.8 ms for
 * 107 000 of them), hence this table: sorted once, then searched by halving.
 *
 * Invariants: functions[] ascends by vaddr without duplicates, and each lies in an executable
 * segment. A name is a place in the string tables laid end to end; sources[] says where each
 * begins. The tables stay in the mapped file and are foreign: each name is measured again when it
 * is used. */
#include "record/symbol/names.h"

#include <elf.h>

#include "base/search.h"

#define TEXTS_MAX   16 /* executable segments that are looked at */
#define ENCLOSE_MAX 16 /* functions before an address that may be one around it */
#define VADDR_BITS  56 /* of the sort key; the rest is the name's rank. No process has more. */

/* A function without a size (_init, _fini) does not reach into what stands behind it and is no function of this file:
 * ways to those of others, and constants, which some linkers put into the segment of the code. */
static const char *const OTHER_SECTIONS[] = {".plt", ".plt.got", ".plt.sec", ".iplt", ".rodata",
	".eh_frame_hdr", ".eh_frame", ".gcc_except_table"};

struct function {
	uint64_t vaddr; /* while the table is made: vaddr << 8 | rank */
	uint32_t size;  /* larger ones are cut */
	uint32_t name;
};

struct source {
	struct image_range symbols, strings;
	uint64_t first_name; /* its strings' place among all */
};

struct symtab {
	struct source sources[4];
	size_t source_count;
	struct image_range texts[TEXTS_MAX];
	size_t text_count;
	struct image_range others[ARRAY_SIZE(OTHER_SECTIONS)]; /* size 0: the file has none of it */
	struct function *functions;
	size_t count;
};

void symtab_free(struct symtab *t)
{
	free(t->functions);
	free(t);
}

static uint64_t length_to_last_end(const struct image_range *strings)
{
	const uint8_t *end = memrchr(strings->data, 0, strings->size);

	return end ? (uint64_t)(end - strings->data) + 1 : 0;
}

static void source_add(struct symtab *t, const struct image *image, const char *section)
{
	struct source *s = &t->sources[t->source_count];
	struct source *before = t->source_count > 0 ? s - 1 : NULL;

	if (image_section_linked(image, section, &s->symbols, &s->strings) < 0 ||
		!s->symbols.data || !s->strings.data)
		return;
	/* Every name then ends inside: a table without ends would make each look at it as long as
	 * the table. */
	s->strings.size = length_to_last_end(&s->strings);
	s->first_name = before ? before->first_name + before->strings.size : 0;
	if (s->first_name + s->strings.size > UINT32_MAX)
		return;
	t->source_count++;
}

static size_t symbol_count(const struct source *s)
{
	return s->symbols.size / sizeof(Elf64_Sym);
}

static Elf64_Sym symbol_get(const struct source *s, size_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, s->symbols.data + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

/* The bytes from @at of the strings on; 0 if there is no name. */
static size_t name_room(const struct source *s, uint64_t at, const char **ret)
{
	if (at >= s->strings.size || s->strings.data[at] == 0)
		return 0;
	*ret = (const char *)s->strings.data + at;
	return s->strings.size - at;
}

/* The segment that holds @vaddr; NULL if it is not code. */
static const struct image_range *text_of(const struct symtab *t, uint64_t vaddr)
{
	return FIND(x, t->texts, t->text_count, vaddr >= x->vaddr && vaddr - x->vaddr < x->size);
}

static bool is_other(const struct symtab *t, uint64_t vaddr)
{
	return EXISTS(i, ARRAY_SIZE(t->others),
		vaddr >= t->others[i].vaddr && vaddr - t->others[i].vaddr < t->others[i].size);
}

static bool is_function(const struct symtab *t, const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_value < 1ull << VADDR_BITS && text_of(t, symbol->st_value);
}

/* How much a name is to be shown, 0 the most. One with a size says more about the code. */
static unsigned name_rank(const Elf64_Sym *symbol, const char *name, size_t room)
{
	unsigned binding = ELF64_ST_BIND(symbol->st_info), underscores = 0;
	unsigned class = binding == STB_LOCAL ? 1 : binding == STB_WEAK ? 2 : 0;

	while (underscores < 3 && underscores < room && name[underscores] == '_')
		underscores++;
	/* A mangled name's underscore belongs to it. */
	if (underscores == 1 && room > 1 && (name[1] == 'Z' || name[1] == 'R'))
		underscores = 0;
	return (symbol->st_size == 0) << 4 | class << 2 | underscores;
}

static void functions_add(struct symtab *t, const struct source *s, size_t cap)
{
	for (size_t i = 0; i < symbol_count(s) && t->count < cap; i++) {
		Elf64_Sym symbol = symbol_get(s, i);
		const char *name;
		size_t room = name_room(s, symbol.st_name, &name);

		if (room == 0 || !is_function(t, &symbol))
			continue;
		t->functions[t->count++] = (struct function){
			.vaddr = symbol.st_value << 8 | name_rank(&symbol, name, room),
			.size = (uint32_t)MIN(symbol.st_size, (uint64_t)UINT32_MAX),
			.name = (uint32_t)(s->first_name + symbol.st_name),
		};
	}
}

ORDER(compare_functions, struct function, ASCENDING(vaddr) ?: ASCENDING(name))

/* Sorts, and keeps of each address the name that came first. */
static void functions_settle(struct symtab *t)
{
	size_t kept = 0;

	SORT(t->functions, t->count, compare_functions);
	for (size_t i = 0; i < t->count; i++) {
		struct function f = t->functions[i];

		f.vaddr >>= 8;
		if (kept == 0 || t->functions[kept - 1].vaddr != f.vaddr)
			t->functions[kept++] = f;
	}
	t->count = kept;
}

static int functions_load(struct symtab *t)
{
	struct function *fitted;
	size_t cap = 0;

	for (size_t i = 0; i < t->source_count; i++)
		cap += symbol_count(&t->sources[i]);
	cap = MIN(cap, (size_t)SYMTAB_FUNCTIONS_MAX);
	if (cap == 0)
		return 0;
	t->functions = malloc(cap * sizeof(*t->functions));
	if (!t->functions)
		return -ENOMEM;
	for (size_t i = 0; i < t->source_count; i++)
		functions_add(t, &t->sources[i], cap);
	functions_settle(t);
	fitted = realloc(t->functions, MAX(t->count, (size_t)1) * sizeof(*fitted));
	if (fitted)
		t->functions = fitted;
	return 0;
}

int symtab_new(const struct image *image, const struct image *debug, struct symtab **ret)
{
	_cleanup_(symtab_freep) struct symtab *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	while (t->text_count < TEXTS_MAX &&
		image_text(image, (unsigned)t->text_count, &t->texts[t->text_count]) == 0)
		t->text_count++;
	for (size_t i = 0; i < ARRAY_SIZE(OTHER_SECTIONS); i++)
		image_section(image, OTHER_SECTIONS[i], &t->others[i]);
	source_add(t, image, ".symtab");
	source_add(t, image, ".dynsym");
	if (debug) {
		source_add(t, debug, ".symtab");
		source_add(t, debug, ".dynsym");
	}
	r = functions_load(t);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

static bool holds(const struct symtab *t, size_t index, uint64_t vaddr, bool is_nearest)
{
	const struct function *f = &t->functions[index];
	const struct image_range *text;

	if (f->size > 0)
		return vaddr - f->vaddr < f->size;
	if (!is_nearest)
		return false;
	text = text_of(t, f->vaddr);
	return text && !is_other(t, vaddr) && vaddr - text->vaddr < text->size;
}

static bool function_fill(
	const struct symtab *t, const struct function *f, struct symtab_function *ret)
{
	const struct source *s = &t->sources[t->source_count - 1];
	const char *name, *version;
	size_t len;

	while (f->name < s->first_name)
		s--;
	len = name_room(s, f->name - s->first_name, &name);
	if (len == 0)
		return false;
	len = strnlen(name, len);
	version = memchr(name, '@', len);
	if (version && version > name)
		len = (size_t)(version - name);
	*ret = (struct symtab_function){.vaddr = f->vaddr, .name = name, .name_len = len};
	return true;
}

bool symtab_at(const struct symtab *t, uint64_t vaddr, struct symtab_function *ret)
{
	size_t behind = LOWER_BOUND(i, t->count, t->functions[i].vaddr <= vaddr);

	for (size_t back = 1; back <= ENCLOSE_MAX && back <= behind; back++)
		if (holds(t, behind - back, vaddr, back == 1))
			return function_fill(t, &t->functions[behind - back], ret);
	return false;
}

static bool is_called(const struct source *s, const Elf64_Sym *symbol, const char *name, size_t len)
{
	const char *found;
	size_t room = name_room(s, symbol->st_name, &found);

	if (room <= len || memcmp(found, name, len) != 0)
		return false;
	return found[len] == 0 || (room > len + 1 && memcmp(found + len, "@@", 2) == 0);
}

int symtab_find(const struct symtab *t, const char *name, uint64_t *ret_vaddr, uint64_t *ret_size)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < t->source_count && len > 0; i++) {
		const struct source *s = &t->sources[i];

		for (size_t k = 0; k < symbol_count(s); k++) {
			Elf64_Sym symbol = symbol_get(s, k);
			unsigned type = ELF64_ST_TYPE(symbol.st_info);

			if (symbol.st_shndx == SHN_UNDEF || type == STT_SECTION ||
				type == STT_FILE || type == STT_TLS ||
				!is_called(s, &symbol, name, len))
				continue;
			*ret_vaddr = symbol.st_value;
			*ret_size = symbol.st_size;
			return 0;
		}
	}
	return -ENOENT;
}

size_t symtab_count(const struct symtab *t)
{
	return t->count;
}
