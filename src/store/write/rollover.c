/* SPDX-License-Identifier: Apache-2.0 */
/* rollover.c - see rollover.h. Files are deleted by name, so a name must match to the letter, be a
 * plain file in the database's own folder, and is removed relative to that folder's descriptor. */
#include "store/write/rollover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/macros.h"

/* 0 a digit, x a hexadecimal one, the rest stands for itself. */
#define PATTERN   ".00000000T000000.000000000Z-xxxxxxxx.db"
#define FILES_MAX 4096 /* rolled files looked at in one folder */

/* Length of the base name of @path without ".db". */
static size_t stem_of(const char *path, const char **ret_base)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(base);

	*ret_base = base;
	return len > 3 && !strcmp(base + len - 3, ".db") ? len - 3 : len;
}

int rollover_name(const char *path, wall_time now, uint32_t random, char *out, size_t size)
{
	time_t seconds = (time_t)(now.ns / (int64_t)NS_PER_S);
	const char *base;
	size_t stem = stem_of(path, &base);
	char day[32];
	struct tm tm;
	int n;

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y%m%dT%H%M%S", &tm);
	n = snprintf(out, size, "%.*s.%s.%09lldZ-%08x.db", (int)(base - path + (ptrdiff_t)stem),
		path, day, (long long)(now.ns % (int64_t)NS_PER_S), random);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool rollover_is_name(const char *path, const char *name)
{
	const char *base, *want;
	size_t stem = stem_of(path, &base);

	if (strncmp(name, base, stem) != 0)
		return false;
	for (want = PATTERN, name += stem; *want; want++, name++) {
		const char *set = *want == '0'   ? "0123456789"
				  : *want == 'x' ? "0123456789abcdef"
						 : NULL;

		if (!*name || (set ? !strchr(set, *name) : *want != *name))
			return false;
	}
	return !*name;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rolled files in the folder, oldest first. */
static int list_names(DIR *d, const char *path, char **names)
{
	struct dirent *e;
	struct stat st;
	int n = 0;

	while (n < FILES_MAX && (e = readdir(d))) {
		if (!rollover_is_name(path, e->d_name) ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		names[n] = strdup(e->d_name);
		if (!names[n])
			return n;
		n++;
	}
	qsort(names, (size_t)n, sizeof(*names), compare_names);
	return n;
}

static int remove_file(int folder, const char *name, struct errinfo *reterr)
{
	static const char *const suffixes[] = {
		"-wal", "-shm", ""}; /* what a reader may have left */
	char full[NAME_MAX + 8];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(full, sizeof(full), "%s%s", name, suffixes[i]);
		if (unlinkat(folder, full, 0) < 0 && errno != ENOENT) {
			int err = errno;

			return errinfo_set(
				reterr, -err, "cannot delete %s: %s", full, strerror(err));
		}
	}
	return 0;
}

/* The folder of @path, open, and the rolled files in it. */
static int open_folder(
	const char *path, char **names, DIR **ret_folder, int *ret_count, struct errinfo *reterr)
{
	char folder[PATH_MAX];
	const char *base;
	DIR *d;

	(void)stem_of(path, &base);
	snprintf(folder, sizeof(folder), "%.*s", base == path ? 1 : (int)(base - path),
		base == path ? "." : path);
	d = opendir(folder);
	if (!d)
		return errinfo_set(reterr, -errno, "%s: %s", folder, strerror(errno));
	*ret_folder = d;
	*ret_count = list_names(d, path, names);
	return 0;
}

void rollover_list_done(struct rollover_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->paths[i]);
	free(l->paths);
	*l = (struct rollover_list){0};
}

int rollover_list(const char *path, struct rollover_list *ret, struct errinfo *reterr)
{
	_cleanup_free_ char **names = calloc(FILES_MAX, sizeof(*names));
	_cleanup_(rollover_list_done) struct rollover_list l = {0};
	const char *base;
	DIR *d = NULL;
	int n = 0, r = names ? open_folder(path, names, &d, &n, reterr) : -ENOMEM;

	if (r < 0)
		return r;
	closedir(d);
	(void)stem_of(path, &base);
	l.paths = calloc((size_t)MAX(n, 1), sizeof(*l.paths));
	for (int i = 0; i < n; i++) {
		if (r == 0 && (!l.paths || asprintf(&l.paths[l.count], "%.*s%s", (int)(base - path),
						   path, names[i]) < 0))
			r = -ENOMEM;
		l.count += r == 0;
		free(names[i]);
	}
	if (r < 0)
		return r;
	*ret = l;
	l = (struct rollover_list){0};
	return 0;
}

int rollover_trim(const char *path, unsigned keep, struct errinfo *reterr)
{
	_cleanup_free_ char **names = calloc(FILES_MAX, sizeof(*names));
	DIR *d = NULL;
	int n = 0, deleted = 0;
	int r = names ? open_folder(path, names, &d, &n, reterr) : -ENOMEM;

	if (r < 0)
		return r;
	for (int i = 0; i < n; i++) {
		if (r == 0 && (unsigned)(n - i) > keep) {
			r = remove_file(dirfd(d), names[i], reterr);
			deleted += r == 0;
		}
		free(names[i]);
	}
	closedir(d);
	return r < 0 ? r : deleted;
}
