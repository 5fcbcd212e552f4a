/* SPDX-License-Identifier: Apache-2.0 */
/* group_folder.c - see group_folder.h. Runs on the tracer's thread: a search opens as many folders
 * as there are groups, at most FOLDERS_MAX, once for a group.
 *
 * A traced process's own mount is a stranger's file system, which could be one that never answers:
 * it is looked at only where the kernel's list of its mounts says that it is one of control groups. */
#include "record/capture/group_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/idmap.h"

#define MOUNT          "/sys/fs/cgroup"
#define FOLDERS_MAX    8192
#define DEPTH_MAX      16
#define KNOWN_MAX      256
#define MOUNTINFO_MAX  (1 << 20)
#define AGAIN_CALLS    60 /* a call a second */
#define MOUNTINFO_TYPE " - cgroup2 "

struct group_folders {
	char *root;
	struct idmap known; /* struct known by the group's number */
};

struct known {
	struct group_folder folder;
	bool found;
	unsigned calls; /* since it was looked for in vain */
};

struct walk {
	char full[PATH_MAX]; /* with the root prefix */
	size_t prefix;       /* length of that */
	uint64_t id;
	unsigned folders;
};

static void drop_known(struct group_folders *f)
{
	size_t cursor = 0;
	void *k;

	while ((k = idmap_next(&f->known, &cursor, NULL)))
		free(k);
	idmap_done(&f->known);
}

int group_folders_new(const char *root, struct group_folders **ret)
{
	_cleanup_(group_folders_freep) struct group_folders *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->known = IDMAP_INIT(KNOWN_MAX);
	f->root = strdup(root);
	if (!f->root)
		return -ENOMEM;
	*ret = TAKE(f);
	return 0;
}

void group_folders_free(struct group_folders *f)
{
	if (!f)
		return;
	drop_known(f);
	free(f->root);
	free(f);
}

/* The mount point of a line of mountinfo, its fifth word; empty if there is none. */
static void mount_point(const char *line, size_t len, char *out, size_t size)
{
	const char *end = line + len, *p = line;
	const char *space;

	out[0] = 0;
	for (int word = 1; word < 5; word++) {
		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return;
		p++;
	}
	space = memchr(p, ' ', (size_t)(end - p));
	if (space && (size_t)(space - p) < size) {
		memcpy(out, p, (size_t)(space - p));
		out[space - p] = 0;
	}
}

/* Where @process ("self", "1") sees control groups of v2: the last mount at MOUNT or below it that
 * nothing else was mounted over. */
static bool find_mount(const char *root, const char *process, char *out, size_t size)
{
	_cleanup_buf_ struct buf text = BUF_INIT(MOUNTINFO_MAX + 1);
	char path[64], point[PATH_MAX];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
	if (file_read_at(root, path, MOUNTINFO_MAX, &text) < 0)
		return false;
	for (const char *line = buf_str(&text), *end; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		mount_point(line, (size_t)(end - line), point, sizeof(point));
		if (strncmp(point, MOUNT, strlen(MOUNT)) != 0)
			continue;
		if (memmem(line, (size_t)(end - line), MOUNTINFO_TYPE, strlen(MOUNTINFO_TYPE))) {
			found = snprintf(out, size, "%s", point) < (int)size;
			continue;
		}
		if (found && !strncmp(out, point, strlen(point)))
			found = false;
	}
	return found;
}

static bool is_group(const struct walk *w)
{
	struct stat st;

	return stat(w->full, &st) == 0 && S_ISDIR(st.st_mode) && st.st_ino == w->id;
}

/* Looks for the group below w->full, which is its folder if true is returned. */
static bool search(struct walk *w, int depth)
{
	size_t len = strlen(w->full);
	bool found = false;
	struct dirent *e;
	DIR *d;

	if (depth > DEPTH_MAX || ++w->folders > FOLDERS_MAX)
		return false;
	d = opendir(w->full);
	if (!d)
		return false;
	while (!found && (e = readdir(d))) {
		if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
			len + 1 + strlen(e->d_name) >= sizeof(w->full))
			continue;
		snprintf(w->full + len, sizeof(w->full) - len, "/%s", e->d_name);
		found = is_group(w) || search(w, depth + 1);
		if (!found)
			w->full[len] = 0;
	}
	closedir(d);
	return found;
}

/* @mount: of the groups, as a path below the root prefix. */
static bool find_below(
	struct walk *w, const char *mount, const char *told, struct group_folder *ret)
{
	size_t len = strlen(mount);
	bool found = false;

	w->folders = 0;
	if (w->prefix + len + strlen(told) >= sizeof(w->full))
		return false;
	if (told[0] == '/' && told[1] && !strstr(told, "/..")) {
		snprintf(w->full + w->prefix, sizeof(w->full) - w->prefix, "%s%s", mount, told);
		found = is_group(w);
	}
	if (!found) {
		memcpy(w->full + w->prefix, mount, len + 1);
		found = is_group(w) || search(w, 0);
	}
	if (found) {
		snprintf(ret->path, sizeof(ret->path), "%s", w->full + w->prefix);
		ret->top = len;
	}
	return found;
}

static bool look(struct group_folders *f, const struct group_asked *asked, struct group_folder *ret)
{
	struct walk w = {.prefix = strlen(f->root), .id = asked->id};
	char pid[16], mount[PATH_MAX], path[PATH_MAX];
	const char *const others[] = {"1", pid};

	if (w.prefix >= sizeof(w.full))
		return false;
	memcpy(w.full, f->root, w.prefix + 1);
	if (find_mount(f->root, "self", mount, sizeof(mount)) &&
		find_below(&w, mount, asked->path, ret))
		return true;
	snprintf(pid, sizeof(pid), "%" PRIu32, asked->pid);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (find_mount(f->root, others[i], mount, sizeof(mount)) &&
			snprintf(path, sizeof(path), "/proc/%s/root%s", others[i], mount) <
				(int)sizeof(path) &&
			find_below(&w, path, asked->path, ret))
			return true;
	return false;
}

const struct group_folder *group_folders_find(
	struct group_folders *f, const struct group_asked *asked)
{
	struct known *k = idmap_get(&f->known, asked->id);

	if (!k) {
		if (f->known.used >= KNOWN_MAX)
			drop_known(f);
		k = calloc(1, sizeof(*k));
		if (!k || idmap_put(&f->known, asked->id, k) < 0) {
			free(k);
			return NULL;
		}
	} else if (k->found) {
		return &k->folder;
	} else if (++k->calls < AGAIN_CALLS) {
		return NULL;
	}
	k->calls = 0;
	k->found = look(f, asked, &k->folder);
	return k->found ? &k->folder : NULL;
}
