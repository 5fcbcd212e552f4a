/* SPDX-License-Identifier: Apache-2.0 */
/* group_folder.h - in which folder the files of a control group can be read.
 *
 * /proc/PID/cgroup names a group as seen from the reader's cgroup namespace, and a container with
 * one of its own sees, at /sys/fs/cgroup, its own group and nothing beside it: there the name says
 * "/../4f1c…" and leads nowhere. What is the same from everywhere is the group's number, which in cgroup v2 is
 * its folder's inode. A group of v1 has none, but its name and that of what is mounted, which is its own group in a
 * container, are seen from the same place. */
#pragma once

#include <limits.h>

#include "base/macros.h"
#include "model/sample.h"

struct group_folder {
	char path[PATH_MAX];
	size_t top; /* length of what of it is the mount: groups end there, on the way up */
};

struct group_asked {
	uint64_t id;
	uint32_t pid;     /* a process in it */
	const char *path; /* as /proc/PID/cgroup names it; in v2 tried first, and may be wrong */
	const char *controller; /* of v1: "cpu", "memory"; id is no folder's. NULL: v2 */
};

struct group_folders;

/* group_folders_new - @root is a prefix as in base/file.h. -ENOMEM. */
int group_folders_new(const char *root, struct group_folders **ret);
void group_folders_free(struct group_folders *f);

/* group_folders_find - below this process's own mount of the groups, below that of process 1 (the
 * machine's, where processes are not hidden), below that of the group's process. What was found is
 * remembered, and what was not is looked for again after a while only.
 * NULL: it cannot be seen from here, or there is no memory. Valid until the next call. */
const struct group_folder *group_folders_find(
	struct group_folders *f, const struct group_asked *asked);

/* Readings of a control group: of v2, or of v1's hierarchies for CPUs, which has their quota and nothing else, and for memory. */

#define CONTAINER_GROUPS_MAX 64 /* read in a second; 20 files each */

/* container_read - the group whose files are in @folder, and what it is allowed of memory in @memory, of v1; NULL: there is none. @root is a prefix, "" for the real one. A limit may sit on a group above it: quota and throttling are those of the tightest
 * quota on the way up, memory and its events those of the lowest limit; without any they are of the
 * innermost group that tells.
 * 0; -ENOENT if the group is gone, or it is of another hierarchy of v1. */
int container_read(const char *root, const struct group_folder *folder,
	const struct group_folder *memory, uint64_t cgroup_id, wall_time now,
	struct container_sample *ret);
