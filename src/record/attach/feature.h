/* SPDX-License-Identifier: Apache-2.0 */
/* feature.h - what this kernel lets this process do, found out by trying.
 *
 * Every function returns 0 if it works; -EOPNOTSUPP if the kernel does not have it; -EPERM if the
 * kernel refused for want of privilege, so that nothing is known; -ENOMEM. Nothing stays behind. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errinfo.h"
#include "record/probe/probe.h"

/* feature_bpf_load - loads a program of the kind uprobes use. */
int feature_bpf_load(void);

int feature_uprobe_session(void);
int feature_uprobe_multi(void);
int feature_uprobe_perf(void);

/* feature_cpu_clock - the clock by which CPUs are sampled. */
int feature_cpu_clock(void);

/* feature_host_pids - whether this process numbers processes as the machine does, and so as the
 * kernel's records do; not in a container with a PID namespace of its own. @root as in space.h. */
bool feature_host_pids(const char *root);
#define FEATURE_HOST_PIDS_ADVICE                                                                    \
	"start the container with --pid=host (Kubernetes: hostPID: true), else no process outside " \
	"of it is seen"

/* feature_method - whether uprobes can be attached by @m; else a sentence that says why not. */
int feature_method(enum probe_method m, struct errinfo *reterr);

/* feature_attach_method - the best way to attach uprobes here. -EOPNOTSUPP or -EPERM with a
 * sentence if there is none. */
int feature_attach_method(enum probe_method *ret, struct errinfo *reterr);

/* feature_open - probe_open() by the best method that this kernel has and takes our programs for; @s->method is not
 * asked. A refusal names the setting that is behind it, where one is. */
int feature_open(const struct probe_settings *s, struct probe **ret, struct errinfo *reterr);

/* feature_tracepoints - ret_present[i] tells whether tp_btf programs can attach to names[i].
 * -EOPNOTSUPP if the kernel has no BTF. */
int feature_tracepoints(const char *const *names, size_t count, bool *ret_present);

/* Which setting of this machine keeps this process from its probes, and what to do about it.
 *
 * Asked only after the kernel has refused something: none of these settings says by itself that it will. */

#define OBSTACLE_MAX 320 /* a sentence */

#define CAP_SYS_PTRACE_BIT 19 /* numbers as in capabilities(7) */
#define CAP_SYS_ADMIN_BIT  21
#define CAP_PERFMON_BIT    38
#define CAP_BPF_BIT        39

struct obstacle_view {
	const char *root; /* as in space.h */
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
