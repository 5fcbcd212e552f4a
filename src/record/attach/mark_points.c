/* SPDX-License-Identifier: Apache-2.0 */
/* mark_points.c - see mark_points.h. A place may have several points: overloads of a function, a
 * static probe in code that was inlined twice. */
#include "record/attach/mark_points.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/discover/stapsdt.h"

#define POINTS_OF_PLACE    8
#define ANY_POINTS_OF_PASS 64

static int symbol_points(
	struct elfsym *elf, const struct mark_place *place, struct uprobe_point *out)
{
	uint64_t offsets[POINTS_OF_PLACE];
	uint32_t patterns[POINTS_OF_PLACE];
	int n = elfsym_search(elf, &place->symbol, 1, offsets, patterns, POINTS_OF_PLACE);

	for (int i = 0; i < n; i++)
		out[i] = (struct uprobe_point){
			.offset = offsets[i], .cookie = place->hook, .at_return = place->at_return};
	return n;
}

static int note_points(struct elfsym *elf, const struct mark_place *place, struct uprobe_point *out)
{
	struct stapsdt_probe probes[POINTS_OF_PLACE];
	const char *colon = strchr(place->note, ':');
	char provider[32];
	int n;

	snprintf(provider, sizeof(provider), "%.*s", (int)(colon - place->note), place->note);
	n = stapsdt_find(elf, provider, colon + 1, probes, POINTS_OF_PLACE);
	for (int i = 0; i < n; i++)
		out[i] = (struct uprobe_point){.offset = probes[i].offset,
			.cookie = place->hook,
			.semaphore = probes[i].semaphore};
	return n;
}

/* All places of a set; 0 if one is missing. */
static int set_points(struct elfsym *elf, const struct mark_place *set, struct uprobe_point *out)
{
	int count = 0;

	for (; set->hook; set++) {
		int n = set->note ? note_points(elf, set, out + count)
				  : symbol_points(elf, set, out + count);

		if (n <= 0)
			return n;
		count += n;
		if (count + POINTS_OF_PLACE > UPROBE_POINTS_MAX)
			return -EBADMSG;
	}
	return count;
}

/* Those of @any that are there, a batch of patterns in one pass over the symbols. */
static int any_points(struct elfsym *elf, const struct mark_place *any, struct uprobe_point *out)
{
	int count = 0;

	while (any->hook) {
		const char *symbols[ELFSYM_PATTERNS_MAX];
		uint64_t offsets[ANY_POINTS_OF_PASS];
		uint32_t patterns[ANY_POINTS_OF_PASS];
		size_t size = 0;
		int n;

		/* a place found once is found for one pattern: entry and return come apart */
		for (; any[size].hook && size < ELFSYM_PATTERNS_MAX; size++)
			if (size && any[size].at_return != any[0].at_return)
				break;
			else
				symbols[size] = any[size].symbol;
		n = elfsym_search(elf, symbols, size, offsets, patterns,
			MIN(ANY_POINTS_OF_PASS, UPROBE_POINTS_MAX - count));
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			out[count++] = (struct uprobe_point){.offset = offsets[i],
				.cookie = any[patterns[i]].hook | (uint64_t)any[patterns[i]].detail
									  << 8,
				.at_return = any[patterns[i]].at_return};
		any += size;
	}
	return count;
}

int mark_points(struct elfsym *elf, const struct mark_library *lib,
	struct uprobe_point points[UPROBE_POINTS_MAX])
{
	int n = 0;

	if (lib->any)
		return any_points(elf, lib->any, points);
	for (size_t i = 0; n == 0 && lib->sets[i]; i++)
		n = set_points(elf, lib->sets[i], points);
	return n;
}
