/* SPDX-License-Identifier: Apache-2.0 */
/* mark_points.h - where in a file the places of a mark_library are. */
#pragma once

#include "record/attach/uprobe.h"
#include "record/discover/elfsym.h"
#include "record/probe/mark/mark.h"

/* mark_points - the places of the first set of @lib that @elf has completely. Returns their number;
 * 0 if it has none; or a negative errno of reading the file. */
int mark_points(struct elfsym *elf, const struct mark_library *lib,
	struct uprobe_point points[UPROBE_POINTS_MAX]);
