/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - CUDA libraries in a process's maps, and a path that opens the same file. A path is
 * believed only after stat(2) has shown the mapped (dev, inode): see maps.h. */
#include "agent/discover/discover.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/discover/maps.h"
#include "base/file.h"

#define DELETED " (deleted)"

static const char *const stems[] = {
#define X(NAME, stem) [TARGET_##NAME] = stem,
	TARGET_LIBRARIES(X)
#undef X
};

const char *discover_library_stem(enum target_library_kind kind)
{
	return stems[kind];
}

/* Behind the stem: ".so" and a version, or "-HASH.so" and a version. */
static bool is_library_suffix(const char *p, const char *end)
{
	if (p < end && *p == '-')
		for (p++; p < end && *p != '.'; p++)
			if (!((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f')))
				return false;
	if (end - p < 3 || memcmp(p, ".so", 3) != 0)
		return false;
	for (p += 3; p < end; p++)
		if (*p != '.' && (*p < '0' || *p > '9'))
			return false;
	return true;
}

int discover_library_kind(const char *basename, size_t len, enum target_library_kind *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(stems); i++) {
		size_t n = strlen(stems[i]);

		if (len > n && memcmp(basename, stems[i], n) == 0 &&
			is_library_suffix(basename + n, basename + len)) {
			*ret = (enum target_library_kind)i;
			return 0;
		}
	}
	return -ENOENT;
}

struct library_list {
	struct target_library *rows;
	size_t count, max, dropped;
};

static void add_library(struct library_list *list, const struct target_library *l)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].dev == l->dev && list->rows[i].inode == l->inode)
			return;
	if (list->count < list->max)
		list->rows[list->count++] = *l;
	else
		list->dropped++;
}

static bool take_mapping(void *arg, const struct maps_entry *e)
{
	struct target_library l = {
		.dev = e->dev,
		.inode = e->inode,
		.map_start = e->start,
		.map_end = e->end,
		.deleted = e->deleted,
	};
	const char *base;

	if (!e->executable || !e->inode || !e->path_len)
		return true;
	base = memrchr(e->path, '/', e->path_len);
	if (!base || discover_library_kind(base + 1,
			     (size_t)(e->path + e->path_len - base - 1), &l.kind) < 0)
		return true;
	if (e->path_len < sizeof(l.path))
		memcpy(l.path, e->path, e->path_len);
	add_library(arg, &l);
	return true;
}

int discover_libraries(
	const char *root, uint32_t pid, struct target_library *ret, size_t max, size_t *ret_dropped)
{
	struct library_list list = {.rows = ret, .max = max};
	int r = maps_read(root, pid, take_mapping, &list);

	if (r < 0)
		return r;
	*ret_dropped = list.dropped + (r > 0);
	return (int)list.count;
}

static bool is_same_file(const char *path, const struct target_library *lib)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == lib->dev &&
	       st.st_ino == lib->inode;
}

/* \012 back to a newline; the result is never longer. */
static void unescape_newlines(char *s)
{
	char *to = s;

	while (*s) {
		if (strncmp(s, "\\012", 4) == 0) {
			*to++ = '\n';
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

int discover_library_path(
	const char *root, uint32_t pid, const struct target_library *lib, char *out, size_t size)
{
	char path[PATH_MAX];
	struct stat st;
	int n;

	if (lib->path[0]) {
		n = snprintf(
			path, sizeof(path), "%s/proc/%" PRIu32 "/root%s", root, pid, lib->path);
		if (n < (int)sizeof(path) && is_same_file(path, lib))
			return file_join(out, size, path, "");
		unescape_newlines(path);
		if (n < (int)sizeof(path) && is_same_file(path, lib))
			return file_join(out, size, path, "");
	}
	/* Not compared: on overlay and btrfs maps and stat(2) give different devices for one file.
	 */
	n = snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, root,
		pid, lib->map_start, lib->map_end);
	if (n >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	return file_join(out, size, path, "");
}

int discover_executable(
	const char *root, uint32_t pid, struct target_library *ret, char *out, size_t size)
{
	struct target_library l = {.kind = TARGET_EXECUTABLE};
	char path[PATH_MAX], name[TARGET_PATH_MAX];
	struct stat st;
	ssize_t n;
	int r;

	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/exe", root, pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? -ESRCH : errno == EPERM ? -EACCES : -errno;
	if (!S_ISREG(st.st_mode))
		return -ESRCH;
	l.dev = st.st_dev;
	l.inode = st.st_ino;
	n = readlink(path, name, sizeof(name));
	if (n > 0 && n < (ssize_t)sizeof(name)) {
		name[n] = 0;
		if (n > (ssize_t)strlen(DELETED) && !strcmp(name + n - strlen(DELETED), DELETED)) {
			l.deleted = true;
			name[n - (ssize_t)strlen(DELETED)] = 0;
		}
		memcpy(l.path, name, strlen(name) + 1);
	}
	r = file_join(out, size, path, "");
	if (r < 0)
		return r;
	*ret = l;
	return 0;
}
