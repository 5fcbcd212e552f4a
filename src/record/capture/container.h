/* SPDX-License-Identifier: Apache-2.0 */
/* container.h - readings of a control group (cgroup v2). */
#pragma once

#include "record/capture/group_folder.h"
#include "model/sample.h"

#define CONTAINER_GROUPS_MAX 64 /* read in a second; 20 files each */

/* container_read - the group whose files are in @folder. @root is a prefix, "" for the real one. A limit may sit on a group above it: quota and throttling are those of the tightest
 * quota on the way up, memory and its events those of the lowest limit; without any they are of the
 * innermost group that tells.
 * 0; -ENOENT if the group is gone, or it is not of cgroup v2. */
int container_read(const char *root, const struct group_folder *folder, uint64_t cgroup_id,
	wall_time now, struct container_sample *ret);
