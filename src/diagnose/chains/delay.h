/* SPDX-License-Identifier: Apache-2.0 */
/* delay.h - what steps lost their time to: the lines of an account that grew, put together by cause. */
#pragma once

#include "diagnose/chains/resource.h"
#include "diagnose/recording.h"
#include "model/problem.h"
#include "model/step_account.h"

/* X(NAME, what it is called in a sentence): most are one line of the account; the last ones
 * are several, known by whose time it was, by the stacks or by what was written. */
#define DELAYS(X)                                                                                  \
	X(GPU, "waiting for the GPU")                                                              \
	X(COPY, "copying to and from the GPU")                                                     \
	X(LAUNCH, "launching kernels")                                                             \
	X(ALLOCATION, "allocating and freeing GPU memory")                                         \
	X(GRAPH, "launching CUDA graphs")                                                          \
	X(COLLECTIVE, "calling collectives")                                                       \
	X(CALL, "in other CUDA calls")                                                             \
	X(HOST, "running host code")                                                               \
	X(GC, "in Python's garbage collector")                                                     \
	X(GIL, "waiting for Python's interpreter lock")                                            \
	X(LOCK, "waiting for another thread")                                                      \
	X(CPU, "waiting for a CPU")                                                                \
	X(DISK, "waiting for the disk")                                                            \
	X(MEMORY, "waiting for host memory")                                                       \
	X(NETWORK, "waiting for the network")                                                      \
	X(ASLEEP, "asleep")                                                                        \
	X(STOPPED, "stopped by a signal, a debugger or a frozen container")                        \
	X(UNKNOWN, "unknown")                                                                      \
	X(LOADER, "waiting for the data loader")                                                   \
	X(PROCESS, "waiting for another process")                                                  \
	X(CHECKPOINT, "writing a checkpoint")                                                      \
	X(COMPILE, "compiling kernels")                                                            \
	X(SYNC, "waiting for the GPU in the middle of the step")

enum delay_kind {
#define X(NAME, ...) DELAY_BY_##NAME,
	DELAYS(X)
#undef X
		DELAY_KINDS
};

struct delay {
	enum delay_kind kind;
	uint64_t ordinary_ns, slow_ns;    /* in a step */
	const struct account_entry *lead; /* its largest entry; NULL: none is kept */
	double share;                     /* of all that grew, 0..1 */
	struct resource_use end;          /* where its chain leads to */
};

struct delay_list {
	struct delay items[DELAY_KINDS]; /* largest growth first; those that grew alone */
	int count;
	uint64_t grown_ns; /* all growth together */
	double unknown;    /* share of it that is not known */
};

/* delays_find - what grew from ordinary to slow steps of @a; where none is slow, what a step consists
 * of. */
void delays_find(const struct recording *rec, const struct step_account *a, struct delay_list *ret);

/* delay_is_of_tracer - whether @l is the cost of tracing: the tracer had the CPU. */
bool delay_is_of_tracer(const struct delay *l);
/* delay_is_foreign - time of another process, of which no more is known than that it was waited for. */
bool delay_is_foreign(const struct account_entry *e);

/* delay_has - whether @e is time of a delay of @kind. */
bool delay_has(const struct recording *rec, enum delay_kind kind, const struct account_entry *e);

const char *delay_id(enum delay_kind k);   /* "cpu", "loader" */
const char *delay_text(enum delay_kind k); /* "waiting for a CPU" */
