/* SPDX-License-Identifier: Apache-2.0 */
/* duck_load.c - finds libduckdb.so and its functions. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "duck/duck.h"
#include "duck/duck_api.h"

struct duck_api duck_api;

static struct {
	pthread_mutex_t mutex;
	bool tried;
	int result;
	struct errinfo err;
} load = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The folder of this program, with its slash; "" if it cannot be told. */
static void own_folder(char out[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	char *slash;

	out[n > 0 ? n : 0] = 0;
	slash = strrchr(out, '/');
	out[slash ? slash + 1 - out : 0] = 0;
}

static void *open_library(void)
{
	static const char *const beside[] = {
		"libduckdb.so", "duckdb/libduckdb.so", "../lib/ingero/libduckdb.so"};
	const char *named = getenv("INGERO_DUCKDB_LIB");
	char folder[PATH_MAX], path[PATH_MAX + 32];
	void *library = NULL;

	if (named && *named)
		return dlopen(named, RTLD_NOW | RTLD_LOCAL);
	own_folder(folder);
	for (size_t i = 0; !library && *folder && i < ARRAY_SIZE(beside); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, beside[i]);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library ? library : dlopen("libduckdb.so", RTLD_NOW | RTLD_LOCAL);
}

static int load_library(struct errinfo *reterr)
{
	static const struct {
		const char *name;
		size_t offset;
	} rows[] = {
#define X(result, name, arguments) {"duckdb_" #name, offsetof(struct duck_api, name)},
		DUCK_FUNCTIONS(X)
#undef X
	};
	void *library = open_library();

	if (!library)
		return errinfo_set_exit(reterr, EXIT_NO_FEATURE, -ENOENT,
			"libduckdb.so cannot be loaded (%.200s): install the package ingero-duckdb, or name the library in $INGERO_DUCKDB_LIB (`make duckdb` fetches it)",
			dlerror());
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		void *f = dlsym(library, rows[i].name);

		if (!f)
			return errinfo_set_exit(reterr, EXIT_NO_FEATURE, -ENOSYS,
				"libduckdb.so lacks %s: the package ingero-duckdb has one that does not (`make duckdb` fetches it)",
				rows[i].name);
		memcpy((char *)&duck_api + rows[i].offset, &f, sizeof(f));
	}
	return 0;
}

int duck_load(struct errinfo *reterr)
{
	pthread_mutex_lock(&load.mutex);
	if (!load.tried)
		load.result = load_library(&load.err);
	load.tried = true;
	if (load.result < 0 && reterr)
		*reterr = load.err;
	pthread_mutex_unlock(&load.mutex);
	return load.result;
}

const char *duck_version(void)
{
	return duck_api.library_version ? duck_api.library_version() : NULL;
}
