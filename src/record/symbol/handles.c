/* SPDX-License-Identifier: Apache-2.0 */
/* handles.c - see handles.h. Symbols and names are foreign: each is measured before it is used. */
#include "record/symbol/handles.h"

#include <ctype.h>
#include <elf.h>

#include "base/search.h"
#include "base/array.h"

#define STUB "__device_stub_"
#define TAIL "E8__handle"

const char *handles_parse(const char *name, size_t len, size_t *ret_len)
{
	const size_t stub = strlen(STUB), tail = strlen(TAIL);
	size_t at = 3, size = 0;

	if (len < tail || memcmp(name + len - tail, TAIL, tail) != 0 || memcmp(name, "_ZZ", 3) != 0)
		return NULL;
	at += name[at] == 'L'; /* a static function */
	for (; at < len && size < len && isdigit((unsigned char)name[at]); at++)
		size = 10 * size + (size_t)(name[at] - '0');
	if (size <= stub || size > len - tail - at || memcmp(name + at, STUB, stub) != 0)
		return NULL;
	*ret_len = size - stub;
	return name + at + stub;
}

typedef bool handle_take(void *arg, uint64_t vaddr, const char *kernel, size_t len);

/* Every variable, until @take is content. */
static void walk(const struct image *i, handle_take *take, void *arg)
{
	struct image_range symbols, strings;

	if (image_section_linked(i, ".symtab", &symbols, &strings) < 0 || !symbols.data ||
		!strings.data)
		return;
	for (uint64_t n = 0; n < symbols.size / sizeof(Elf64_Sym); n++) {
		Elf64_Sym s;
		const char *name, *kernel;
		size_t len;

		memcpy(&s, symbols.data + n * sizeof(s), sizeof(s));
		if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || s.st_size != sizeof(uint64_t) ||
			s.st_shndx == SHN_UNDEF || s.st_name >= strings.size)
			continue;
		name = (const char *)strings.data + s.st_name;
		len = strnlen(name, strings.size - s.st_name);
		kernel = handles_parse(name, len, &len);
		if (kernel && take(arg, s.st_value, kernel, len))
			return;
	}
}

struct list {
	uint64_t *vaddrs;
	size_t count, room;
	int err;
};

static bool take_vaddr(void *arg, uint64_t vaddr, const char *kernel, size_t len)
{
	struct list *l = arg;

	(void)kernel;
	(void)len;
	l->err = ARRAY_RESERVE(l->vaddrs, l->room, l->count + 1, HANDLES_MAX);
	if (l->err < 0)
		return true;
	l->vaddrs[l->count++] = vaddr;
	return false;
}

ORDER(compare, uint64_t, COMPARE(*x, *y))

int handles_list(const struct image *i, uint64_t **ret)
{
	struct list l = {0};
	size_t kept = 0;

	walk(i, take_vaddr, &l);
	if (l.err == -ENOMEM) {
		free(l.vaddrs);
		return -ENOMEM;
	}
	SORT(l.vaddrs, l.count, compare);
	for (size_t n = 0; n < l.count; n++)
		if (!kept || l.vaddrs[n] != l.vaddrs[kept - 1])
			l.vaddrs[kept++] = l.vaddrs[n];
	*ret = l.vaddrs;
	return (int)kept;
}

struct wanted {
	uint64_t vaddr;
	const char *kernel;
	size_t len;
};

static bool take_wanted(void *arg, uint64_t vaddr, const char *kernel, size_t len)
{
	struct wanted *w = arg;

	if (vaddr != w->vaddr)
		return false;
	w->kernel = kernel;
	w->len = len;
	return true;
}

const char *handles_kernel(const struct image *i, uint64_t vaddr, size_t *ret_len)
{
	struct wanted w = {.vaddr = vaddr};

	walk(i, take_wanted, &w);
	*ret_len = w.len;
	return w.kernel;
}
