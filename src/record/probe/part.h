/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - what the kernel half is made of, for people: the parts of it that a kernel may lack, what is not known
 * without each, and since which kernel it is there. docs/kernels.md has the same by helper and tracepoint.
 *
 * To add one: a row in PROBE_PARTS, and where it is found to be missing a call of part_miss(). */
#pragma once

#include "base/errinfo.h"

#define PROBE_PARTS(X)                                                                             \
	X(SESSION, "session probes", "a call costs two probes instead of one", "6.13")             \
	X(MULTI, "multi probes",                                                                   \
		"probes are attached one by one, and the overhead budget is not held", "6.6")      \
	X(STACKS, "call stacks", "no line of code is named", "5.15")                               \
	X(PYTHON, "Python frames", "no Python line is named", "5.15")                              \
	X(SAMPLES, "CPU samples", "what runs between calls is unknown", "5.15")                    \
	X(WAKERS, "exact wakers",                                                                  \
		"some wakeups by interrupts are attributed to the interrupted thread",             \
		"CONFIG_KALLSYMS_ALL")                                                             \
	X(MARKS, "marks of the training loop", "steps are found by calls alone", "5.15")           \
	X(BLOCK, "block I/O", "waits for disks have no device", "5.15")                            \
	X(MEMORY, "page allocation", "page allocations are not counted", "5.15")                   \
	X(FAULTS, "file faults", "pages read because a file is mapped are not counted", "6.12")    \
	X(RECLAIM, "memory reclaim", "waits for free memory look like other waits", "5.15")        \
	X(SOCKETS, "sockets", "waits for the network have no address", "5.15")                     \
	X(RETRANSMITS, "TCP retransmits", "lost packets are not counted", "5.15")                  \
	X(OOM, "out-of-memory kills", "a killed process only shows as ended", "5.15")

enum probe_part {
#define X(id, ...) PART_##id,
	PROBE_PARTS(X)
#undef X
		PART_COUNT
};

struct probe_part_row {
	const char *name, *without, *since;
};

extern const struct probe_part_row probe_parts[PART_COUNT];

/* What is missing, and why, in the order in which it was found. */
struct parts_missing {
	size_t count;
	struct part_missing {
		enum probe_part part;
		char why[200];
	} rows[PART_COUNT];
};

/* part_miss - @part is missing because of @why; the first reason stays. */
void part_miss(struct parts_missing *m, enum probe_part part, const char *why);

/* What of the kernel half is loaded. */
struct parts {
	bool plain;        /* the kernel's variables are left alone */
	uint64_t left_out; /* programs that the kernel refused */
	struct parts_missing missing;
};

struct bpf_object;
struct bpf_object_skeleton;
struct probe_settings;

/* parts_choose - which programs of @o at the kernel's tracepoints are loaded, by what is asked for and what there is. */
void parts_choose(struct parts *t, const struct probe_settings *s, struct bpf_object *o);

/* parts_leave_out - from the next parts_choose() on without @program, because of @why. False: it is none of these, or
 * tracing stands on it. */
bool parts_leave_out(struct parts *t, const char *program, const char *why);

/* parts_attach - those that were loaded. */
int parts_attach(const struct bpf_object_skeleton *k, struct errinfo *reterr);

/* The ways to probe library functions. */

enum probe_method {    /* best first */
	PROBE_SESSION, /* one link and one program for entry and return: kernel 6.13 */
	PROBE_MULTI,   /* a link for entries and one for returns: kernel 6.6 */
	PROBE_PERF, /* a perf event for each function and direction: any kernel; slow to detach */
};

/* probe_method_name - "session", "multi", "perf". */
const char *probe_method_name(enum probe_method m);
