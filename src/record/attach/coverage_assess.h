/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_assess.h - which layers of a process are seen, given the files that are probed.
 *
 * Static copies of the runtime. The compiler's default is to link cudart into the program. Where no
 * libcudart is mapped but libcuda is, the program's symbols are looked at, and if the runtime is
 * among them it is probed there, as in any library that keeps the symbols of its copy
 * (discover/embedded.h). libnccl's copy is its own business: what it does shows as driver calls
 * inside NCCL calls. A copy without symbols is reported as a gap, with the driver calls still seen. */
#pragma once

#include "record/attach/coverage.h"
#include "model/accounting.h"
#include "model/identity.h"

/* coverage_assess - probe every library of @p, and its program where the runtime may be in it.
 * @root as in discover.h. Sentences about files that could not be probed go to the log. */
void coverage_assess(struct coverage *c, const char *root, const struct target_process *p);

/* coverage_assess_program - the program of @p if the runtime is in it and it was looked at; else
 * NULL. */
const struct coverage_file *coverage_assess_program(
	const struct coverage *c, const char *root, const struct target_process *p);

/* coverage_assess_process - rows of @p; LAYER_IDENTITY is left alone. No probes change. */
void coverage_assess_process(const struct coverage *c, const char *root,
	const struct target_process *p, struct process_layers *ret);

/* Which gaps in what is seen of processes have been reported: a mapping is found by the
 * kernel's record and by scans, and one gap is reported once. The latest GAP_LOG_MAX are known. */

#define GAP_LOG_MAX 256

struct gap_log_entry {
	uint32_t pid;
	uint64_t start_ticks, file; /* the file's name as a hash */
};

struct gap_log {                                   /* zero: empty */
	struct gap_log_entry entries[GAP_LOG_MAX]; /* a ring */
	size_t count;                              /* ever entered */
};

/* gap_log_add - false: @g has been reported. *ret_is_new_process: no other gap of its process has; set
 * in both cases. */
bool gap_log_add(struct gap_log *l, const struct call_gap *g, bool *ret_is_new_process);
