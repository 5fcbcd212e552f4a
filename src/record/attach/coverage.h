/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.h - the library files that are probed, each (dev, inode) as maps shows it, once. */
#pragma once

#include "base/clock.h"
#include "base/errinfo.h"
#include "base/macros.h"
#include "model/accounting.h"
#include "model/identity.h"
#include "record/probe/probe.h"

struct coverage_file {
	struct target_library library;
	size_t probes; /* functions probed; 0: the file could not be probed, see why */
	int error;     /* negative errno if not probed; -ENOENT: it has none of the functions */
	wall_time since;
	bool is_coming; /* its probes are being attached: nothing of the above is known yet */
	char why[256];  /* "" if probed */
};

struct coverage;

/* coverage_new - @p NULL: nothing is probed, but files are looked at as if they were (check). */
int coverage_new(struct probe *p, struct coverage **ret);
DECLARE_FREE(struct coverage, coverage_free) /* detaches everything */

/* coverage_add - probe the file @lib, open for reading as @fd (see discover_library_open()), unless
 * it is known already. @fd is taken in any case. If there is no place left, files that nobody maps
 * give theirs up.
 * Returns 1 if it is newly probed, or is_coming; 0 if it was known; -ENOBUFS if all places are in use; -EAGAIN if
 * its owner has many (a later scan tries again); or another negative errno with the reason, which is also kept for
 * coverage_find(): a file that failed once is not tried again. */
int coverage_add(
	struct coverage *c, const struct target_library *lib, int fd, struct errinfo *reterr);

/* coverage_beside - from now on files are probed by threads beside the caller, who waits for none; what became of them
 * stands in the list after coverage_settle(), which is true if there was news. */
void coverage_beside(struct coverage *c);
bool coverage_settle(struct coverage *c);

/* coverage_scan_begin - all processes are being looked at: coverage_mapped() follows for every file
 * that one of them maps, then coverage_scan_end(). What no process mapped in the last complete scan
 * may be given back. */
void coverage_scan_begin(struct coverage *c);
void coverage_mapped(struct coverage *c, const struct target_library *lib);
void coverage_scan_end(struct coverage *c);

/* coverage_drop_changed - files that were written to since they were probed lose their probes, which would stand at
 * wrong places in whoever maps them now, and are as if they had never been met. @all: also those that the kernel
 * does not tell of. True: there were some. */
bool coverage_drop_changed(struct coverage *c, bool all);

/* coverage_keep - the file is given back after those that were only met in processes. */
void coverage_keep(struct coverage *c, const struct target_library *lib);

/* coverage_close_kind - no further file of @kind is probed: those that are there are all. */
void coverage_close_kind(struct coverage *c, enum target_library_kind kind);

bool coverage_has(const struct coverage *c, const struct target_library *lib);

/* coverage_find - what became of the file @lib; NULL if it was never added. */
const struct coverage_file *coverage_find(
	const struct coverage *c, const struct target_library *lib);

/* coverage_knows - are there functions to probe in files of @kind? */
bool coverage_knows(enum target_library_kind kind);

/* coverage_probed - number of CUDA files that are probed; *ret_first is the name of one, or "". */
size_t coverage_probed(const struct coverage *c, const char **ret_first);

/* coverage_probes - functions probed in all files of @kind. */
size_t coverage_probes(const struct coverage *c, enum target_library_kind kind);

/* coverage_launches - the probes of launches (COOKIE_GOVERNED) of all files shall be there, or not. They come and
 * go beside the caller.
 * coverage_turn - has what is not as it should be begin to turn; never waits. True: all are as they should be, but
 * for files whose probes could not come back, which is said and not tried again. */
void coverage_launches(struct coverage *c, bool on);
bool coverage_turn(struct coverage *c);

/* coverage_detach - remove every probe; the list of files stays. */
void coverage_detach(struct coverage *c);

/* coverage_detach_is_slow - whether that forks a process which detaches in the background. */
bool coverage_detach_is_slow(const struct coverage *c);

/* Which layers of a process are seen, given the files that are probed.
 *
 * Static copies of the runtime. The compiler's default is to link cudart into the program. Where no
 * libcudart is mapped but libcuda is, the program's symbols are looked at, and if the runtime is
 * among them it is probed there, as in any library that keeps the symbols of its copy
 * (discover/embedded.h). libnccl's copy is its own business: what it does shows as driver calls
 * inside NCCL calls. A copy without symbols is reported as a gap, with the driver calls still seen. */

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
