/* SPDX-License-Identifier: Apache-2.0 */
/* published.h - copies of the published agent's databases for tests.
 *
 * They are found in $INGERO_SHARED/data, else in ../shared/data beside the source tree. */
#pragma once

#include "../unit/store_fixture.h"

/* A copy of @name, 0444 in the scratch folder, which is made 0555. */
static _unused_ void copy_of(struct scratch *s, const char *name)
{
	const char *shared = getenv("INGERO_SHARED"), *root = getenv("INGERO_SOURCE_ROOT");
	char source[512];
	size_t len;
	char *data;

	if (shared && *shared)
		snprintf(source, sizeof(source), "%s/data/%s", shared, name);
	else
		snprintf(source, sizeof(source), "%s/../shared/data/%s", root ? root : ".", name);
	if (access(source, R_OK) < 0) {
		print_message("# skip: published databases are not here: set INGERO_SHARED "
			      "(looked for %s)\n",
			source);
		skip();
	}
	data = scratch_bytes(source, &len);
	chmod(s->folder, 0755);
	scratch_write(s->path, data, len);
	free(data);
	assert_int_equal(chmod(s->path, 0444), 0);
	assert_int_equal(chmod(s->folder, 0555), 0);
}
