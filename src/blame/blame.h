/* SPDX-License-Identifier: Apache-2.0 */
/* blame.h - who makes a distributed job wait, from its communications alone.
 *
 * Being last is not blame, nor is lying on the critical path. The path is walked backwards: at each
 * communication to the one that came last, Send and Recv included. What a worker has on it is compared
 * with the own time of its peers, workers of the same role; only the excess is blame. Used by the
 * cluster, as calls come in, and by explain, on recordings. Pure: no I/O, no clock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/push.h"

#define BLAME_WORKERS_MAX   65536
#define BLAME_SUSPECTS_MAX  16
#define BLAME_TRANSFERS_MAX 8
#define BLAME_SMALL_NS      UINT64_C(10000000) /* late by less, healthy ranks are, too */

struct blame_worker {
	int32_t rank;     /* in the job; -1: not known */
	const char *node; /* the caller's */
	uint32_t pid;
	int64_t offset_ns; /* to be added to its times for the common clock */
	uint64_t error_ns; /* how wrong that may be */
	uint64_t
		step_ns; /* how long its steps are, as the engine has them (diagnose/units); 0: not known */
};

struct blame_call { /* one communication of one worker */
	uint32_t worker;
	struct push_call c;
	int64_t shift_ns; /* to be added to its times as well: what the worker's clock was off by just then */
};

enum blame_kind {
	BLAME_NONE,    /* nobody: the job runs as evenly as its parts */
	BLAME_WORKERS, /* one or several workers are slower than their peers */
	BLAME_STAGE,   /* all workers of a pipeline stage */
	BLAME_UNEVEN, /* the load moves, and that is all: in every step another worker is slowest */
};

struct blame_suspect {
	uint32_t worker;    /* of a stage: its worst */
	int32_t stage;      /* -1: the job has none */
	int32_t replica;    /* place among its peers; -1: not known */
	double share;       /* of the job's time that it costs */
	uint64_t lost_ns;   /* of the job's time, in the steps that were looked at */
	uint64_t waited_ns; /* by all others together */
	uint64_t path_ns, own_ns, peer_own_ns; /* own: per step, median; peer_own_ns: its peers' */
	uint64_t lag_ns;                       /* median of what it is late by, where it is late */
	uint64_t comm, seq;                    /* the communication that it was latest for */
	uint16_t op;
	uint32_t late, seen;        /* steps in which it was late, of steps looked at */
	uint32_t period;            /* late every so many steps; 0: not regular, 1: always */
	int64_t since_ns, until_ns; /* from the first late step to the end of the last one */
	uint32_t cause; /* the same number: late in the same steps, with the same work */
	double received; /* bytes from its peers, now to before, where steps are longer since; 0: no more than before */
	bool on_time; /* known by @received alone: its host is as early as the others', @late and @lag_ns are its GPU's */
	bool by_design; /* a stage that is as slow in all steps: how work is divided, no fault */
	double confidence;
};

struct blame_transfer { /* a link or a collective that the job waits for when all have come */
	uint64_t comm, bytes;
	uint16_t op;
	uint32_t from, to; /* workers of a link; UINT32_MAX: a collective */
	uint32_t ranks;    /* that take part */
	size_t count;
	uint64_t took_ns;  /* median */
	uint64_t usual_ns; /* that of its peers, or its own before; 0: not known */
	bool by_past;
	bool is_slow;     /* far longer than usual, and the job waits for it */
	uint64_t path_ns; /* on the path, in all */
	uint64_t lost_ns; /* of the job's time */
	double share;
	int64_t since_ns, until_ns; /* from the first slow one to the last */
};

struct blame {
	enum blame_kind kind;
	double confidence;
	size_t calls; /* that it was told of */
	uint32_t steps;
	bool is_steady; /* all calls come again with each step: these are whole ones, not parts of them */
	uint64_t step_ns, span_ns; /* median step; from the first call to the last */
	int64_t end_ns;            /* the last call, by the common clock */
	uint64_t lost_ns;          /* of the job's time, by all suspects: never more than span_ns */
	struct blame_suspect suspects[BLAME_SUSPECTS_MAX]; /* costliest first */
	size_t suspect_count;
	uint64_t left_out; /* suspects beyond the ceiling */
	/* What load that moves from worker to worker costs, also beside a slow stage; 0: it does not. */
	uint64_t uneven_ns;
	double uneven_share;
	double uneven_begun; /* likewise, of the time since it has begun to move */
	/* One that was far later in the last steps than anybody usually is, once or now again: it is the
	 * one that all wait for now, whatever becomes of it. Not part of @suspects, @kind or @lost_ns. */
	bool has_sudden;
	struct blame_suspect sudden;
	/* Of these nobody is to blame. Not part of @suspects, @kind or @lost_ns. */
	struct blame_transfer transfers[BLAME_TRANSFERS_MAX]; /* most of the path first */
	size_t transfer_count;
	uint32_t *cleared; /* workers that were often last, but waited for others: innocent */
	size_t cleared_count;
	int32_t *stage_of, *replica_of;     /* by worker; -1: not known */
	int32_t stages;                     /* 1: no pipeline */
	double spread_step, spread_lasting; /* among peers: per step, and over all steps */
	uint64_t unmatched;                 /* calls without a partner, left out */
	uint64_t gap_ns;                    /* longest time that no call explains */
};

/* blame_find - 0 and *ret (released with blame_done()), or -ENOMEM, -E2BIG. @calls may be in any
 * order; they are not changed. Fewer than three steps: BLAME_NONE with confidence 0. */
int blame_find(const struct blame_worker *workers, size_t worker_count,
	const struct blame_call *calls, size_t call_count, struct blame *ret);
void blame_done(struct blame *b);

/* blame_meet - which of @calls belong together: those of one collective, a Send and its Recv; also those that nobody else is
 * known to have made. Of collectives in order of communicator and number. 0 and *ret (released with
 * blame_meetings_done()), -ENOMEM or -E2BIG. */
struct blame_meetings {
	uint32_t *calls; /* of meeting i: calls[first[i] .. first[i + 1]), by worker */
	size_t *first;
	size_t count;
};
int blame_meet(const struct blame_worker *workers, size_t worker_count,
	const struct blame_call *calls, size_t call_count, struct blame_meetings *ret);
void blame_meetings_done(struct blame_meetings *m);

/* blame_align - sets offset_ns and error_ns of workers whose clocks are not known, by @ends: calls that left when their
 * collective ended or their message came (blame/ends.h), and Sends. @ret by worker; NULL: nobody asks. 0, -ENOMEM or
 * -E2BIG. */
struct blame_tie {    /* what a worker's clock was set by */
	uint32_t by;  /* a worker of the node that it is compared with; UINT32_MAX: none */
	uint64_t met; /* collectives that tell */
};
int blame_align(struct blame_worker *workers, size_t worker_count, const struct blame_call *ends,
	size_t end_count, struct blame_tie *ret);
