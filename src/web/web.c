/* SPDX-License-Identifier: Apache-2.0 */
/* web.c - see web.h. An entity tag is a hash of the content, made at the first look, so that a
 * browser that has a file asks only whether it is still the same. Any thread may look. */
#include "web/web.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "web/files.h"

#define TAG_BYTES sizeof("\"0123456789abcdef\"")

#define X(symbol, ...) extern const char web_##symbol[], web_##symbol##_end[];
WEB_FILES(X)
#undef X

static const struct {
	const char *path, *type, *begin, *end;
} table[] = {
#define X(symbol, path, file, type) {path, type, web_##symbol, web_##symbol##_end},
	WEB_FILES(X)
#undef X
};

static struct web_file files[ARRAY_SIZE(table)];
static char tags[ARRAY_SIZE(table)][TAG_BYTES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		size_t len = (size_t)(table[i].end - table[i].begin);

		snprintf(tags[i], TAG_BYTES, "\"%016" PRIx64 "\"", hash_bytes(table[i].begin, len));
		files[i] = (struct web_file){
			table[i].path, table[i].type, tags[i], table[i].begin, len};
	}
}

const struct web_file *web_next(const struct web_file *f)
{
	pthread_once(&once, fill);
	if (!f)
		return files;
	return ++f < files + ARRAY_SIZE(files) ? f : NULL;
}

const struct web_file *web_find(const char *path)
{
	const struct web_file *f = NULL;

	if (!strcmp(path, "/index.html"))
		path = "/";
	while ((f = web_next(f)))
		if (!strcmp(f->path, path))
			return f;
	return NULL;
}
