/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - small file trees in a temporary directory, for code that reads under a root prefix. */
#pragma once

#include <assert.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_MAX 256

static inline void tree_init(char root[TREE_MAX])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, TREE_MAX, "%s/ingero-test.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root))
		abort();
}

static inline void tree_make_parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0755);
		*p = '/';
	}
}

static inline void tree_write_len(const char *root, const char *path, const void *data, size_t len)
{
	char full[4096];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	tree_make_parents(full);
	f = fopen(full, "w");
	if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0)
		abort();
}

static inline void tree_write(const char *root, const char *path, const char *text)
{
	tree_write_len(root, path, text, strlen(text));
}

static inline void tree_link(const char *root, const char *path, const char *target)
{
	char full[4096];

	snprintf(full, sizeof(full), "%s%s", root, path);
	tree_make_parents(full);
	if (symlink(target, full) < 0)
		abort();
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

static inline void tree_done(char root[TREE_MAX])
{
	nftw(root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
