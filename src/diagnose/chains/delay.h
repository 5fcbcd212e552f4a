/* SPDX-License-Identifier: Apache-2.0 */
/* delay.h - what steps lost their time to: the lines of an account that grew, put together by cause, and what each
 * leads to. */
#pragma once

#include "diagnose/recording.h"
#include "model/problem.h"
#include "model/step_account.h"

/* Where a delay leads to: what was waited for, and who had it meanwhile.
 * X(NAME, who had it, where no more is known, how it is known, traits) */
/* clang-format off */
#define RESOURCES(X) \
	X(NONE, "", KIND, 0)                                                            /* nothing beyond the delay itself is known */ \
	X(GPU_CLOCK, "", SEEN, RESOURCE_IN_ALL)                                         /* a limit that somebody set */ \
	X(GPU_POWER, "", SEEN, RESOURCE_IN_ALL)                                         /* its power limit */ \
	X(GPU_HEAT, "", SEEN, RESOURCE_IN_ALL)                                          /* its temperature */ \
	X(GPU_PROCESS, "another process", SEEN, RESOURCE_IN_ALL + RESOURCE_HAS_PROCESS) /* another process on the GPU */ \
	X(GPU_PERHAPS, "another process", OWN, RESOURCE_IN_ALL + RESOURCE_HAS_PROCESS)  /* likewise, but it may be on another GPU */ \
	X(RANKS, "", OWN, RESOURCE_IS_ONE)                                              /* of the same job, not in this recording */ \
	X(CPU_PROGRAM, "other programs", SEEN, RESOURCE_HAS_PROCESS)                    /* other programs had the CPUs */ \
	X(CPU_OWN, "threads", SEEN, RESOURCE_HAS_PROCESS + RESOURCE_IS_ONE)             /* threads of the job itself had them */ \
	X(CPU_QUOTA, "its control group", SEEN, 0)                                      /* the container's limit */ \
	X(CPU_MASK, "", SEEN, 0)                                                        /* it may use few CPUs */ \
	X(DISK_READ, "", SEEN, RESOURCE_HAS_PROCESS)                                    /* who holds the device up, by reading */ \
	X(DISK_WRITE, "", SEEN, RESOURCE_HAS_PROCESS)                                   /* likewise by writing */ \
	X(MEMORY_LIMIT, "", SEEN, 0)                                                    /* the container's limit is reached */ \
	X(MEMORY, "", SEEN, 0)                                                          /* the machine's memory is short: reclaim, swap */ \
	X(LOCK, "another thread", KIND, 0)                                              /* a thread holds it */ \
	X(FILE_LOCK, "", SEEN, RESOURCE_IS_AWAITED + RESOURCE_IS_ONE_OF)                /* of a file: a process holds it */ \
	X(DATABASE_LOCK, "", SEEN, RESOURCE_IS_AWAITED + RESOURCE_IS_ONE_OF)            /* of a database: a library asks for it again and again */ \
	X(PIPE_FULL, "another process", SEEN, RESOURCE_IS_AWAITED + RESOURCE_IS_ONE_OF) /* a process does not read what is written to it */ \
	X(STOPPER, "another process", SEEN, RESOURCE_IS_AWAITED + RESOURCE_IS_ONE_OF)   /* a process stops another, or the job */ \
	X(PROCESS, "another process", SEEN, RESOURCE_IS_AWAITED + RESOURCE_IS_ONE_OF)   /* the process at the other end of a pipe or socket */ \
	X(PICKLE, "another process", KIND, RESOURCE_IS_AWAITED + RESOURCE_IS_ONE)       /* what processes hand to each other is packed and sent */ \
	X(CALLBACK, "", KIND, 0)                                                        /* compiled code that calls Python */ \
	X(TRACEBACK, "", KIND, 0)                                                       /* stacks that the program takes of itself */ \
	X(WORK, "", KIND, 0)                                                            /* that the program has a library do; which, who says */ \
	X(FRESH_MEMORY, "", KIND, 0)                                                    /* pages that are touched for the first time */ \
	X(COPIED_MEMORY, "", KIND, 0)                                                   /* pages shared with a forked process, as they are written to */ \
	X(DELAYED_ACK, "another process", SEEN, RESOURCE_IS_AWAITED)                    /* a small packet waits for an acknowledgement */ \
	X(TIMER, "", KIND, 0)                                                           /* of an event loop: nobody else ends the wait */ \
	X(POLL, "", KIND, 0)                                                            /* the program looks again and again whether the GPU is done */ \
	X(TIMEOUT, "", KIND, 0)                                                         /* an answer does not come: the wait ends by its own time limit */ \
	X(ADDRESS, "a remote address", SEEN, 0)                                         /* a remote address */ \
	X(COMPILER, "a compiler", OWN, 0)                                               /* which one */ \
	X(PRECISION, "wide types", OWN, RESOURCE_IN_ALL)                                /* numbers wider than the work needs */ \
	X(ATTENTION, "wide types", OWN, RESOURCE_IN_ALL)                                /* likewise in attention alone */
/* clang-format on */

/* Traits. */
#define RESOURCE_HAS_PROCESS 1  /* who has it is a process, or several of one name */
#define RESOURCE_IS_AWAITED  3  /* likewise, and waited for: it may be one of the job's own */
#define RESOURCE_IS_ONE      4  /* one cause however it shows */
#define RESOURCE_IS_ONE_OF   8  /* likewise, where it is the same who */
#define RESOURCE_IN_ALL      16 /* its share of what all units wait for the GPU is lost */

enum resource {
#define X(NAME, ...) RESOURCE_##NAME,
	RESOURCES(X)
#undef X
		RESOURCE_COUNT
};

enum resource_evidence { /* how often it is right */
	EVIDENCE_KIND,   /* as the delay's kind is */
	EVIDENCE_OWN,    /* as that of the program's own code */
	EVIDENCE_SEEN,   /* that somebody or something else had it was seen */
};

extern const struct resource_row {
	const char *anybody;
	enum resource_evidence evidence;
	unsigned traits;
} resource_rows[RESOURCE_COUNT];

/* resource_is - whether it has all of @traits. */
static inline bool resource_is(enum resource r, unsigned traits)
{
	return (resource_rows[r].traits & traits) == traits;
}

struct resource_use {
	enum resource resource;
	char who[64];   /* program, script, device, address, compiler; "": not known */
	uint32_t pid;   /* of who; 0: of several, or none */
	uint32_t count; /* processes of that name; 0: no matter */
	char on[64]; /* RESOURCE_STOPPER: whom it stops, as who; "": the job itself, or not known */
	uint32_t on_pid, on_count;
	char detail[96];  /* "544 instead of 1905 MHz", "0.6 CPUs", "writes 1.2 GB/s"; "": none */
	bool is_doubtful; /* that it is the reason: nothing but that it is there says so */
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
