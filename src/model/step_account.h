/* SPDX-License-Identifier: Apache-2.0 */
/* step_account.h - where the time of a job's steps went. Every nanosecond of a step, on the path that
 * decided how long it took, is on exactly one line; what slow steps lost is the difference between
 * two accounts.
 *
 * Made from a recording by diagnose, written by answer. */
#pragma once

#include "base/clock.h"
#include "model/event.h"
#include "wire/ledger.h"

/* X(NAME, id, title): the order of tables and drawings. */
#define ACCOUNT_LINES_LIST(X)                                                                      \
	X(GPU, "gpu", "waiting for the GPU")                                                       \
	X(COPY, "copy", "copies to and from the GPU")                                              \
	X(LAUNCH, "launch", "launching kernels")                                                   \
	X(ALLOCATION, "allocation", "allocating GPU memory")                                       \
	X(GRAPH, "graph", "CUDA graphs")                                                           \
	X(COLLECTIVE, "collective", "collectives")                                                 \
	X(CALL, "call", "other CUDA calls")                                                        \
	X(HOST, "host", "host code")                                                               \
	X(GC, "gc", "garbage collection")                                                          \
	X(GIL, "gil", "waiting for Python's interpreter lock")                                     \
	X(LOCK, "lock", "waiting for another thread")                                              \
	X(CPU, "cpu", "waiting for a CPU")                                                         \
	X(DISK, "disk", "disk")                                                                    \
	X(MEMORY, "memory", "page faults and reclaim")                                             \
	X(NETWORK, "network", "network")                                                           \
	X(ASLEEP, "asleep", "asleep")                                                              \
	X(STOPPED, "stopped", "stopped")                                                           \
	X(UNKNOWN, "unknown", "unknown")

enum account_line {
#define X(NAME, ...) ACCOUNT_##NAME,
	ACCOUNT_LINES_LIST(X)
#undef X
		ACCOUNT_LINES
};

/* Whose time it was. X(NAME, id, title) */
#define ACCOUNT_OWNERS_LIST(X)                                                                     \
	X(SELF, "self", "the thread that runs the steps")                                          \
	X(THREAD, "thread", "another thread of the process")                                       \
	X(LOADER, "loader", "data loader worker")                                                  \
	X(PROCESS, "process", "another process")

enum account_owner {
#define X(NAME, ...) OWNER_##NAME,
	ACCOUNT_OWNERS_LIST(X)
#undef X
		ACCOUNT_OWNERS
};

/* How the steps were found. X(NAME, id, what ends one). Reduced recordings keep the number: new ones come last. */
#define STEP_ORIGINS(X)                                                                            \
	X(ANNOTATION, "annotation", "the job's own step labels")                                   \
	X(OPTIMIZER, "optimizer", "optimizer.step")                                                \
	X(BACKWARD, "backward", "backward")                                                        \
	X(EXECUTE, "execute", "JAX execute")                                                       \
	X(LOADER, "loader", "DataLoader batches")                                                  \
	X(GRAPH, "graph", "CUDA graph launches")                                                   \
	X(COLLECTIVE, "collective", "collectives")                                                 \
	X(WAIT, "wait", "recurring GPU waits")                                                     \
	X(TIME, "time", "none found, equal windows of time")                                       \
	X(REQUEST, "request", "requests, a thread each")                                           \
	X(REPLY, "reply", "replies of a service")                                                  \
	X(POLL, "poll", "sleeps that grow until the GPU is done")

enum step_origin {
#define X(NAME, ...) STEP_BY_##NAME,
	STEP_ORIGINS(X)
#undef X
};

/* One cause within the account: a line, whose it is, who is to blame and where in the code. */
struct account_entry {
	enum account_line line;
	enum account_owner owner;
	uint32_t pid;           /* of the owner; 0: of many that came and went */
	char comm[COMM_LEN];    /* its thread's name */
	uint32_t culprit_pid;   /* who had the CPU, the disk, the lock; 0: nobody in particular */
	char culprit[COMM_LEN]; /* "" likewise */
	bool by_clock;          /* asleep until a time of its own choice */
	uint64_t stack_hash;    /* the stack that had most of it; 0: none */
	uint64_t wait_hash;     /* of another's time: where the steps waited for it; 0: not known */
	uint64_t ordinary_ns;   /* in an ordinary step, on average; 0 where none is ordinary */
	uint64_t slow_ns;       /* in a slow step, on average; where none is, in any step */
};

/* account_entry_growth - what slow steps have more of it than ordinary ones; account_entry_more - likewise, 0 where that is
 * below 0. */
static inline int64_t account_entry_growth(const struct account_entry *e)
{
	return (int64_t)e->slow_ns - (int64_t)e->ordinary_ns;
}

static inline uint64_t account_entry_more(const struct account_entry *e)
{
	return e->slow_ns > e->ordinary_ns ? e->slow_ns - e->ordinary_ns : 0;
}

#define ACCOUNT_ENTRIES 24

struct account_bar { /* some steps that followed each other, for drawings */
	wall_time start;
	uint64_t dur_ns;
	uint32_t steps, slow_steps;
	uint64_t ns[ACCOUNT_LINES]; /* sum: dur_ns */
};

#define ACCOUNT_BARS 240

struct step_mark { /* one step */
	wall_time start;
	uint64_t dur_ns;
	uint64_t copy_bytes;
	bool is_slow;
};

#define ACCOUNT_MARKS (200u << 10) /* 6 MB: the last ones */

struct step_account { /* of the steps of one process */
	uint32_t pid, tid;
	char comm[COMM_LEN];
	enum step_origin origin;
	double confidence; /* 0..1: that these are its steps */
	uint32_t steps, ordinary_steps, slow_steps;
	uint32_t other_steps; /* of another phase or with other work: compared with nothing */
	uint32_t group;       /* steps that are taken together because the GPU is waited for once in
				 so many */
	wall_time first, last;           /* start of the first step, end of the last */
	wall_time slow_first, slow_last; /* likewise of the slow ones; 0: none */
	uint32_t period_steps;           /* every so many steps one is slow; 0: not periodic */
	double period_confidence;        /* share of the distances that are so */
	bool is_varied;                  /* steps of all lengths, now shorter and now longer */
	bool is_staged;       /* slow ones are as long as that little by little, or in stages */
	bool is_proportional; /* and longer ones do as much more of the same */
	bool is_clocked;      /* a clock begins them: what one is late the next is shorter */
	bool is_drift; /* steps became longer little by little: ordinary is the first quarter */
	uint64_t drift_from_ns,
		drift_to_ns;       /* what a step took at first and takes at last; 0: no drift */
	uint64_t ordinary_step_ns; /* mean length */
	uint64_t slow_step_ns;     /* of slow ones; 0: none */
	uint64_t lost_ns;          /* what slow steps took beyond ordinary ones, in all */
	uint64_t total_ns[ACCOUNT_LINES];    /* of all steps; sum: their length */
	uint64_t ordinary_ns[ACCOUNT_LINES]; /* mean of a step; sum: ordinary_step_ns */
	uint64_t slow_ns[ACCOUNT_LINES];     /* likewise */
	uint64_t ordinary_by[ACCOUNT_OWNERS][ACCOUNT_LINES]; /* the same by owner */
	uint64_t slow_by[ACCOUNT_OWNERS][ACCOUNT_LINES];
	/* Of the time on a line, the share that only shortens the wait for the GPU after it: steps that have more of it
	 * wait as much less, and are no longer. 0 where that is not seen. */
	double hidden_by[ACCOUNT_OWNERS][ACCOUNT_LINES];
	double ordinary_launches, slow_launches; /* work of a step */
	double ordinary_bytes, slow_bytes;       /* copied */
	double ordinary_waits, slow_waits;       /* calls that wait for the GPU */
	double ordinary_open_ns,
		slow_open_ns; /* in which the GPU may have work of the process; 0: not known */
	double executes; /* starts of what JAX has compiled, of all steps; fewer where they come fast */
	struct account_entry entries[ACCOUNT_ENTRIES]; /* largest growth first */
	int entry_count;
	const char *unknown_reason; /* why ACCOUNT_UNKNOWN is not empty; "" if it is */
	struct account_bar *bars;
	size_t bar_count;
	struct step_mark *marks; /* each step, in order of time: the last ACCOUNT_MARKS */
	size_t mark_count;
};

struct step_report {
	struct step_account *items; /* by time in steps, longest first */
	size_t count;
};

const char *account_line_id(enum account_line l);    /* "gpu" */
const char *account_line_title(enum account_line l); /* "waiting for the GPU" */
const char *account_owner_id(enum account_owner o);
const char *step_origin_id(enum step_origin o);
const char *step_origin_text(enum step_origin o);
const char *step_origin_units(enum step_origin o); /* what they are called: "steps" */

void step_report_done(struct step_report *r);

/* step_account_is_slow - whether @ns lies in a step that is slow. */
bool step_account_is_slow(const struct step_account *a, int64_t ns);

/* What one thread spent its time on between two of its marks (wire/ledger.h). Rows of a
 * thread follow each other without a gap unless one was lost. */

struct ledger_row {
	wall_time start;
	uint64_t dur_ns;
	uint32_t pid, tid;
	uint64_t ns[LEDGER_LINES]; /* sum: dur_ns */
	uint64_t copy_bytes;
	uint32_t launches, waits, copies, allocs, stays;
	uint8_t mark;      /* enum wire_mark: what ended it */
	uint8_t waker;     /* enum wire_waker */
	uint8_t stay_line; /* enum wire_ledger_line */
	uint8_t launches_off;
	uint64_t stay_ns, stay_wait_ns; /* the stay that ended it, and its runnable last part */
	uint32_t waker_pid, waker_tid;
	uint64_t stack_hash;
	char waker_comm[COMM_LEN];
	char comm[COMM_LEN];
};

static inline int64_t ledger_end_ns(const struct ledger_row *r)
{
	return r->start.ns + (int64_t)r->dur_ns;
}
