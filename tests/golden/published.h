/* SPDX-License-Identifier: Apache-2.0 */
/* published.h - copies of the published agent's databases for tests.
 *
 * They are found in $INGERO_SHARED/data, else in ../shared/data beside the source tree. */
#pragma once

#include "../unit/store_fixture.h"

/* Where @name is; false and a reason on stdout if it is not here. */
static _unused_ bool published_path(char *out, size_t size, const char *name)
{
	const char *shared = getenv("INGERO_SHARED"), *root = getenv("INGERO_SOURCE_ROOT");

	if (shared && *shared)
		snprintf(out, size, "%s/data/%s", shared, name);
	else
		snprintf(out, size, "%s/../shared/data/%s", root ? root : ".", name);
	if (access(out, R_OK) == 0)
		return true;
	print_message("# skip: published databases are not here: set INGERO_SHARED "
		      "(looked for %s)\n",
		out);
	return false;
}

/* A copy of @name, 0444 in the scratch folder, which is made 0555. */
static _unused_ void copy_of(struct scratch *s, const char *name)
{
	char source[512];
	size_t len;
	char *data;

	if (!published_path(source, sizeof(source), name))
		skip();
	data = scratch_bytes(source, &len);
	chmod(s->folder, 0755);
	scratch_write(s->path, data, len);
	free(data);
	assert_int_equal(chmod(s->path, 0444), 0);
	assert_int_equal(chmod(s->folder, 0555), 0);
}
