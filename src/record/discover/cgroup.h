/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - container, pod and ECS task of a process, by the name of its control group. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errinfo.h"
#include "model/identity.h"

struct cgroup {
	char path[TARGET_PATH_MAX]; /* the last part of it if it is longer */
	char container_id[IDENTITY_CONTAINER_MAX];
	char pod_uid[IDENTITY_UID_MAX];
	char ecs_task[IDENTITY_JOB_MAX];
	bool in_pod;
};

/* cgroup_parse - from the text of /proc/PID/cgroup, of either version. Of several lines the one
 * that names a container counts, else that of version 2, else the longest path. */
void cgroup_parse(const char *text, size_t len, struct cgroup *ret);

/* cgroup_read - of @pid. -ESRCH if it is gone; else of open(2) and read(2). */
int cgroup_read(const char *root, uint32_t pid, struct cgroup *ret);

/* A process and its descendants: what `--pid` means. */

/* family_list - @pid and all its present descendants, @pid first. Returns their number (at most
 * @max), -ESRCH if there is no such process, -ENOMEM. */
int family_list(const char *root, uint32_t pid, uint32_t *ret, size_t max);

/* family_uses_cuda - 0 if @pid or a descendant has a CUDA library mapped. -ESRCH: no such process;
 * -EBADMSG: none of them uses CUDA; -EACCES: it may not be looked at. Each with its sentence. */
int family_uses_cuda(const char *root, uint32_t pid, struct errinfo *reterr);
