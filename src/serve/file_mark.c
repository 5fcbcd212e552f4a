/* SPDX-License-Identifier: Apache-2.0 */
/* file_mark.c - see file_mark.h. */
#include "serve/file_mark.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/macros.h"

struct file_mark file_mark(const char *path)
{
	static const char *const suffixes[] = {"", "-wal"};
	struct file_mark m = {{0}};
	char name[4200];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		struct stat st;

		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		if (stat(name, &st) < 0)
			continue;
		m.value[3 * i] = (uint64_t)st.st_ino;
		m.value[3 * i + 1] = (uint64_t)st.st_size;
		m.value[3 * i + 2] =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	}
	return m;
}

bool file_mark_same(const struct file_mark *a, const struct file_mark *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool file_mark_is_of(const struct file_mark *a, const struct file_mark *b)
{
	return a->value[0] && a->value[0] == b->value[0];
}
