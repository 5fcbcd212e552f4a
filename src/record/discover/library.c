/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - CUDA libraries in a process's maps, and the file behind each, opened once.
 *
 * A process may exchange names under our hands, so no name is believed and none is looked up
 * twice: whatever opens is compared with the mapping, and the descriptor is what everybody after
 * us works with. On overlay and btrfs stat(2) gives another device than maps shows; there the file
 * is mapped here for a moment, because the kernel then shows it the same way.
 *
 * Nor may it keep us waiting. A file that a user's program delivers is not opened at all (base/file.h), and on the way
 * to a name only folders are looked at that the kernel has in its memory, as it has those of all that is mapped. */
#include "record/discover/discover.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "record/discover/maps.h"
#include "record/python/python.h"
#include "base/file.h"

#define DELETED " (deleted)"

static const char *const stems[] = {
#define X(NAME, stem) [TARGET_##NAME] = stem,
	TARGET_LIBRARIES(X)
#undef X
};

/* Behind the stem: ".so" and a version, which "-HASH" or ".HASH" of a wheel that brings its own copy may precede. */
static bool is_library_suffix(const char *p, const char *end)
{
	const char *hash = p;

	if (hash < end && (*hash == '-' || *hash == '.'))
		do
			hash++;
		while (hash < end &&
			((*hash >= '0' && *hash <= '9') || (*hash >= 'a' && *hash <= 'f')));
	if (end - hash >= 3 && memcmp(hash, ".so", 3) == 0)
		p = hash;
	if (end - p < 3 || memcmp(p, ".so", 3) != 0)
		return false;
	for (p += 3; p < end; p++)
		if (*p != '.' && (*p < '0' || *p > '9'))
			return false;
	return true;
}

static bool is_python(const char *basename, size_t len)
{
	char name[64];

	if (len >= sizeof(name))
		return false;
	memcpy(name, basename, len);
	name[len] = 0;
	return python_is_file(name);
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
	if (!is_python(basename, len))
		return -ENOENT;
	*ret = TARGET_PYTHON;
	return 0;
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
	if (!base || discover_library_kind(
			     base + 1, (size_t)(e->path + e->path_len - base - 1), &l.kind) < 0)
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

bool discover_uses_cuda(const struct target_library *libraries, size_t count)
{
	return EXISTS(i, count, target_kind_is_cuda(libraries[i].kind));
}

/* ---- the file itself ---- */

/* The file that @path leads to from @dir, if it is a regular one. Looked at before it is opened:
 * opening a device or a pipe would do something. @pid: see file_origin(); 0: none. */
static int open_regular(int dir, const char *path, uint64_t resolve, const char *root, uint32_t pid)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
	_cleanup_fd_ int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	char mounts[PATH_MAX];
	struct statx st;
	int r;

	if (fd < 0)
		return -errno;
	snprintf(mounts, sizeof(mounts), "%s/proc/%" PRIu32 "/mountinfo", root, pid);
	r = file_origin(fd, pid ? mounts : NULL, &st);
	if (r < 0)
		return r;
	if (!S_ISREG(st.stx_mode))
		return -ENOENT;
	r = open(FORMATTED(32, "/proc/self/fd/%d", fd), O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return r < 0 ? -errno : r;
}

struct own_mapping {
	uint64_t start;
	bool found;
	uint64_t dev, inode;
};

static bool take_own(void *arg, const struct maps_entry *e)
{
	struct own_mapping *m = arg;

	if (e->start != m->start)
		return true;
	m->found = true;
	m->dev = e->dev;
	m->inode = e->inode;
	return false;
}

int discover_file_identity(int fd, uint64_t *ret_dev, uint64_t *ret_inode)
{
	void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	struct own_mapping m = {.start = (uint64_t)(uintptr_t)page};
	int r;

	if (page == MAP_FAILED)
		return -errno;
	r = maps_read("", (uint32_t)getpid(), take_own, &m);
	munmap(page, 1);
	if (r < 0)
		return r;
	if (!m.found)
		return -ENOENT;
	*ret_dev = m.dev;
	*ret_inode = m.inode;
	return 0;
}

static bool is_mapped_file(int fd, const struct target_library *lib)
{
	uint64_t dev, inode;
	struct stat st;

	return (fstat(fd, &st) == 0 && st.st_dev == lib->dev && st.st_ino == lib->inode) ||
	       (discover_file_identity(fd, &dev, &inode) == 0 && dev == lib->dev &&
		       inode == lib->inode);
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

/* The descriptor @fd if it is @lib's file, else -ESTALE; an error stays what it is. */
static int keep_if_mapped(int fd, const struct target_library *lib)
{
	if (fd < 0 || is_mapped_file(fd, lib))
		return fd;
	close(fd);
	return -ESTALE;
}

/* By the name that the mapping shows, from the root @root_path. */
static int open_by_name(
	const char *root_path, const struct target_library *lib, const char *root, uint32_t pid)
{
	const uint64_t how = RESOLVE_IN_ROOT | RESOLVE_CACHED;
	_cleanup_fd_ int dir = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[TARGET_PATH_MAX];
	int fd;

	if (dir < 0)
		return -errno;
	memcpy(name, lib->path, sizeof(name));
	fd = keep_if_mapped(open_regular(dir, name, how, root, pid), lib);
	if (fd >= 0)
		return fd;
	unescape_newlines(name);
	return keep_if_mapped(open_regular(dir, name, how, root, pid), lib);
}

int discover_library_open(const char *root, uint32_t pid, const struct target_library *lib)
{
	char path[PATH_MAX];
	int fd, first, own;

	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, root,
		    pid, lib->map_start, lib->map_end) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	first = keep_if_mapped(open_regular(AT_FDCWD, path, 0, root, pid), lib);
	if (first >= 0 || first == -EREMOTE || !lib->path[0])
		return first;
	snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/root", root, pid);
	fd = open_by_name(path, lib, root, pid);
	if (fd >= 0 || file_join(path, sizeof(path), root, "/") < 0)
		return fd;
	own = open_by_name(
		path, lib, root, pid); /* a process that is gone had the same name for it */
	if (own >= 0)
		return own;
	return first == -EPERM || first == -EACCES ? first : fd;
}

static void copy_name(const char *link, struct target_library *l)
{
	char name[TARGET_PATH_MAX];
	ssize_t n = readlink(link, name, sizeof(name));
	size_t tail = strlen(DELETED);

	if (n <= 0 || n >= (ssize_t)sizeof(name))
		return;
	name[n] = 0;
	if ((size_t)n > tail && !strcmp(name + (size_t)n - tail, DELETED)) {
		l->deleted = true;
		name[(size_t)n - tail] = 0;
	}
	memcpy(l->path, name, strlen(name) + 1);
}

int discover_executable_open(const char *root, uint32_t pid, struct target_library *ret)
{
	struct target_library l = {.kind = TARGET_EXECUTABLE};
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/exe", root, pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open_regular(AT_FDCWD, path, 0, root, pid);
	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd == -EPERM ? -EACCES : fd;
	r = discover_file_identity(fd, &l.dev, &l.inode);
	if (r < 0)
		return r;
	copy_name(path, &l);
	*ret = l;
	r = fd;
	fd = -1;
	return r;
}

int discover_file_open(const char *path, struct target_library *lib)
{
	int fd = open_regular(AT_FDCWD, path, 0, "", 0), r;

	if (fd < 0)
		return fd;
	r = discover_file_identity(fd, &lib->dev, &lib->inode);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}
