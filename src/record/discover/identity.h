/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - whom a process works for, read from the process itself.
 *
 * To add a launcher or a batch system: a row in the tables of identity.c. */
#pragma once

#include "base/errinfo.h"
#include "model/identity.h"

/* identity_read - the process's name and identity; ret->seen is left 0.
 * -ESRCH if it is gone, or was replaced by another of the same number while it was read; -ENOMEM.
 * What may not be read is unknown and, for the environment, marked so. */
int identity_read(const char *root, uint32_t pid, struct process *ret);

/* identity_node_check - can @name be a node's name? -EINVAL with the sentence if not: it must not
 * be empty, longer than 253 bytes, or hold a colon (ids of events read node:seq) or a byte that
 * acts on a terminal. */
int identity_node_check(const char *name, struct errinfo *reterr);

/* The few wanted variables of another process's environment. */

#define VARIABLES_MAX       64
#define VARIABLE_VALUE_MAX  256       /* bytes; a longer one is none of those we want */
#define VARIABLES_BYTES_MAX (1 << 20) /* of an environment that are read */

struct variables {
	const char *const *keys;
	size_t count;
	bool found[VARIABLES_MAX];
	char values[VARIABLES_MAX][VARIABLE_VALUE_MAX];
	bool cut;   /* the environment is longer than VARIABLES_BYTES_MAX */
	bool whole; /* it was read to its end, and not until the process ended */
};

/* variables_read - look for @keys (at most VARIABLES_MAX, which must outlive *ret) in the
 * environment @pid was started with. The first of two equal keys counts, as for getenv(3).
 * -ESRCH if the process is gone; -EACCES if its environment may not be read; else of read(2). */
int variables_read(const char *root, uint32_t pid, const char *const *keys, size_t count,
	struct variables *ret);

/* variables_get - the value of @key; NULL if it is not set. */
const char *variables_get(const struct variables *v, const char *key);

/* Container, pod and ECS task of a process, by the name of its control group. */

struct cgroup {
	char path[TARGET_PATH_MAX];        /* the last part of it if it is longer */
	char cpu_path[TARGET_PATH_MAX];    /* likewise where version 1 limits CPUs; "": the root */
	char memory_path[TARGET_PATH_MAX]; /* likewise memory */
	char container_id[IDENTITY_CONTAINER_MAX];
	char pod_uid[IDENTITY_UID_MAX];
	char ecs_task[IDENTITY_JOB_MAX];
	bool in_pod;
};

/* cgroup_parse - from the text of /proc/PID/cgroup, of either version. Of several lines the one
 * that names a container counts, else that of version 1 by which CPUs are limited, else that of version 2, else the longest
 * path. The root says nothing. */
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
