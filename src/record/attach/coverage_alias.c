/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_alias.c - one file under several device numbers: containers of one image share the files of its layers, and each
 * overlay shows them under a device of its own. Probes stand on the file below: attached once for each overlay, they would
 * fire as often for every call.
 *
 * Which file is below nobody tells; what overlay shows of it does. It is the same one if number, times (that of its making
 * among them), and size are. A file that a container writes to is copied up first: another file, made then, appears under the same
 * name, device and number, while who has mapped the old one goes on with that. Two that were copied up before they were first seen,
 * in one tick of the kernel's clock from the making to the last change, are not told apart. */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "record/attach/coverage_private.h"

static int64_t time_ns(const struct statx_timestamp *t)
{
	return t->tv_sec * (int64_t)NS_PER_S + (int64_t)t->tv_nsec;
}

static bool is_overlay(int fd, unsigned device)
{
	struct statfs fs;

	return !device && fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static void read_stamp(int fd, struct file_stamp *ret)
{
	struct statx st;

	*ret = (struct file_stamp){0};
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		    STATX_INO | STATX_MTIME | STATX_CTIME | STATX_BTIME | STATX_SIZE, &st) < 0)
		return;
	*ret = (struct file_stamp){.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.inode = st.stx_ino,
		.born_ns = st.stx_mask & STATX_BTIME ? time_ns(&st.stx_btime) : 0,
		.changed_ns = time_ns(&st.stx_ctime),
		.modified_ns = time_ns(&st.stx_mtime),
		.size = (int64_t)st.stx_size};
}

void coverage_stamp(int fd, struct file_stamp *ret)
{
	read_stamp(fd, ret);
	ret->is_overlay = is_overlay(fd, major(ret->dev));
}

enum file_change coverage_change(int fd, const struct file_stamp *was)
{
	struct file_stamp now;

	read_stamp(fd, &now);
	if (was->is_overlay && was->born_ns && now.born_ns && now.born_ns != was->born_ns)
		return FILE_COPIED_UP;
	return now.modified_ns != was->modified_ns || now.size != was->size ? FILE_WRITTEN
									    : FILE_AS_IT_WAS;
}

static bool is_same_below(const struct file_stamp *a, const struct file_stamp *b)
{
	return (a->is_overlay || b->is_overlay) && a->born_ns && a->dev != b->dev &&
	       a->inode == b->inode && a->born_ns == b->born_ns && a->changed_ns == b->changed_ns &&
	       a->modified_ns == b->modified_ns && a->size == b->size;
}

int coverage_alias_place(
	const struct coverage *c, const struct file_stamp *s, enum target_library_kind kind)
{
	for (int i = 0; i < COVERAGE_MAX; i++) {
		const struct probed *p = &c->probed[i];

		if (p->used && !p->leaving && !p->is_replaced &&
			library_points_are_alike(c->files[i].library.kind, kind) &&
			is_same_below(&p->stamp, s))
			return i;
	}
	return -1;
}

struct alias *coverage_alias_find(const struct coverage *c, const struct target_library *lib)
{
	for (size_t i = 0; i < ALIASES_MAX; i++) {
		struct alias *a = &c->aliases[i];

		if (a->used && !a->is_past && a->inode == lib->inode && a->dev == lib->dev &&
			library_points_are_alike(c->files[a->at].library.kind, lib->kind))
			return a;
	}
	return NULL;
}

bool coverage_alias_is_past(const struct coverage *c, const struct target_library *lib)
{
	return EXISTS(i, ALIASES_MAX,
		       c->aliases[i].used && c->aliases[i].is_past &&
			       c->aliases[i].inode == lib->inode &&
			       c->aliases[i].dev == lib->dev) ||
	       EXISTS(i, COVERAGE_MAX,
		       c->probed[i].used && coverage_is_hidden(c, i) &&
			       c->files[i].library.inode == lib->inode &&
			       c->files[i].library.dev == lib->dev);
}

static void release(const struct coverage *c, struct alias *a)
{
	if (a->watch >= 0)
		(void)inotify_rm_watch(c->changes, a->watch);
	close(a->fd);
	*a = (struct alias){0};
}

void coverage_alias_release(const struct coverage *c, size_t at)
{
	for (size_t i = 0; i < ALIASES_MAX; i++)
		if (c->aliases[i].used && c->aliases[i].at == at)
			release(c, &c->aliases[i]);
}

/* A place for one more of @owner's; NULL: there is none. Those that nobody maps give theirs up. */
static struct alias *free_alias(const struct coverage *c, uid_t owner)
{
	struct alias *room = NULL, *idle = NULL;
	size_t owned = 0;

	for (size_t i = 0; i < ALIASES_MAX; i++) {
		struct alias *a = &c->aliases[i];

		owned += a->used && a->owner == owner;
		if (!a->used)
			room = a;
		else if (a->mapped < c->scan - (c->scanning ? 1 : 0) &&
			 (!idle || a->mapped < idle->mapped))
			idle = a;
	}
	if (owner && owned >= ALIASES_MAX / 2)
		return NULL;
	if (!room && idle) {
		release(c, idle);
		room = idle;
	}
	return room;
}

int coverage_alias_add(struct coverage *c, size_t at, const struct target_library *lib, int fd,
	uid_t owner, struct errinfo *reterr)
{
	struct alias *a = free_alias(c, owner);

	if (!a) {
		close(fd);
		return errinfo_set(reterr, -ENOBUFS,
			"too many containers share one CUDA library: calls of this process are counted, but it cannot be said that they are");
	}
	*a = (struct alias){.used = true,
		.at = at,
		.dev = lib->dev,
		.inode = lib->inode,
		.fd = fd,
		.watch = coverage_watch(c, fd),
		.owner = owner,
		.mapped = c->scan};
	c->probed[at].mapped = c->scan; /* it may have been idle, and would be given back */
	return 0;
}

bool coverage_alias_drop(struct coverage *c, size_t at)
{
	bool any = false;

	for (size_t i = 0; i < ALIASES_MAX; i++) {
		struct alias *a = &c->aliases[i];

		if (!a->used || a->is_past || a->at != at ||
			coverage_change(a->fd, &c->probed[at].stamp) != FILE_COPIED_UP)
			continue;
		a->is_past = any = true;
	}
	return any;
}

void coverage_replaced(struct coverage *c, size_t at)
{
	struct probed *p = &c->probed[at];

	for (size_t i = 0; i < ALIASES_MAX; i++) {
		struct alias *a = &c->aliases[i], new;

		if (!a->used || a->is_past || a->at != at)
			continue;
		new = *a;
		a->is_past = true;
		a->dev = c->files[at].library.dev;
		a->inode = c->files[at].library.inode;
		a->fd = p->fd;
		a->watch = p->watch;
		p->fd = new.fd;
		p->watch = new.watch;
		p->stamp.dev = new.dev;
		c->files[at].library.dev = new.dev;
		c->files[at].library.inode = new.inode;
		return;
	}
	p->is_replaced = true;
	if (p->point_count && !p->launches)
		log_warning(
			"%s was copied by its container, and launches of processes that use the copy before are no longer seen",
			c->files[at].library.path);
	p->point_count = 0; /* by its name the new file would be probed */
}
