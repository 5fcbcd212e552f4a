/* SPDX-License-Identifier: Apache-2.0 */
/* revision.c - see revision.h. */
#include "mcp/revision.h"

#include <string.h>

#define NO_RESOURCE_OLD (-32002)
#define NO_RESOURCE     (-32602)

const struct revision revisions[] = {
	{"2026-07-28", true, false, true, NO_RESOURCE},
	{"2025-11-25", false, false, true, NO_RESOURCE_OLD},
	{"2025-06-18", false, false, true, NO_RESOURCE_OLD},
	{"2025-03-26", false, true, false, NO_RESOURCE_OLD},
	{NULL, false, false, false, 0},
};

const struct revision *revision_find(const char *name)
{
	for (const struct revision *r = revisions; name && r->name; r++)
		if (!strcmp(r->name, name))
			return r;
	return NULL;
}

const struct revision *revision_agree(const char *asked)
{
	const struct revision *r = revision_find(asked);

	if (r && !r->stateless)
		return r;
	for (r = revisions; r->stateless; r++)
		;
	return r;
}

const struct revision *revision_assumed(void)
{
	return revision_find("2025-03-26");
}

json_t *revision_names(void)
{
	json_t *names = json_array();

	for (const struct revision *r = revisions; r->name; r++)
		json_array_append_new(names, json_string(r->name));
	return names;
}
