/* SPDX-License-Identifier: Apache-2.0 */
/* part.c - the table of part.h, and what is missing of it. */
#include "record/probe/part.h"

#include <stdio.h>

const struct probe_part_row probe_parts[PART_COUNT] = {
#define X(id, ...) [PART_##id] = {__VA_ARGS__},
	PROBE_PARTS(X)
#undef X
};

void part_miss(struct parts_missing *m, enum probe_part part, const char *why)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->rows[i].part == part)
			return;
	m->rows[m->count].part = part;
	snprintf(m->rows[m->count].why, sizeof(m->rows[m->count].why), "%s", why);
	m->count++;
}
