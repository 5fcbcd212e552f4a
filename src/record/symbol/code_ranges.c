/* SPDX-License-Identifier: Apache-2.0 */
/* code_ranges.c - see code_ranges.h. .debug_aranges would give the units without reading any DIE,
 * but only GCC writes it, and in a program of mixed origin it is silent about the rest; so each
 * unit's own DIE is asked, once.
 *
 * Everything here follows numbers in a foreign file: ranges, DIEs and depth have ceilings. */
#include "record/symbol/code_ranges.h"

#include <dwarf.h>
#include <errno.h>

#include "base/array.h"
#include "base/search.h"

#define UNITS_MAX   (1u << 20)
#define DIES_MAX    (16u << 20) /* looked at for one unit's functions */
#define DEPTH_MAX   64
#define PER_DIE_MAX 65536
#define ENCLOSE_MAX 16 /* ranges before an address that may be one around it */

void code_ranges_done(struct code_ranges *c)
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
		qsort(c->ranges, c->count, sizeof(*c->ranges), compare_ranges);
}

const struct code_range *code_ranges_at(const struct code_ranges *c, uint64_t vaddr)
{
	size_t behind = LOWER_BOUND(i, c->count, c->ranges[i].start <= vaddr);

	for (size_t back = 1; back <= ENCLOSE_MAX && back <= behind; back++)
		if (vaddr < c->ranges[behind - back].end)
			return &c->ranges[behind - back];
	return NULL;
}

int code_ranges_units(struct code_ranges *c, Dwarf *dwarf)
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

int code_ranges_functions(struct code_ranges *c, Dwarf_Die *unit)
{
	unsigned dies_left = DIES_MAX;
	int r = functions_below(c, unit, 0, &dies_left);

	code_ranges_settle(c);
	return r == -ENOMEM ? r : 0;
}
