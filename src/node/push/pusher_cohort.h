/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_cohort.h - names of control groups and of the nodes that are compared with each other. */
#pragma once

#include "push/push.h"

/* pusher_group_hash - the first 16 digits of the SHA-256 of a control group's path: the same for the
 * same path, on every node. "" for "". */
void pusher_group_hash(const char *path, char ret[PUSH_HASH_MAX]);

/* pusher_cohort_hash - of what the node works on: the job if its launcher has said one, else the control
 * group of the workload without what is different for each pod, container and run (long hexadecimal
 * numbers, UUIDs, numbers). The kind of work is part of it. Nodes of one job thus have one cohort,
 * however their pods are called; "" if nothing is known. */
void pusher_cohort_hash(
	const char *workload, const char *job, const char *cgroup, char ret[PUSH_HASH_MAX]);
