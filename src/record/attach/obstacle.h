/* SPDX-License-Identifier: Apache-2.0 */
/* obstacle.h - which setting of this machine keeps this process from its probes, and what to do about it.
 *
 * Asked only after the kernel has refused something: none of these settings says by itself that it will. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBSTACLE_MAX 320 /* a sentence */

#define CAP_SYS_PTRACE_BIT 19 /* numbers as in capabilities(7) */
#define CAP_SYS_ADMIN_BIT  21
#define CAP_PERFMON_BIT    38
#define CAP_BPF_BIT        39

struct obstacle_view {
	const char *root; /* as in file.h */
	uint64_t caps;    /* that are in effect */
	bool has_seccomp; /* a filter of system calls */
};

/* obstacle_look - what this process has, from /proc below @root. */
void obstacle_look(const char *root, struct obstacle_view *ret);

/* Each writes its sentence, and says whether there is one. */

/* obstacle_to_run - why the verifier refuses programs that read the kernel's memory. */
bool obstacle_to_run(const struct obstacle_view *v, char out[OBSTACLE_MAX]);
/* obstacle_to_load - why no program may be loaded though the capabilities for it are there. */
bool obstacle_to_load(const struct obstacle_view *v, char out[OBSTACLE_MAX]);
/* obstacle_to_sample - why the clock of CPU samples is, though CAP_PERFMON is there. */
bool obstacle_to_sample(const struct obstacle_view *v, char out[OBSTACLE_MAX]);
/* obstacle_to_look - why other processes cannot be inspected though CAP_SYS_PTRACE is there. */
bool obstacle_to_look(const struct obstacle_view *v, char out[OBSTACLE_MAX]);
