/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - whom a traced process works for: its place in a distributed job, the job, the
 * container and the pod. Read by record/discover from the process itself, never from the agent.
 *
 * All texts came from a traced process or its container runtime: whoever prints them escapes. An
 * unknown text is "". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/event.h"
#include "model/script.h"
#include "model/target.h"

#define IDENTITY_JOB_MAX       128
#define IDENTITY_CONTAINER_MAX 80  /* 64 hexadecimal digits; ECS on Fargate: 32 and a number */
#define IDENTITY_UID_MAX       40  /* a UUID */
#define IDENTITY_NAME_MAX      254 /* a DNS name, RFC 1123 */

struct identity {
	struct placement place;
	const char *launcher;       /* who said so: "torchrun", "slurm", …; never freed; or "" */
	char job[IDENTITY_JOB_MAX]; /* "slurm:4711", "ecs:TASK", … */
	char container_id[IDENTITY_CONTAINER_MAX];
	char pod_uid[IDENTITY_UID_MAX]; /* with dashes, whatever the cgroup's name has */
	char pod[IDENTITY_NAME_MAX];
	char namespace[IDENTITY_NAME_MAX];
	char cgroup_path[TARGET_PATH_MAX]; /* as the agent sees it; its end if longer */
	char exe[TARGET_PATH_MAX];
	bool environ_unreadable; /* so that rank and job are not known */
	bool environ_cut;        /* longer than what is read: rank and job may be missing */
};

struct process { /* a row of `processes` */
	uint32_t pid;
	uint64_t start_ticks;
	wall_time seen;
	char comm[COMM_LEN];
	char script[SCRIPT_MAX]; /* that an interpreter runs; "": it is none, or not known */
	uint32_t cpus;           /* that its first thread may run on; 0: not known */
	struct identity identity;
};

struct process_home { /* of a row of `processes`: who it is and where it lives */
	uint32_t pid;
	char comm[COMM_LEN];
	char script[SCRIPT_MAX]; /* as in struct process */
	uint32_t cpus;           /* likewise */
	int32_t rank;            /* in the job; -1: not known */
	char container_id[IDENTITY_CONTAINER_MAX];
	char pod[64];          /* cut */
	char cgroup_path[128]; /* its end if longer */
};

struct cgroup_row { /* a row of `cgroup_metadata` */
	uint64_t id;
	char container_id[IDENTITY_CONTAINER_MAX];
	char path[TARGET_PATH_MAX];
	char pod[IDENTITY_NAME_MAX];
	char namespace[IDENTITY_NAME_MAX];
};
