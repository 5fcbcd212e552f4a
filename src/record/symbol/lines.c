/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - see names.h. An address leads to its compilation unit and then to its function by
 * sorted ranges (names.h); those of the units are made at the start, those of a unit's
 * functions when it is first asked for. Only the DIEs of the function found are looked at for one
 * answer.
 *
 * libdw keeps what it has read of a unit until the whole file is closed, so the file is closed and
 * opened again when that has become much. Offsets of DIEs stay what they were. */
#include "record/symbol/names.h"

#include <dwarf.h>

#include "base/array.h"
#include "base/idmap.h"
#include "base/search.h"

/* Which DIE of a DWARF file an address belongs to: compilation units of a file,
 * functions of a unit. */

#define CODE_RANGES_MAX (4u << 20) /* those beyond are left out; 24 bytes each */

struct code_range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct code_ranges {
	struct code_range *ranges; /* ascending by start once they are settled */
	size_t count, room;
};

/* .debug_aranges would give the units without reading any DIE,
 * but only GCC writes it, and in a program of mixed origin it is silent about the rest; so each
 * unit's own DIE is asked, once.
 *
 * Everything here follows numbers in a foreign file: ranges, DIEs and depth have ceilings. */

#define UNITS_MAX   (1u << 20)
#define DIES_MAX    (16u << 20) /* looked at for one unit's functions */
#define DEPTH_MAX   64
#define PER_DIE_MAX 65536
#define ENCLOSE_MAX 16 /* ranges before an address that may be one around it */

static void code_ranges_done(struct code_ranges *c)
{
	free(c->ranges);
	*c = (struct code_ranges){0};
}

static int range_add(struct code_ranges *c, uint64_t start, uint64_t end, Dwarf_Off die)
{
	int r = ARRAY_RESERVE(c->ranges, c->room, c->count + 1, CODE_RANGES_MAX);

	if (r < 0)
		return r;
	c->ranges[c->count++] = (struct code_range){.start = start, .end = end, .die = die};
	return 0;
}

/* All ranges of the code of @die. -ENOMEM; -ENOBUFS at the ceiling. */
static int code_ranges_add(struct code_ranges *c, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int r = 0;

	for (unsigned n = 0; n < PER_DIE_MAX && r == 0; n++) {
		at = dwarf_ranges(die, at, &base, &start, &end);
		if (at <= 0)
			break;
		/* Code that the linker threw away is left at 0. */
		if (start != 0 && start < end)
			r = range_add(c, start, end, offset);
	}
	return r;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end); /* the wider first */
}

static void code_ranges_settle(struct code_ranges *c)
{
	if (c->count > 0)
		SORT(c->ranges, c->count, compare_ranges);
}

/* code_ranges_at - the range that holds @vaddr, the innermost if several do; NULL. */
static const struct code_range *code_ranges_at(const struct code_ranges *c, uint64_t vaddr)
{
	size_t behind = LOWER_BOUND(i, c->count, c->ranges[i].start <= vaddr);

	for (size_t back = 1; back <= ENCLOSE_MAX && back <= behind; back++)
		if (vaddr < c->ranges[behind - back].end)
			return &c->ranges[behind - back];
	return NULL;
}

/* code_ranges_units, code_ranges_functions - fill *c (empty before) with the units of @dwarf, with
 * the functions of @unit. What cannot be read is left out. -ENOMEM. */
static int code_ranges_units(struct code_ranges *c, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;

	for (unsigned n = 0; n < UNITS_MAX; n++) {
		int r;

		if (dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, NULL) != 0)
			break;
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		r = code_ranges_add(c, &die);
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			break;
	}
	code_ranges_settle(c);
	return 0;
}

/* Whether functions may stand inside such a DIE: those of local classes stand inside a function. */
static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block: return true;
	default: return false;
	}
}

static int functions_below(
	struct code_ranges *c, Dwarf_Die *parent, unsigned depth, unsigned *dies_left)
{
	Dwarf_Die die;
	int r = 0;

	if (depth == DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return 0;
	do {
		int tag = dwarf_tag(&die);

		if (*dies_left == 0)
			return -ENOBUFS;
		(*dies_left)--;
		if (tag == DW_TAG_subprogram)
			r = code_ranges_add(c, &die);
		if (r == 0 && may_hold_functions(tag))
			r = functions_below(c, &die, depth + 1, dies_left);
	} while (r == 0 && dwarf_siblingof(&die, &die) == 0);
	return r;
}

static int code_ranges_functions(struct code_ranges *c, Dwarf_Die *unit)
{
	unsigned dies_left = DIES_MAX;
	int r = functions_below(c, unit, 0, &dies_left);

	code_ranges_settle(c);
	return r == -ENOMEM ? r : 0;
}

#define UNITS_OPEN_MAX 65536      /* whose functions are kept */
#define KEPT_MAX       (4u << 20) /* rows of line tables and ranges of functions; some 50 bytes each */
#define CHAIN_MAX      64         /* inlined functions in one another */
#define CHILDREN_MAX   (1u << 20) /* DIEs looked at for one answer */

struct lines {
	int fd;
	Dwarf *dwarf;
	struct code_ranges units;
	struct idmap functions; /* offset of a unit's DIE to its struct code_ranges */
	size_t kept;
};

static void functions_free(struct idmap *m)
{
	struct code_ranges *c;
	size_t cursor = 0;

	while ((c = idmap_next(m, &cursor, NULL))) {
		code_ranges_done(c);
		free(c);
	}
	idmap_done(m);
	*m = IDMAP_INIT(UNITS_OPEN_MAX);
}

void lines_free(struct lines *l)
{
	functions_free(&l->functions);
	code_ranges_done(&l->units);
	if (l->dwarf)
		dwarf_end(l->dwarf);
	free(l);
}

/* Takes @fd if it has units with code. */
static int open_file(struct lines *l, int fd)
{
	int r;

	l->dwarf = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL;
	if (!l->dwarf)
		return -ENOENT;
	l->fd = fd;
	r = code_ranges_units(&l->units, l->dwarf);
	if (r == 0 && l->units.count > 0)
		return 0;
	dwarf_end(l->dwarf);
	l->dwarf = NULL;
	code_ranges_done(&l->units);
	return r < 0 ? r : -ENOENT;
}

int lines_new(int fd, int debug_fd, struct lines **ret)
{
	_cleanup_(lines_freep) struct lines *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->functions = IDMAP_INIT(UNITS_OPEN_MAX);
	r = open_file(l, debug_fd);
	if (r == -ENOENT)
		r = open_file(l, fd);
	if (r < 0)
		return r;
	*ret = TAKE(l);
	return 0;
}

/* Lets go of all that was read; the file stays as it is. */
static void reopen(struct lines *l)
{
	functions_free(&l->functions);
	dwarf_end(l->dwarf);
	l->dwarf = dwarf_begin(l->fd, DWARF_C_READ);
	l->kept = 0;
}

/* The functions of @unit, kept for the next time; NULL if they cannot be. Its line table is counted
 * here too, since this is when a unit is first met. */
static const struct code_ranges *unit_functions(struct lines *l, Dwarf_Die *unit)
{
	Dwarf_Off offset = dwarf_dieoffset(unit);
	struct code_ranges *c = idmap_get(&l->functions, offset);
	Dwarf_Lines *table;
	size_t rows = 0;

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	if (code_ranges_functions(c, unit) < 0 || idmap_put(&l->functions, offset, c) < 0) {
		code_ranges_done(c);
		free(c);
		return NULL;
	}
	dwarf_getsrclines(unit, &table, &rows);
	l->kept += rows + c->count;
	return c;
}

/* The inlined functions around @vaddr below @function, outermost first. */
static size_t inlined_chain(Dwarf_Die *function, uint64_t vaddr, Dwarf_Die chain[CHAIN_MAX])
{
	Dwarf_Die scope = *function, child;
	unsigned left = CHILDREN_MAX;
	size_t count = 0;
	bool is_deeper;

	do {
		is_deeper = false;
		if (dwarf_child(&scope, &child) != 0)
			break;
		do {
			int tag = dwarf_tag(&child);

			is_deeper =
				(tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
				dwarf_haspc(&child, vaddr) > 0;
			if (is_deeper && tag == DW_TAG_inlined_subroutine)
				chain[count++] = child;
		} while (!is_deeper && --left > 0 && dwarf_siblingof(&child, &child) == 0);
		scope = child;
	} while (is_deeper && left > 0 && count < CHAIN_MAX);
	return count;
}

static void put_names(Dwarf_Die *die, struct lines_frame *out)
{
	Dwarf_Attribute attribute;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
		dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		out->linkage = dwarf_formstring(&attribute);
	if (!out->linkage)
		out->function = dwarf_diename(die);
}

/* Where @inlined was called from. File 0 is none before DWARF 5. */
static void put_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct lines_frame *out)
{
	Dwarf_Attribute attribute;
	Dwarf_Word line, file;
	Dwarf_Files *files;
	Dwarf_Half version = 0;
	size_t count;

	dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0)
		out->line = line <= UINT32_MAX ? (uint32_t)line : 0;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) == 0 &&
		(file > 0 || version >= 5) && dwarf_getsrcfiles(unit, &files, &count) == 0 &&
		file < count)
		out->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void put_line(Dwarf_Die *unit, uint64_t vaddr, struct lines_frame *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, vaddr);
	int number;

	if (!line)
		return;
	out->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		out->line = (uint32_t)number;
}

/* One frame for each of the chain, from its end, and one for the function. */
static size_t put_frames(
	Dwarf_Die *unit, Dwarf_Die *function, uint64_t vaddr, struct lines_frame *out, size_t max)
{
	Dwarf_Die chain[CHAIN_MAX];
	size_t inlined = inlined_chain(function, vaddr, chain), count = 0;

	for (size_t i = 0; i <= inlined && count < max; i++) {
		if (count == max - 1)
			i = inlined;
		out[count] = (struct lines_frame){0};
		if (i == 0)
			put_line(unit, vaddr, &out[count]);
		else
			put_call(unit, &chain[inlined - i], &out[count]);
		put_names(i < inlined ? &chain[inlined - 1 - i] : function, &out[count]);
		count++;
	}
	return count;
}

int lines_at(
	struct lines *l, uint64_t vaddr, struct lines_frame *out, size_t max, uint64_t *ret_start)
{
	const struct code_range *range = code_ranges_at(&l->units, vaddr);
	const struct code_ranges *functions;
	Dwarf_Die unit, function;
	Dwarf_Addr start;

	if (l->kept > KEPT_MAX)
		reopen(l);
	if (!range || max == 0 || !l->dwarf || !dwarf_offdie(l->dwarf, range->die, &unit))
		return 0;
	*ret_start = 0;
	functions = unit_functions(l, &unit);
	range = functions ? code_ranges_at(functions, vaddr) : NULL;
	if (range && dwarf_offdie(l->dwarf, range->die, &function)) {
		if (dwarf_entrypc(&function, &start) == 0)
			*ret_start = start;
		return (int)put_frames(&unit, &function, vaddr, out, max);
	}
	out[0] = (struct lines_frame){0};
	put_line(&unit, vaddr, &out[0]);
	return out[0].file ? 1 : 0;
}
