/* SPDX-License-Identifier: Apache-2.0 */
/* code_ranges.h - which DIE of a DWARF file an address belongs to: compilation units of a file,
 * functions of a unit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "base/macros.h"

#define CODE_RANGES_MAX (4u << 20) /* those beyond are left out; 24 bytes each */

struct code_range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct code_ranges {
	struct code_range *ranges; /* ascending by start once they are settled */
	size_t count, room;
};

void code_ranges_done(struct code_ranges *c);

/* code_ranges_at - the range that holds @vaddr, the innermost if several do; NULL. */
const struct code_range *code_ranges_at(const struct code_ranges *c, uint64_t vaddr);

/* code_ranges_units, code_ranges_functions - fill *c (empty before) with the units of @dwarf, with
 * the functions of @unit. What cannot be read is left out. -ENOMEM. */
int code_ranges_units(struct code_ranges *c, Dwarf *dwarf);
int code_ranges_functions(struct code_ranges *c, Dwarf_Die *unit);
