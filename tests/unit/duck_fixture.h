/* SPDX-License-Identifier: Apache-2.0 */
/* duck_fixture.h - the library of DuckDB for tests: where tools/duckdb has put it, in the build folder that
 * this program lies in. To be called before the library is loaded; children inherit it. */
#pragma once

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duck/duck.h"

static inline void duck_fixture_find(void)
{
	char path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *tests;

	path[n > 0 ? n : 0] = 0;
	tests = strstr(path, "/tests/unit/");
	if (!tests)
		return;
	strcpy(tests, "/duckdb/libduckdb.so");
	if (access(path, R_OK) == 0)
		(void)setenv("INGERO_DUCKDB_LIB", path, 0);
}

/* duck_fixture_has - if not, the test says why and is skipped. */
static inline bool duck_fixture_has(void)
{
	struct errinfo e = {0};
	int r;

	duck_fixture_find();
	r = duck_load(&e);
	if (r < 0)
		fprintf(stderr, "skipped: %s\n", e.text);
	return r == 0;
}
