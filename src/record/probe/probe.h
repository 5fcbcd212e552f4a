/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - the loaded kernel half: settings, targets, and the counters to read back.
 *
 * Life: probe_open() loads the programs and attaches the kernel's own tracepoints; record/attach
 * puts the call programs onto libraries; probe_enable() starts recording. To stop: probe_disable(),
 * detach the libraries, probe_sweep(), read what is left in the rings, probe_close().
 *
 * To add a probe: a folder with NAME.bpf.c (kernel half), included by probe.bpf.c; its record in
 * wire/record.h; its decoding in record/capture/reader.c. */
#pragma once

#include "record/probe/filter.h"
#include "record/probe/part.h"
#include "base/errinfo.h"
#include "model/accounting.h"
#include "wire/record.h"

struct probe_settings {
	enum probe_method method;
	bool method_asked; /* by the user, who may have chosen a lesser one */
	enum probe_filter filter;
	uint32_t uid; /* FILTER_USER */
	bool record_all;
	uint32_t ring_bytes; /* a power of two >= 4096; 0: 8 MiB */
	bool no_block;       /* leave block requests alone */
	uint32_t
		sampling_rate; /* ordinary calls that are recorded: one in so many; 0: by default */
	bool no_net;           /* leave sockets alone */
	bool stacks;           /* take the stacks of calls that are sent */
	bool python;           /* and Python's frames with them */
	uint32_t sample_hz;    /* on-CPU samples a second and CPU; 0: none */
	bool no_memory;        /* leave page allocation and reclaim alone */
	bool no_marks;         /* leave training loops and names of kernels alone */
	uint32_t
		user_targets; /* for tests: processes of one user that are traced; 0: half of TARGETS_MAX */
	bool old_kernel; /* for tests: use the fallbacks for kernels before 6.3 */
	const char
		*refuse_program; /* for tests: one that the kernel is made to refuse; may be NULL */
};

struct probe;

/* probe_open - load and attach to the scheduler, block layer and process life cycle. What the kernel cannot do is
 * left out: see probe_missing(). -EPERM names the missing capability; -EOPNOTSUPP what the kernel lacks. */
int probe_open(const struct probe_settings *s, struct probe **ret, struct errinfo *reterr);
DECLARE_FREE(struct probe, probe_close)

/* probe_missing - what was asked for and this kernel does not have. probe_miss() adds to it what attaching shows. */
const struct parts_missing *probe_missing(const struct probe *p);
void probe_miss(struct probe *p, enum probe_part part, const char *why);

enum probe_method probe_method(const struct probe *p);

/* probe_enable - record from now on. probe_enable_calls() lets only library calls be recorded, for
 * the agent to measure what they cost. */
void probe_enable(struct probe *p);
void probe_enable_calls(struct probe *p);
void probe_disable(struct probe *p);

/* probe_launches_enable - whether calls of launches (COOKIE_GOVERNED) are begun; those under way end
 * as usual. At first they are not. */
void probe_launches_enable(struct probe *p, bool on);

/* probe_target_add - trace process @pid of user @uid and its later children. -EDQUOT: that user has as many traced
 * processes as one may have with FILTER_ALL. */
int probe_target_add(struct probe *p, uint32_t pid, uint32_t uid);

/* probe_target_remove - forget process @pid; threads that are followed already stay so. */
void probe_target_remove(struct probe *p, uint32_t pid);

/* probe_admit - give every present thread of every target its state, so that the scheduler is
 * followed for threads that make no calls themselves. Call after targets were added. */
int probe_admit(struct probe *p);

/* probe_sweep - count calls still under way as lost for @reason, once their probes are detached;
 * @launches_only: those of launches (COOKIE_GOVERNED) alone. */
int probe_sweep(struct probe *p, enum wire_loss reason, bool launches_only);

/* probe_limit_set - calls of (source, op) slower than @ns are sent one by one. */
void probe_limit_set(struct probe *p, unsigned source, unsigned op, uint64_t ns);

/* probe_nccl_layout - where communicators of the probed file number @library keep rank and size. */
void probe_nccl_layout(struct probe *p, unsigned library, const struct wire_nccl_layout *l);

/* probe_tally - the books of one source, summed over CPUs. */
void probe_tally(const struct probe *p, unsigned source, struct wire_tally *ret);

/* probe_cpu_losses - everything lost in the kernel so far, by source, reason and CPU. */
void probe_cpu_losses(const struct probe *p, struct cpu_losses *ret);

/* For record/attach and record/capture: file descriptors of the programs and maps. */
int probe_map(const struct probe *p, const char *name);
int probe_program(const struct probe *p, const char *name); /* negative: it was not loaded */

/* probe_hook_runs - how often a program of marks and names ran for the process so far. */
uint64_t probe_hook_runs(const struct probe *p, uint32_t pid);

/* probe_uses - WIRE_USES counts, which change while they are read. */
const struct wire_use *probe_uses(const struct probe *p);

/* probe_names_lost - names of kernels and ranges that found no room. */
uint64_t probe_names_lost(const struct probe *p);
