/* SPDX-License-Identifier: Apache-2.0 */
/* resource.h - where a delay leads to: what was waited for, and who had it meanwhile. */
#pragma once

#include <stdint.h>

#include "model/event.h"

/* X(NAME, id) */
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
