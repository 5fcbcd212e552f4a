/* SPDX-License-Identifier: Apache-2.0 */
/* delay.h - what steps lost their time to: the lines of an account that grew, put together by cause, and what each
 * leads to. */
#pragma once

#include "diagnose/recording.h"
#include "model/problem.h"
#include "model/step_account.h"

/* Where a delay leads to: what was waited for, and who had it meanwhile. X(NAME, id) */
#define RESOURCES(X)                                                                               \
	X(NONE, "")                     /* nothing beyond the delay itself is known */             \
	X(GPU_CLOCK, "gpu_clock")       /* a limit that somebody set */                            \
	X(GPU_POWER, "gpu_power")       /* its power limit */                                      \
	X(GPU_HEAT, "gpu_heat")         /* its temperature */                                      \
	X(GPU_PROCESS, "gpu_process")   /* another process on the GPU */                           \
	X(RANKS, "ranks")               /* of the same job, not in this recording */               \
	X(CPU_PROGRAM, "cpu_program")   /* other programs had the CPUs */                          \
	X(CPU_OWN, "cpu_own")           /* threads of the job itself had them */                   \
	X(CPU_QUOTA, "cpu_quota")       /* the container's limit */                                \
	X(CPU_MASK, "cpu_mask")         /* it may use few CPUs */                                  \
	X(DISK_READ, "disk_read")       /* who holds the device up, by reading */                  \
	X(DISK_WRITE, "disk_write")     /* likewise by writing */                                  \
	X(MEMORY_LIMIT, "memory_limit") /* the container's limit is reached */                     \
	X(MEMORY, "memory")             /* the machine's memory is short: reclaim, swap */         \
	X(LOCK, "lock")                 /* a thread holds it */                                    \
	X(FILE_LOCK, "file_lock")       /* of a file: a process holds it */                        \
	X(PIPE_FULL, "pipe_full")       /* a process does not read what is written to it */        \
	X(STOPPER, "stopper")           /* a process stops another, or the job */                  \
	X(PROCESS, "process")           /* the process at the other end of a pipe or socket */     \
	X(PICKLE, "pickle")             /* what processes hand to each other is packed and sent */ \
	X(CALLBACK, "callback")         /* compiled code that calls Python */                      \
	X(TRACEBACK, "traceback")       /* stacks that the program takes of itself */              \
	X(WORK, "work")                 /* that the program has a library do; which, who says */   \
	X(FRESH_MEMORY, "fresh_memory") /* pages that are touched for the first time */            \
	X(DELAYED_ACK, "delayed_ack")   /* a small packet waits for an acknowledgement */          \
	X(TIMER, "timer")               /* of an event loop: nobody else ends the wait */          \
	X(ADDRESS, "address")           /* a remote address */                                     \
	X(COMPILER, "compiler")         /* which one */                                            \
	X(PRECISION, "precision")       /* numbers wider than the work needs */                    \
	X(ATTENTION, "attention")       /* likewise in attention alone */

enum resource {
#define X(NAME, id) RESOURCE_##NAME,
	RESOURCES(X)
#undef X
		RESOURCE_COUNT
};

struct resource_use {
	enum resource resource;
	char who[64];   /* program, script, device, address, compiler; "": not known */
	uint32_t pid;   /* of who; 0: of several, or none */
	uint32_t count; /* processes of that name; 0: no matter */
	char on[64]; /* RESOURCE_STOPPER: whom it stops, as who; "": the job itself, or not known */
	uint32_t on_pid, on_count;
	char detail[96];  /* "544 instead of 1905 MHz", "0.6 CPUs", "writes 1.2 GB/s"; "": none */
	double share;     /* of the delay that it explains, 0..1 */
	double who_share; /* of that, what is who's; 0: all */
	uint64_t stack_hash; /* where the program asks for it, if that is not where it waits; 0 */
};

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
